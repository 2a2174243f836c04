# SPDX-License-Identifier: Apache-2.0
"""Annotations while a kernel is built: what they print, what they refuse, what the event table says."""

from __future__ import annotations

import inspect
import threading

import pytest
import tilelang
import tilelang.language as T
import torch
from tilelang.tools.cuda import iket as theirs
from tilelang_frontend import kernels
from tilelang_frontend.support import build, check_declarations, check_records, lower, target

import iket_rewrite
from iket_rewrite import tilelang as iket


def events(program) -> list[tuple]:
    """Lower a program in a session, with payloads, and return kind, name and payload of its events."""
    with iket.session(runtime_payloads=True) as session:
        lower(program)
    (record,) = session.kernels
    return [(one.kind.value, one.name, one.payload.name if one.payload else None) for one in record.plan.events]


def sites(program) -> list[tuple]:
    """Return kind, name and line of each annotation, in the order of the generated source."""
    with iket.session() as session:
        lower(program)
    table = session.kernels[0].table
    assert {site["file"] for site in table["sites"]} <= {__file__}
    return [(site["kind"], site["name"], site["line"]) for site in table["sites"]]


def line_here() -> int:
    return inspect.currentframe().f_back.f_lineno


# --- The same names and arguments as TileLang's module ----------------------------------------------------------


@pytest.mark.parametrize("name", theirs.__all__)
def test_everything_that_tilelang_exports_is_here_with_its_arguments_and_defaults(name):
    ours, other = getattr(iket, name), getattr(theirs, name)
    assert name in iket.__all__
    if name == "PayloadSpec":
        assert list(other.__dataclass_fields__) == list(ours.__dataclass_fields__)
        return
    known = inspect.signature(ours).parameters
    for parameter in inspect.signature(other).parameters.values():
        assert known[parameter.name].kind is parameter.kind
        # A folder that must be named there may be named here.
        assert known[parameter.name].default == parameter.default or parameter.default is parameter.empty


# --- Kinds of events --------------------------------------------------------------------------------------------


def test_marks_ranges_and_token_ranges_keep_their_kind_name_and_payload():
    assert events(kernels.elementwise()) == [
        ("range", "block", "i32"),
        ("mark", kernels.LONG_NAME, None),
        ("mark", "index", "i32"),
        ("mark", "sum", "f32"),
    ]
    assert events(kernels.tokens()) == [
        ("token_range", "first", "i32"),
        ("token_range", "second", None),
        ("range", "nested", "f64"),
    ]


def test_start_and_end_are_other_names_of_push_and_pop():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as bx:
            iket.range_start("outer", payload=bx)
            iket.range_push("inner")
            A[0] = T.float32(1)
            iket.range_pop()
            iket.range_end("outer")

    kinds = [(kind, name) for kind, name, _ in sites(kernel)]
    assert kinds == [("range_push", "outer"), ("range_push", "inner"), ("range_pop", None), ("range_pop", None)]


def test_a_range_end_takes_no_payload():
    with pytest.raises(TypeError, match="payload"):
        iket.range_end("name", payload=1)
    with pytest.raises(TypeError, match="payload"):
        iket.range_pop("name", payload=1)


def test_a_mark_and_a_range_may_share_a_name():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _, iket.range("same"):
            iket.mark("same", payload=1)
            A[0] = T.float32(1)

    assert events(kernel) == [("range", "same", None), ("mark", "same", "i32")]


def test_token_ranges_overlap_and_carry_payloads_at_both_ends():
    built = build(kernels.tokens)
    assert built.official.kernels == {
        "tokens_kernel": ["first", "second", "nested", "pop_range", "first", "second"],
    }
    assert built.report.ok, built.report.findings
    check_records(built.record.plan, built.cubin, check_declarations(built.record.plan, built.cubin))
    assert [event.color for event in built.record.plan.events] == [None, 0xFF0000, None]


def test_more_than_thirty_events_keep_their_names():
    built = build(kernels.forty)
    assert built.record.plan.method.value == "extended"
    assert built.official.kernel("forty") == [name for _, name in kernels.FORTY]
    check_records(built.record.plan, built.cubin, check_declarations(built.record.plan, built.cubin))
    assert built.report.ok, built.report.findings


def test_a_mark_takes_a_colour_for_the_table_and_a_warning_says_that_records_have_none():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            iket.mark("coloured", color=0x00FF00)
            A[0] = T.float32(1)

    with pytest.warns(iket.IketWarning, match="kernel_kernel: a mark has no colour"), iket.session() as session:
        lower(kernel)
    assert session.kernels[0].table["events"][0]["color"] == "#00ff00"


