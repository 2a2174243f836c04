# SPDX-License-Identifier: Apache-2.0
"""What a profiler accepts and refuses while a kernel is built, and which ranges a token can name."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest
from tirx_frontend.support import compiled, generated
from tvm_tirx.script import tirx as T

import iket_rewrite
from iket_rewrite.rewriting.token_format import read_token
from iket_rewrite.tirx import IketProfiler, TirxEventError


def build(emit):
    """Build a kernel whose events a function emits; it gets a profiler, a lane's number and a tensor."""

    @T.meta_class
    class Emit:
        def once(self, profiler, lane, tensor):
            emit(profiler, lane, tensor)

    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            profiler = IketProfiler()
            emitter = Emit()
            tx = T.cuda.thread_idx("x")
            emitter.once(profiler, tx, A)
            A[tx] = A[tx] + T.float32(1)

    return kernel


def events(kernel) -> list[tuple[str, str | None, str | None]]:
    """Return kind, name and payload type of each event in the source, in order."""
    text = generated(compiled(kernel))
    tokens = [part.split('"')[1] for part in text.split("IKET_EVENT(")[1:]]
    return [(token.kind, token.name, token.payload) for token in map(read_token, tokens)]


def fault(emit) -> str:
    """Return the message with which a kernel is refused."""
    with pytest.raises(Exception) as caught:
        build(emit)
    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, iket_rewrite.IketError):
        error = error.__cause__ or error.__context__
    return str(error) if error is not None else f"no error of ours: {caught.value}"


# --- Payloads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, "bool"), (3, "i32"), (-(1 << 40), "i64"), ((1 << 64) - 1, "u64"), (2.5, "f32")],
)
def test_a_python_number_has_a_type(value, kind):
    assert events(build(lambda profiler, lane, tensor: profiler.mark("a", value))) == [("mark", "a", kind)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("text", "a payload is one number or pointer, not str"),
        (1 << 64, "does not fit 64 bits"),
        ([1], "a payload is one number or pointer, not list"),
    ],
)
def test_what_is_no_number_is_refused(value, message):
    assert message in fault(lambda profiler, lane, tensor: profiler.mark("a", value))


def test_a_number_of_numpy_is_a_number():
    def emit(profiler, lane, tensor):
        profiler.mark("whole", numpy.int64(3))
        profiler.mark("real", numpy.float16(1.5))

    assert events(build(emit)) == [("mark", "whole", "i32"), ("mark", "real", "f32")]


def test_what_a_float32_does_not_hold_is_refused_with_the_way_out():
    message = fault(lambda profiler, lane, tensor: profiler.mark("a", 1e300))
    assert "1e+300 does not fit a float32" in message
    assert "T.float64(1e+300)" in message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3.4028234663852886e38])
def test_every_float32_is_a_payload(value):
    assert events(build(lambda profiler, lane, tensor: profiler.mark("a", value))) == [("mark", "a", "f32")]


def test_a_tensor_is_refused_with_the_way_out():
    message = fault(lambda profiler, lane, tensor: profiler.mark("a", tensor))
    assert "a payload is one number or pointer" in message
    assert "index the tensor" in message


@pytest.mark.parametrize("name", ["", "a\0b", 7])
def test_a_name_that_is_none_is_refused(name):
    assert "name" in fault(lambda profiler, lane, tensor: profiler.mark(name))


def test_a_colour_out_of_range_is_refused():
    assert "the colour is 16777216" in fault(lambda profiler, lane, tensor: profiler.mark("a", color=1 << 24))


def test_an_unknown_lowering_is_refused():
    with pytest.raises(iket_rewrite.OptionError, match="choose one of tokens, tirx"):
        IketProfiler(lowering="other")


def test_events_that_contradict_each_other_are_refused_by_compile():
    def emit(profiler, lane, tensor):
        profiler.mark("a", 1)
        profiler.mark("a", 1.5)

    kernel = build(emit)
    with pytest.raises(iket_rewrite.PlanError, match="'a'") as caught:
        compiled(kernel)
    ((_, first),) = caught.value.others
    for place, text in ((first, 'profiler.mark("a", 1)'), (caught.value.place, 'profiler.mark("a", 1.5)')):
        assert (place.path, place.text.strip()) == (__file__, text)
        assert place.text[place.column - 1 :].startswith("profiler")
    assert "__iket_v1_" not in str(caught.value)


