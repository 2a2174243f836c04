# SPDX-License-Identifier: Apache-2.0
"""Annotated TIRx kernels become sound binaries whose events NVIDIA's own parser reads."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
import tvm_tirx
from tirx_frontend import kernels
from tirx_frontend.support import TARGET, compile_source, compiled, cubin, generated
from toolbox import Official
from tvm_tirx.backend.cuda.iket import IketProfiler as TirxProfiler
from tvm_tirx.script import tirx as T

import iket_rewrite
from iket_rewrite import abi


@functools.cache
def built(name: str):
    executable = compiled(getattr(kernels, name))
    return executable, cubin(executable)


@pytest.mark.parametrize("name", ["affine", "every_payload", "tokens", "many", "theirs"])
def test_the_binary_is_sound(name):
    report = iket_rewrite.verify(built(name)[1])
    assert report.ok, report.findings
    assert report.sites


def test_the_guides_kernel_has_its_range_and_its_mark():
    found = Official(built("affine")[1])
    assert found.kernel("affine") == ["affine", "loaded", "pop_range"]


def test_every_payload_type_is_declared():
    found = Official(built("every_payload")[1])
    types = {name: code for name, code, *_ in found.events.values()}
    codes = {name: kind.code for name, kind in abi.PAYLOADS.items()}
    assert types == {
        kernels.LONG: codes["i32"],
        # bool travels as u8.
        "bool": codes["u8"],
        "python bool": codes["u8"],
        "python int": codes["i32"],
        "python float": codes["f32"],
        **{name: code for name, code in codes.items() if name != "bool"},
    }
    assert [color for name, *_, color in found.ranges.values() if name == kernels.LONG] == [0x3366FF]


def test_an_end_stands_for_every_range_that_its_token_can_name():
    found = Official(built("tokens")[1])
    events = found.kernel("tokens")
    assert {"whole", "step"} <= set(events)
    assert {position for _, _, position, *_ in found.events.values()} == {4}
    # The end of what never starts is folded away.
    assert "never" not in events
    assert events.count("whole") == 2


def test_more_than_thirty_events_take_the_extended_method():
    executable, binary = built("many")
    assert executable.event_tables[0]["method"] == "extended"
    assert Official(binary).kernel("many") == [f"filler{index:02}" for index in range(kernels.FILLERS)]


def test_events_that_tirx_lowers_itself_are_left_to_it():
    executable, binary = built("theirs")
    assert executable.rewrites[0].instrumented
    assert Official(binary).kernel("theirs") == ["affine", "token", "loaded", "token", "pop_range"]


def test_a_kernel_of_tirxs_own_profiler_is_compiled_too():
    @T.function
    def kernel(A: T.Tensor((32,), T.float32)):
        with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
            profiler = TirxProfiler()
            tx = T.cuda.thread_idx("x")
            profiler.mark("theirs", tx)
            A[tx] = A[tx] + T.float32(1)

    assert Official(cubin(compiled(kernel))).kernel("kernel") == ["theirs"]


def test_a_site_leads_to_its_line():
    (table,) = built("affine")[0].event_tables
    source = Path(kernels.__file__).read_text(encoding="utf-8").splitlines()
    for site in table["sites"]:
        assert site["file"] == kernels.__file__
        assert {"range_push": '"affine"', "mark": '"loaded"', "range_pop": "range_pop"}[site["kind"]] in source[
            site["line"] - 1
        ]


def test_payloads_can_be_left_out():
    executable = compiled(kernels.every_payload, runtime_payloads=False)
    assert {code for _, code, *_ in Official(cubin(executable)).events.values()} == {0}


def test_a_regular_compilation_has_no_events():
    built("many")
    executable = tvm_tirx.tirx.compile(tvm_tirx.IRModule.from_expr(kernels.many), target=TARGET)
    source = generated(executable)
    assert "IKET_EVENT" in source
    assert not Official(compile_source(source)).instrumented


def test_a_kernel_without_events_stays_as_it_is():
    executable = compiled(kernels.unannotated)
    assert not executable.rewrites[0].changed
    assert not Official(cubin(executable)).instrumented
