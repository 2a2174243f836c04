# SPDX-License-Identifier: Apache-2.0
"""What would otherwise be found out from an empty trace is said where it happens."""

from __future__ import annotations

import gc
import linecache
import weakref

import pytest
import tilelang
import tilelang.language as T
import tvm_ffi
from tilelang_frontend import kernels
from tilelang_frontend.support import lower, target

from iket_rewrite import tilelang as iket
from iket_rewrite.capturing import keeping

#: With it a compiler takes annotations that nobody rewrote, and does nothing for them.
WITHOUT_EVENTS = ["-DIKET_EVENT(...)=((void)0)"]


def compile_(program, **options):
    return tilelang.compile(program, target=target(), execution_backend="tvm_ffi", **options)


# --- A session in which nothing was instrumented -------------------------------------------------------------------


def test_a_session_without_a_kernel():
    with pytest.warns(iket.IketWarning, match="nothing was instrumented.*no kernel was compiled") as caught:
        with iket.session():
            pass
    assert caught[0].filename == __file__


def test_a_session_whose_kernels_have_no_annotation():
    with pytest.warns(iket.IketWarning, match="no annotation is in what was compiled: plain_kernel"):
        with iket.session() as session:
            lower(kernels.plain())
    assert not session.kernels[0].instrumented
    assert session.kernels[0].source == session.kernels[0].original


def test_a_session_whose_callback_was_replaced():
    with pytest.warns(iket.IketWarning, match="another callback was registered"):
        with iket.session() as session:
            tvm_ffi.register_global_func("tilelang_callback_cuda_postproc", f=lambda code, _: code, override=True)
            lower(kernels.small())
    assert session.kernels == []


def test_one_kernel_with_events_is_enough():
    with iket.session():
        lower(kernels.plain())
        lower(kernels.small())


def test_an_exception_is_not_talked_over():
    with pytest.raises(ZeroDivisionError), iket.session():
        raise ZeroDivisionError


def test_an_outer_session_counts_what_an_inner_one_instruments():
    with iket.session(), iket.session():
        lower(kernels.small())


def test_a_session_that_leaves_the_callback_on_has_time_left():
    with iket.session(disable_on_exit=False):
        pass
    iket.disable()


# --- Kernels that the session did not compile ------------------------------------------------------------------------


def test_kernels_from_tilelangs_cache_are_told_apart():
    program = kernels.small("cached")
    silent = compile_(program, compile_flags=WITHOUT_EVENTS)
    assert "IKET_EVENT(" in silent.get_kernel_source()
    with pytest.warns(iket.IketWarning) as caught, iket.session(disable_cache=False):
        again = compile_(program, compile_flags=WITHOUT_EVENTS)
    assert again is silent
    messages = [str(one.message) for one in caught]
    assert (
        "the kernel small is annotated with 'cached', and has no events: it came from TileLang's kernel cache"
        in (messages[0])
    )
    assert "fix: leave disable_cache at True" in messages[0]
    assert "nothing was instrumented in this session: what it met was compiled before: small" in messages[1]
    assert len(messages) == 2
    assert caught[0].filename == __file__

    # By default the cache is passed by.
    with iket.session() as session:
        assert compile_(program) is not silent
    assert len(session.kernels) == 1


def test_a_kernel_that_was_cached_in_another_payload_mode():
    program = kernels.small("mode")
    with iket.session(disable_cache=False) as session:
        first = compile_(program)
        assert compile_(program) is first  # of this session
    assert len(session.kernels) == 1
    with pytest.warns(iket.IketWarning, match="does not record payloads, other than this session"):
        with iket.session(disable_cache=False, runtime_payloads=True):
            assert compile_(program) is first
            lower(kernels.small())
    # It has what this session asks for.
    with iket.session(disable_cache=False) as session:
        assert compile_(program) is first
    assert session.kernels == []


def test_a_kernel_without_annotations_that_was_compiled_before():
    kernel = compile_(kernels.plain(512))
    with pytest.warns(iket.IketWarning, match="nothing was instrumented.*no annotation is in what it met: plain"):
        with iket.session(disable_cache=False):
            assert compile_(kernels.plain(512)) is kernel