def test_a_fault_without_a_line_of_its_own_keeps_its_place_in_the_generated_source():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            profiler = IketProfiler(source_locations=False)
            tx = T.cuda.thread_idx("x")
            profiler.mark("a", tx)
            profiler.mark("a", A[tx])
            A[tx] = A[tx] + T.float32(1)

    with pytest.raises(iket_rewrite.PlanError, match="<source>:") as caught:
        compiled(kernel)
    assert caught.value.remedy


def test_events_of_both_lowerings_in_one_module_are_refused():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            ours = IketProfiler()
            theirs = IketProfiler(lowering="tirx")
            ours.mark("a")
            theirs.mark("b")
            A[0] = T.float32(1)

    with pytest.raises(TirxEventError, match="two plans in one binary"):
        compiled(kernel)


def test_source_locations_can_be_left_out():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            profiler = IketProfiler(source_locations=False)
            profiler.mark("a")
            A[0] = T.float32(1)

    (token,) = [part.split('"')[1] for part in generated(compiled(kernel)).split("IKET_EVENT(")[1:]]
    assert read_token(token).position is None


def test_what_is_no_kernel_is_not_compiled():
    with pytest.raises(TypeError, match="function or IRModule"):
        IketProfiler().compile(7)


# --- Tokens -----------------------------------------------------------------------------------------------------


def test_an_end_whose_token_is_known_ends_that_range_only():
    def emit(profiler, lane, tensor):
        profiler.range_start("a")
        second = profiler.range_start("b")
        profiler.range_end(second)

    assert events(build(emit))[-1] == ("range_end", "b", None)
    assert len(events(build(emit))) == 3


def test_an_end_takes_the_ranges_whose_payload_is_of_its_type():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            profiler = IketProfiler()
            tx = T.cuda.thread_idx("x")
            plain: T.uint32 = profiler.range_start("plain")
            counted: T.uint32 = profiler.range_start("counted", tx)
            profiler.range_end(counted, tx + 1)
            profiler.range_end(plain)
            A[tx] = A[tx] + T.float32(1)

    assert events(kernel)[2:] == [("range_end", "counted", "i32"), ("range_end", "plain", None)]


def test_the_sentinel_ends_nothing():
    def emit(profiler, lane, tensor):
        profiler.range_end(profiler.sentinel_token("a"))

    assert events(build(emit)) == []


def test_a_token_of_nothing_is_refused():
    def emit(profiler, lane, tensor):
        profiler.range_start("a")
        profiler.range_end(T.uint32(9))

    assert "no range of this kernel has the token 9" in fault(emit)


def test_an_end_with_a_payload_needs_a_start_with_one():
    def emit(profiler, lane, tensor):
        profiler.range_end(profiler.range_start("a"), 3)

    assert "no range of this kernel ends with payload i32: 'a' starts with no payload" in fault(emit)


@pytest.mark.parametrize("token", [None, "load", True, 1.5])
def test_what_is_no_token_is_refused(token):
    def emit(profiler, lane, tensor):
        profiler.range_start("a")
        profiler.range_end(token)

    assert "a token is what range_start or sentinel_token returned" in fault(emit)
    assert type(token).__name__ in fault(emit)


def test_a_value_of_another_type_is_no_token():
    def emit(profiler, lane, tensor):
        profiler.range_start("a")
        profiler.range_end(tensor[lane])

    assert "not float32" in fault(emit)


def test_an_end_before_any_start_is_told_how_to_name_the_range():
    with pytest.raises(Exception, match="no range of this kernel has started before this end") as caught:

        @T.function
        def kernel(A: T.Tensor((32,), T.float32)):
            with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
                profiler = IketProfiler()
                token: T.uint32 = T.uint32(0)
                for i in T.serial(4):
                    profiler.range_end(token)
                    token = profiler.range_start("late")
                    A[i] = A[i] + T.float32(1)

    assert "sentinel_token(name)" in str(caught.value)


def test_a_name_that_never_starts_ends_nothing_whatever_its_payload():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            profiler = IketProfiler()
            tx = T.cuda.thread_idx("x")
            plain: T.uint32 = profiler.sentinel_token("plain")
            typed: T.uint32 = profiler.sentinel_token("typed", dtype="float32")
            profiler.range_end(plain)
            profiler.range_end(typed, A[tx])
            A[tx] = A[tx] + T.float32(1)

    assert events(kernel) == []


