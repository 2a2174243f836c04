# SPDX-License-Identifier: Apache-2.0
"""Real kernels from annotation to machine code, read by NVIDIA's parser and by our verifier."""

from __future__ import annotations

import warnings

import pytest
from tilelang_frontend import kernels
from tilelang_frontend.support import build, check_declarations, check_records, lower

from iket_rewrite import tilelang as iket

#: What a warp can meet, as a person reads it in the kernel: event names in each kernel.
EXPECTED = {
    "elementwise": {"elementwise_kernel": {"block", kernels.LONG_NAME, "index", "sum", "pop_range"}},
    "gemm": {"gemm_kernel": {"tile", "copy", "gemm", "store", "pop_range"}},
    "attention": {"attention_kernel": {"scores", "softmax", "values", "done", "pop_range"}},
    "two_kernels": {
        "scale_kernel": {"body", "shared", "pop_range"},
        "shift_kernel": {"body", "shared", "inner", "pop_range"},
    },
}
PAYLOADS = {
    "elementwise": {"block": "i32", kernels.LONG_NAME: None, "index": "i32", "sum": "f32"},
    "gemm": {"tile": "i32", "copy": "i32", "gemm": "i64", "store": "u16"},
    "attention": {"scores": "u8", "softmax": "i32", "values": "i16", "done": None},
    "two_kernels": {"body": None, "shared": "i32", "inner": None},
}


@pytest.fixture(autouse=True)
def _moved_copies_are_known():
    """The GEMM's copies leave their range; other tests look at that warning."""
    warnings.filterwarnings("ignore", "the range 'copy'", iket.IketWarning)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_official_parser_finds_each_kernels_events(name):
    built = build(getattr(kernels, name))
    found = check_declarations(built.record.plan, built.cubin)
    assert {kernel: set(events) for kernel, events in found.kernels.items()} == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_each_record_has_the_shape_that_the_runtime_patches(name):
    built = build(getattr(kernels, name))
    check_records(built.record.plan, built.cubin, built.official)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_verifier_passes_each_kernel(name):
    report = build(getattr(kernels, name)).report
    # The specialised GEMM's copies are in other warps than their range.
    expected = {"empty-range"} if name == "gemm" else set()
    assert {finding.rule for finding in report.findings if finding.fails} == expected


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("payloads", [True, False])
def test_payloads_are_recorded_where_asked_for_and_declared_in_any_case(name, payloads):
    if payloads:
        plan = build(getattr(kernels, name)).record.plan
    else:
        with iket.session() as session:
            lower(getattr(kernels, name)())
        plan = session.kernels[0].plan
    found = {event.name: event.payload.name if event.payload else None for event in plan.events}
    assert found == (PAYLOADS[name] if payloads else dict.fromkeys(PAYLOADS[name]))
    assert {event.name: event.declared.name if event.declared else None for event in plan.events} == PAYLOADS[name]


def test_the_gemm_is_specialised_and_its_consumers_run_its_ranges():
    record = build(kernels.gemm).record
    assert "tma_load" in record.original
    # 128 threads were asked for; a second warp group loads.
    assert "__launch_bounds__(256" in record.original
    consumer = record.original[record.original.index("} else {") :]
    assert consumer.count("IKET_EVENT(") == 6


def test_names_longer_than_a_record_arrive_whole():
    built = build(kernels.elementwise)
    assert kernels.LONG_NAME in built.official.kernel("elementwise")
    assert len(kernels.LONG_NAME.encode()) > 32


def test_colours_arrive():
    built = build(kernels.elementwise)
    (one,) = built.official.ranges.values()
    assert one == ("block", 2, 0, 0x3366FF)


@pytest.mark.parametrize("name", ["elementwise", "gemm"])
def test_blackwell(name):
    built = build(getattr(kernels, name), "sm_100a")
    found = check_declarations(built.record.plan, built.cubin)
    check_records(built.record.plan, built.cubin, found)
    assert {kernel: set(events) for kernel, events in found.kernels.items()} == EXPECTED[name]


def test_another_callers_line_numbers_are_kept():
    """The compiler's messages stay on the lines that TileLang generated."""
    record = build(kernels.elementwise).record
    assert "\n#line 1\n" in record.source
    assert record.source.split("\n#line 1\n")[1].count("\n") == record.original.count("\n")