def test_annotations_of_a_kernel_in_tilelangs_eager_style():
    @tilelang.jit(target=target())
    def eager(A, block: int = 128):
        n = T.const("n")
        A: T.Tensor[[n], T.float32]
        with T.Kernel(n // block, threads=block) as bx:
            tx = T.get_thread_binding(0)
            with iket.range("eager", payload=bx):
                A[bx * block + tx] = A[bx * block + tx] + T.float32(1)

    assert events(eager.get_tir(torch.empty(256))) == [("range", "eager", "i32")]


# --- Nesting ----------------------------------------------------------------------------------------------------


def test_a_pop_without_a_push_is_an_error_where_it_is_written():
    for pop in (iket.range_pop, iket.range_end):
        with pytest.raises(RuntimeError, match="none is open") as error:
            pop()
        assert isinstance(error.value, iket_rewrite.IketError)
        assert isinstance(error.value, iket.NestingError)


def test_a_pop_of_another_name_is_an_error_and_leaves_the_range_open():
    iket.range_push("outer")
    iket.range_push("inner")
    with pytest.raises(RuntimeError, match="'outer' is ended, but 'inner' is the innermost"):
        iket.range_pop("outer")
    iket.range_pop("inner")
    iket.range_pop("outer")
    with pytest.raises(RuntimeError, match="none is open"):
        iket.range_pop("outer")


def test_a_pop_inside_a_kernel_does_not_end_a_range_outside_of_it():
    iket.range_push("outside")
    with pytest.raises(RuntimeError, match="none is open"):

        @T.prim_func
        def kernel(A: T.Tensor((128,), T.float32)):
            with T.Kernel(1, threads=128) as _:
                iket.range_pop()
                A[0] = T.float32(1)


def test_a_range_that_a_failed_kernel_left_open_is_forgotten():
    with pytest.raises(ZeroDivisionError):

        @T.prim_func
        def failing(A: T.Tensor((128,), T.float32)):
            with T.Kernel(1, threads=128) as _:
                iket.range_push("left open")
                A[0] = T.float32(1 // 0)

    with pytest.raises(RuntimeError, match="none is open"):

        @T.prim_func
        def next_one(A: T.Tensor((128,), T.float32)):
            with T.Kernel(1, threads=128) as _:
                iket.range_pop("left open")
                A[0] = T.float32(1)


def test_an_error_in_the_body_of_a_range_arrives_as_it_is():
    with pytest.raises(ZeroDivisionError):

        @T.prim_func
        def kernel(A: T.Tensor((128,), T.float32)):
            with T.Kernel(1, threads=128) as _, iket.range("outer"):
                iket.range_push("never popped")
                A[0] = T.float32(1 // 0)


def test_a_range_whose_body_leaves_a_push_open_is_an_error():
    with pytest.raises(RuntimeError, match="'outer' is ended, but 'never popped' is the innermost"):

        @T.prim_func
        def kernel(A: T.Tensor((128,), T.float32)):
            with T.Kernel(1, threads=128) as _, iket.range("outer"):
                iket.range_push("never popped")
                A[0] = T.float32(1)


def test_open_ranges_belong_to_a_thread():
    iket.range_push("of the main thread")
    caught = []

    def other():
        try:
            iket.range_pop()
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(caught) == 1
    iket.range_pop("of the main thread")


def test_reset_forgets_open_ranges():
    iket.range_push("open")
    iket.reset()
    with pytest.raises(RuntimeError, match="none is open"):
        iket.range_pop("open")


# --- Names and colours -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", None, 3, b"bytes"])
@pytest.mark.parametrize("annotate", [iket.mark, iket.range_push, iket.token_start, iket.token_end])
def test_what_is_no_name_is_refused(name, annotate):
    with pytest.raises(ValueError, match="no event: ") as error:
        annotate(name)
    assert isinstance(error.value, iket_rewrite.IketError)
    assert iket.event_table() == []


@pytest.mark.parametrize("color", [-1, 0x1000000, 1.5, "red", True])
def test_what_is_no_colour_is_refused(color):
    with pytest.raises(ValueError, match="the colour is"):
        iket.mark("name", color=color)


def test_an_event_with_two_colours_is_refused_and_one_colour_serves_all():
    iket.range_push("name")
    iket.range_push("name", color=0x112233)
    iket.range_push("name")
    iket.range_push("name", color=0x112233)
    with pytest.raises(ValueError, match=r"colour 0x445566 here and 0x112233 at .*test_events\.py:\d+"):
        iket.range_push("name", color=0x445566)
    assert [row["color"] for row in iket.event_table()] == [0x112233]


def test_one_event_with_two_payload_types_is_refused_where_it_is_written():
    iket.mark("value", payload=iket.payload(1, dtype="int32"))
    first = line_here() - 1
    iket.mark("value", payload=2)
    for payload in (None, iket.payload(1, dtype="float32")):
        with pytest.raises(ValueError, match=rf"int32 at .*test_events\.py:{first}\b"):
            iket.mark("value", payload=payload)
    iket.reset()
    iket.mark("value")


def test_the_two_ends_of_a_token_range_carry_one_payload_type():
    iket.token_start("transfer", payload=1)
    with pytest.raises(ValueError, match="NoPayload here and int32"):
        iket.token_end("transfer")
    iket.token_end("transfer", payload=2)


@pytest.mark.parametrize(
    ("first", "second"), [(iket.range_push, iket.token_start), (iket.token_start, iket.range_push)]
)
def test_a_name_is_not_both_a_range_and_a_token_range(first, second):
    first("name")
    with pytest.raises(ValueError, match="push/pop range and as a token range"):
        second("name")


# --- Where it was written ----------------------------------------------------------------------------------------


@T.macro
def in_a_macro(A):
    iket.mark("in a macro")
    A[1] = T.float32(1)


MACRO_LINE = line_here() - 4


def in_a_function(name):
    iket.mark(name)


def test_file_and_line_of_each_annotation_come_out_in_the_table():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            with iket.range("range"):
                iket.mark("mark")
                A[2] = T.float32(0)
            in_a_macro(A)
            iket.range_start("start")
            A[0] = T.float32(2)
            iket.range_end()
            iket.token_start("token")
            A[0] = T.float32(3)
            iket.token_end("token")

    first = line_here() - 11
    expected = [
        ("range_push", "range", first),
        ("mark", "mark", first + 1),
        ("range_pop", None, first),
        ("mark", "in a macro", MACRO_LINE),
        ("range_push", "start", first + 4),
        ("range_pop", None, first + 6),
        ("range_start", "token", first + 7),
        ("range_end", "token", first + 9),
    ]
    assert sites(kernel) == expected
    assert [row["places"] for row in iket.event_table()] == []  # the session started a table of its own


def test_places_are_in_the_table_of_the_program_too():
    for _ in range(2):
        iket.mark("twice")
    iket.mark("twice")
    line = line_here() - 1
    (row,) = iket.event_table()
    assert row["places"] == [(__file__, line - 1), (__file__, line)]


def test_positions_can_be_left_out():
    with iket.session(source_locations=False) as session:
        lower(kernels.small("here"))
        assert [row["places"] for row in iket.event_table()] == [[]]
    (record,) = session.kernels
    assert [site.position for site in record.plan.sites] == [None]
    with iket.session(source_locations=False), iket.session() as session:
        lower(kernels.small("here"))
    assert [site.position for site in session.kernels[0].plan.sites] == [None]
    with iket.session() as session:
        lower(kernels.small("here"))
    assert session.kernels[0].places_of("here") == ()  # it is a mark
    assert session.kernels[0].plan.sites[0].position.file == kernels.__file__


# --- The table ---------------------------------------------------------------------------------------------------


def test_the_table_has_the_keys_of_tilelangs_and_more():
    iket.mark("mark")
    iket.range_push("range", payload=iket.payload(1.5))
    iket.token_start("token", payload=iket.payload(1, dtype="uint64"))
    theirs.reset()
    theirs.mark("mark")
    assert iket.event_table()[0].keys() > theirs.event_table()[0].keys()
    theirs.reset()
    shown = [
        (row["event_id"], row["kind"], row["name"], row["payload_type"], row["payload_iket_id"])
        for row in iket.event_table()
    ]
    assert shown == [
        (1, "mark", "mark", "NoPayload", 0),
        (2, "range", "range", "float32", 13),
        (3, "token_range", "token", "uint64", 16),
    ]
    assert [row["runtime_payload_iket_id"] for row in iket.event_table()] == [0, 0, 0]
    iket.enable_runtime_payloads()
    assert [row["runtime_payload_iket_id"] for row in iket.event_table()] == [0, 13, 16]
    iket.disable_runtime_payloads()
    assert [bool(row["range_id"]) for row in iket.event_table()] == [False, True, True]


def test_numbers_in_the_table_pass_by_the_pop():
    for number, name in kernels.FORTY:
        iket.mark(name, payload=number)
    assert [row["event_id"] for row in iket.event_table()] == [*range(1, 31), *range(32, 42)]
    iket.reset()
    assert iket.event_table() == []


def test_the_table_of_a_session_can_be_asked_for_when_it_has_ended():
    with iket.session() as session:
        lower(kernels.small("noted"))
    assert [row["name"] for row in iket.event_table()] == ["noted"]
    ranges = {event.name: event.range_id for event in session.kernels[0].plan.events}
    assert ranges == {"noted": 0}


def test_range_ids_of_the_table_are_those_of_the_binary():
    kernels.elementwise()
    table = {row["name"]: row["range_id"] for row in iket.event_table()}
    assert {event.name: event.range_id for event in build(kernels.elementwise).record.plan.events} == table