def test_tokens_are_those_of_the_kernel_whichever_profiler_it_uses():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            one = IketProfiler()
            other = IketProfiler()
            tx = T.cuda.thread_idx("x")
            first = one.range_start("first")
            second = other.range_start("second")
            A[tx] = A[tx] + T.float32(1)
            other.range_end(first)
            one.range_end(second)

    assert [name for kind, name, _ in events(kernel) if kind == "range_end"] == ["first", "second"]


def test_a_profiler_of_several_kernels_keeps_their_ranges_apart():
    shared = IketProfiler()

    def build_one(name: str):
        @T.function
        def kernel(A: T.Tensor((32,), T.float32)):
            with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
                tx = T.cuda.thread_idx("x")
                token: T.uint32 = shared.range_start(name)
                A[tx] = A[tx] + T.float32(1)
                shared.range_end(token)

        return kernel

    for name in ("one", "two"):
        assert events(build_one(name)) == [("range_start", name, None), ("range_end", name, None)]


def test_outside_a_kernel_there_are_no_events():
    for call in (lambda p: p.mark("a"), lambda p: p.range_pop(), lambda p: p.range_start("a")):
        with pytest.raises(TirxEventError, match="no kernel is being built here"):
            call(IketProfiler())


def test_a_range_whose_payload_changes_is_refused():
    def emit(profiler, lane, tensor):
        profiler.range_start("a", 1)
        profiler.range_start("a", 1.5)

    assert "'a' starts with payload f32, and was used with i32" in fault(emit)


def test_a_name_that_comes_around_a_loop_must_be_told_before():
    with pytest.raises(Exception) as caught:

        @T.function
        def kernel(A: T.Tensor((32,), T.float32)):
            with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
                profiler = IketProfiler()
                token: T.uint32 = profiler.range_start("first")
                for i in T.serial(4):
                    profiler.range_end(token)
                    token = profiler.range_start("second")
                    A[i] = A[i] + T.float32(1)

    error: BaseException | None = caught.value
    while error is not None and not isinstance(error, TirxEventError):
        error = error.__cause__ or error.__context__
    assert "sentinel_token('second')" in str(error)


def test_the_sentinels_type_lets_two_ranges_with_payloads_come_around_one_loop():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            profiler = IketProfiler()
            first: T.uint32 = profiler.sentinel_token("first", dtype="int32")
            second: T.uint32 = profiler.sentinel_token("second", dtype="float32")
            for i in T.serial(4):
                profiler.range_end(second, A[i])
                profiler.range_end(first, i)
                first = profiler.range_start("first", i)
                second = profiler.range_start("second", A[i])
                A[i] = A[i] + T.float32(1)
            profiler.range_end(first, 0)
            profiler.range_end(second, T.float32(0))

    assert [event for event in events(kernel) if event[0] == "range_end"] == [
        ("range_end", "second", "f32"),
        ("range_end", "first", "i32"),
        ("range_end", "first", "i32"),
        ("range_end", "second", "f32"),
    ]


# --- Installation -----------------------------------------------------------------------------------------------


def test_without_tirx_the_import_says_what_to_install():
    script = (
        "import sys\n"
        "sys.modules['tvm_tirx'] = None\n"
        "try: import iket_rewrite.tirx\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'iket-rewrite[tirx]'" in done.stdout


def test_whoever_replaces_the_callback_and_calls_ours_makes_no_ring():
    script = """
import tvm_ffi
from iket_rewrite.tirx import IketProfiler, callback
NAME = "tvm_callback_cuda_compile"
tvm_ffi.register_global_func(NAME, lambda code, config: [bytearray(str(code), "utf-8"), "text"], override=True)
callback.install()
for _ in range(3):
    ours = tvm_ffi.get_global_func(NAME)
    tvm_ffi.register_global_func(NAME, lambda code, config, ours=ours: ours(code, config), override=True)
    callback.install()
source = 'void f() { IKET_EVENT("' + __import__("iket_rewrite").encode_event("mark", "a") + '"); }'
print(bytes(tvm_ffi.get_global_func(NAME)(source, "")[0]).decode())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "IKET_EVENT" not in done.stdout
    assert "void f()" in done.stdout
