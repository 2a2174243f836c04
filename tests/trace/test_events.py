# SPDX-License-Identifier: Apache-2.0
"""The event table of the rewriter, joined with a trace."""

from __future__ import annotations

import json

import pytest
from made_traces import Maker

import iket_rewrite
from iket_rewrite.rewriting.table import event_table
from iket_rewrite.tracing.summary import summarize

SOURCE = """\
#include <iket_rewrite/iket.cuh>
__device__ void helper() { IKET_MARK("step"); }
__global__ void first(int n) {
  IKET_RANGE("whole");
  for (int i = 0; i < n; ++i) {
    IKET_RANGE_PUSH("load", IKET_I32(i));
    IKET_RANGE_POP();
  }
}
__global__ void second() {
  IKET_RANGE_PUSH("load", IKET_I32(0));
  IKET_RANGE_POP();
  IKET_RANGE_START("tok");
  IKET_RANGE_END("tok");
}
"""


def table(**options):
    return event_table(iket_rewrite.rewrite(SOURCE, path="k.cu", **options).plan)


def made(kernel="first"):
    maker = Maker(kernel).range("whole", 0, 900).range("load", 64, 640).mark("step", 70).life(0, 999)
    return maker.range("tok", 0, 640, kind=1)


@pytest.fixture
def load(tmp_path):
    """Return a function that loads a made trace with an event table."""

    def load_it(maker, events):
        return iket_rewrite.load_trace(maker.write(tmp_path / "t.trace.json"), events=events)

    return load_it


def test_each_event_has_its_place(load):
    trace = load(made(), table())
    found = {row.name: [str(place) for place in row.places] for row in summarize(trace).kernels[0].ranges}
    assert found == {"whole": ["k.cu:4"], "load": ["k.cu:6"], "tok": ["k.cu:13"]}
    assert [str(place) for place in summarize(trace).kernels[0].markers[0].places] == ["k.cu:2"]


@pytest.mark.parametrize(("kernel", "line"), [("second", 11), ("_Z5firsti", 6), ("_Z6secondv", 11)])
def test_a_place_is_that_of_the_kernel(load, kernel, line):
    (place,) = load(made(kernel), table()).places("range", "load", kernel)
    assert (place.line, place.column, place.file) == (line, place.column, "k.cu")


def test_an_unknown_kernel_gets_every_place(load):
    assert [place.line for place in load(made(), table()).places("range", "load", "third")] == [6, 11]


def test_a_table_from_a_file_and_several_tables(load, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(json.dumps(table()))
    assert load(made(), path).events == load(made(), table()).events
    assert load(made(), [path, table()]).events == load(made(), table()).events


def test_a_payload_that_was_not_captured_is_said_with_the_switch(load):
    findings = summarize(load(made(), table(runtime_payloads=False))).findings
    (finding,) = [one for one in findings if one.code == "payload-not-captured"]
    assert "the payload (i32) of 'load' was not captured" in finding.message
    assert "--runtime-payloads" in finding.remedy
    assert not finding.fails
    assert "payload-not-captured" not in {one.code for one in summarize(load(made(), table())).findings}


def test_events_that_never_happened_and_a_table_of_another_source(load):
    trace = load(Maker("first").range("whole", 0, 900).mark("other", 5).life(0, 999), table())
    found = {(one.code, one.name) for one in summarize(trace).findings}
    assert {("never-seen", "load"), ("never-seen", "step"), ("never-seen", "tok")} <= found
    assert ("not-in-table", "") in found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is no JSON"),
        ("[]", "is no event table"),
        ("{}", "is no event table"),
        ('{"schema": 2}', "is an event table of layout 2"),
        ('{"schema": 1, "sites": [], "events": [{"kind": "tick"}]}', "is no event table"),
        ('{"schema": 1, "sites": 5, "events": []}', "is no event table"),
    ],
)
def test_what_is_no_table(load, tmp_path, content, said):
    path = tmp_path / "table.json"
    path.write_text(content)
    with pytest.raises(iket_rewrite.TraceError, match=said):
        load(made(), path)


def test_a_table_that_is_not_there(load, tmp_path):
    with pytest.raises(iket_rewrite.TraceError, match="can not be read"):
        load(made(), tmp_path / "none.json")