def test_a_kernel_that_a_decorated_function_has_kept():
    @tilelang.jit(target=target(), execution_backend="tvm_ffi", compile_flags=WITHOUT_EVENTS)
    def kept(n: int):
        @T.prim_func
        def kept(A: T.Tensor((n,), T.float32)):
            with T.Kernel(n // 128, threads=128) as _:
                tx = T.get_thread_binding(0)
                kernels.mark_all([(name, None) for name in "abcde"])
                A[tx] = A[tx] + T.float32(1)

        return kept

    kernel = kept(128)
    with pytest.warns(iket.IketWarning) as caught, iket.session():
        assert kept(128) is kernel
        assert kept(128) is kernel
        with pytest.raises(Exception):  # noqa: B017  (it can not be launched here)
            kernel("no tensor")
    messages = [str(one.message) for one in caught]
    assert len(messages) == 2
    assert "annotated with 'a', 'b', 'c', 'd', ..., and has no events: it was compiled outside" in messages[0]
    assert "nothing was instrumented" in messages[1]


def test_a_kernel_that_is_launched_in_a_session_but_was_compiled_before():
    kernel = compile_(kernels.small("launched"), compile_flags=WITHOUT_EVENTS)
    with pytest.warns(iket.IketWarning, match="'launched', and has no events: it was compiled outside"):
        with iket.session():
            lower(kernels.small())
            with pytest.raises(Exception):  # noqa: B017
                kernel("no tensor")
    plain = compile_(kernels.plain())
    with iket.session():
        lower(kernels.small())
        with pytest.raises(Exception):  # noqa: B017
            plain("no tensor")


# --- Annotations that are not in the generated source ----------------------------------------------------------


def test_an_event_that_the_generated_source_lacks():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        iket.mark("on the host")
        with T.Kernel(1, threads=128) as bx:
            if bx > 5:
                iket.mark("never reached")
            iket.mark("here")
            A[bx] = T.float32(1)

    with pytest.warns(iket.IketWarning) as caught, iket.session() as session:
        compile_(kernel)
    assert [event.name for event in session.kernels[0].plan.events] == ["here"]
    for one, name in zip(caught, ["on the host", "never reached"], strict=True):
        assert f"the event {name!r} ({__file__}:{one.lineno}) is not in the source" in str(one.message)
        assert f'iket.mark("{name}")' in linecache.getline(__file__, one.lineno)


def test_a_payload_that_reads_a_fragment_outside_of_its_loop():
    @T.prim_func
    def kernel(A: T.Tensor((64,), T.float32)):
        with T.Kernel(1, threads=32) as _:
            F = T.alloc_fragment((64,), T.float32)
            one = T.alloc_fragment((1,), T.float32)
            T.copy(A, F)
            T.fill(one, 0)
            iket.mark("changes the layout", payload=F[3])
            iket.mark("has one element", payload=one[0])
            for i in T.Parallel(64):
                iket.mark("fits", payload=F[i] * T.float32(2))
                F[i] = F[i] + one[0]
            T.copy(F, A)

    with pytest.warns(iket.IketWarning) as caught, iket.session():
        compile_(kernel)
    (warning,) = caught
    assert "the payload of 'changes the layout'" in str(warning.message)
    assert "reads the fragment F outside" in str(warning.message)
    assert "changes the layout" in linecache.getline(warning.filename, warning.lineno)


# --- Ranges that enclose nothing -------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_warp_specialisation_moves_the_copies_out_of_their_range(arch):
    with pytest.warns(iket.IketWarning) as caught, iket.session() as session:
        lower(kernels.gemm(), arch)
    (message,) = [str(one.message) for one in caught]
    (place,) = session.kernels[0].places_of("copy")
    assert place.file == kernels.__file__ == caught[0].filename
    assert 'iket.range("copy"' in linecache.getline(kernels.__file__, place.line)
    assert message.startswith(f"the range 'copy' ({place.file}:{place.line}) encloses nothing")
    assert caught[0].lineno == place.line
    assert "gemm_kernel" in message
    assert session.kernels[0].empty_ranges == {"copy": 1}


def test_ranges_that_are_empty_at_some_of_their_places():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            iket.range_push("sometimes")
            iket.mark("inside")
            A[0] = T.float32(1)
            iket.range_pop()
            with iket.range("sometimes"):
                iket.mark("inside")
            iket.token_start("token")
            iket.token_start("full token")
            iket.token_end("token")
            A[1] = T.float32(1)
            iket.token_end("full token")

    with pytest.warns(iket.IketWarning) as caught, iket.session() as session:
        lower(kernel)
    assert session.kernels[0].empty_ranges == {"sometimes": 1, "token": 1}
    messages = [str(one.message) for one in caught]
    assert "'sometimes'" in messages[0]
    assert "at 1 of its 2 places" in messages[0]
    assert "'token'" in messages[1]
    assert "places" not in messages[1]


def test_a_range_without_a_source_line_is_named_all_the_same():
    with pytest.warns(iket.IketWarning, match="the range 'copy' encloses nothing"):
        with iket.session(source_locations=False):
            lower(kernels.gemm())


# --- What the rewriter has to say -------------------------------------------------------------------------------------


def test_a_payload_that_is_not_recorded_is_nothing_to_warn_of():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding(0)
            iket.mark("unknown", payload=T.call_extern("float32", "fancy", A[tx]))
            A[tx] = T.float32(1)

    with iket.session() as session:
        lower(kernel)
    assert "not captured" in str(session.kernels[0].warnings[0])


def test_what_holds_for_many_annotations_is_said_once_with_their_lines():
    def several():
        for name in ["two", "three", "four", "five", "six"]:
            iket.mark(name, color=2)

    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            iket.mark("one", color=1)
            several()
            A[0] = T.float32(1)

    with pytest.warns(iket.IketWarning) as caught, iket.session() as session:
        lower(kernel)
    (warning,) = caught
    assert str(warning.message).count(f"{__file__}:") == 2
    assert warning.filename == __file__
    assert [notice.slug for notice in session.kernels[0].warnings] == ["mark-color"] * 6


# --- Captures in the process -----------------------------------------------------------------------------------------


def test_a_kernel_that_a_capture_may_meet_is_told_to_stay_loaded():
    with iket.session():
        kernel = compile_(kernels.small())
    kept = weakref.ref(kernel)
    keeping.begin()
    del kernel
    keeping.end()
    gc.collect()
    assert kept() is not None
