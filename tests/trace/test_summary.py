# SPDX-License-Identifier: Apache-2.0
"""Summaries: statistics, divisions, balance, and the findings with what calls them up and what does not."""

from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import TOKEN, Maker, real

import iket_rewrite
from iket_rewrite.tracing.statistics import covered, grouped
from iket_rewrite.tracing.summary import summarize


@pytest.fixture
def load(tmp_path):
    """Return a function that loads a document made by hand."""

    def load_it(*makers, **options):
        paths = [maker.write(tmp_path / f"{number}.trace.json") for number, maker in enumerate(makers)]
        return iket_rewrite.load_trace(paths, **options)

    return load_it


def codes(trace, **options):
    return [finding.code for finding in summarize(trace, **options).findings]


def full(maker, warps=1):
    """Give every warp a lifetime, so that nothing is missing."""
    for warp in range(warps):
        maker.life(0, 10_000, warp=(0, warp))
    return maker


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2**40)), max_size=60))
def test_grouped_statistics_are_those_of_the_standard_library(pairs):
    keys, values = np.array([key for key, _ in pairs], int), np.array([value for _, value in pairs], int)
    distinct, stats = grouped(keys, values)
    assert np.asarray(distinct).tolist() == sorted({key for key, _ in pairs})
    for key, one in zip(np.asarray(distinct).tolist(), stats, strict=True):
        own = [value for other, value in pairs if other == key]
        assert (one.count, one.total_ns, one.min_ns, one.max_ns) == (len(own), sum(own), min(own), max(own))
        assert one.mean_ns == pytest.approx(statistics.fmean(own))
        assert one.median_ns == pytest.approx(statistics.median(own))
        assert one.p95_ns == pytest.approx(np.percentile(own, 95))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(-3, 9)), max_size=30))
def test_covered_time_counts_every_instant_once(spans):
    keys, start, size = (np.array([one[part] for one in spans], np.int64) for part in range(3))
    distinct, time = covered(keys, start, start + size)
    for key, found in zip(np.asarray(distinct).tolist(), time.tolist(), strict=True):
        assert found == len({now for one in spans if one[0] == key for now in range(one[1], one[1] + one[2])})


def test_share_counts_overlaps_once_and_only_warps_that_have_the_range(load):
    maker = Maker(block=64).range("a", 0, 400, kind=TOKEN).range("a", 200, 600, kind=TOKEN)
    trace = load(maker.life(0, 1000).life(0, 1000, warp=(0, 1)))
    (row,) = summarize(trace).kernels[0].ranges
    assert (row.share, row.duration.total_ns, row.own_ns) == (0.6, 800, 600)


def test_own_time_leaves_out_what_is_nested(load):
    maker = full(Maker().range("outer", 0, 1000).range("inner", 100, 300).range("inner", 300, 700))
    rows = {row.name: row for row in summarize(load(maker)).kernels[0].ranges}
    assert rows["outer"].own_ns == 400
    assert rows["inner"].own_ns == 600


def test_by_payload_goes_by_value(load):
    maker = Maker()
    for value in (0xFFFFFFFF, 2, 1, 2):
        maker.range("a", 0, 64, payload=(5, value))
    maker.range("a", 0, 96)
    groups = summarize(load(full(maker)), by="payload").kernels[0].groups
    assert [(row.group, row.duration.count) for row in groups] == [("no payload", 1), ("-1", 1), ("1", 1), ("2", 2)]


def test_by_warp_is_by_role(load):
    maker = Maker(grid=2, block=96)
    for cta in (0, 1):
        maker.range("load", 0, 320, warp=(cta, 0))
        for warp in (1, 2):
            maker.range("mma", 0, 640, warp=(cta, warp)).range("wait", 640, 704, warp=(cta, warp))
        for warp in range(3):
            maker.life(0, 1000, warp=(cta, warp))
    (kernel,) = summarize(load(maker), by="warp").kernels
    assert [(role.label, role.warps, role.ranges) for role in kernel.roles] == [
        ("warp 0", 2, ("load",)),
        ("warps 1-2", 4, ("mma", "wait")),
    ]
    assert {(row.name, row.group, row.duration.count) for row in kernel.groups} == {
        ("load", "warp 0", 2),
        ("mma", "warps 1-2", 4),
        ("wait", "warps 1-2", 4),
    }


def test_roles_that_share_warp_numbers_are_called_by_their_ranges(load):
    maker = Maker(grid=2).range("a", 0, 64).range("b", 0, 64, warp=(1, 0)).life(0, 99).life(0, 99, warp=(1, 0))
    (kernel,) = summarize(load(maker)).kernels
    assert [role.label for role in kernel.roles] == ["a", "b"]


@pytest.mark.parametrize(
    ("by", "groups"),
    [
        ("cta", ["cta 0,0,0", "cta 1,0,0"]),
        ("sm", ["sm 0", "sm 1"]),
        ("launch", ["launch 0 (grid id 1)"]),
        ("process", ["0"]),
    ],
)
def test_by_place(load, by, groups):
    maker = Maker(grid=2).range("a", 0, 64).range("a", 0, 96, warp=(1, 0)).life(0, 99).life(0, 99, warp=(1, 0))
    (kernel,) = summarize(load(maker), by=by).kernels
    assert [row.group for row in kernel.groups] == groups


def test_sms_of_two_processes_are_two(load):
    trace = load(Maker().range("a", 0, 64).life(0, 99), Maker().range("a", 0, 96).life(0, 99))
    (kernel,) = summarize(trace, by="sm").kernels
    assert [(row.group, row.duration.mean_ns) for row in kernel.groups] == [("0: sm 0", 64), ("1: sm 0", 96)]


def test_intervals_between_markers_are_those_of_one_warp(load):
    maker = Maker(block=64)
    for warp, step in ((0, 100), (1, 200)):
        for number in range(3):
            maker.mark("a", number * 1000, warp=(0, warp)).mark("b", number * 1000 + step, warp=(0, warp))
    (kernel,) = summarize(load(full(maker, 2))).kernels
    found = {(one.first, one.second): one.duration for one in kernel.intervals}
    assert (found["a", "b"].count, found["a", "b"].mean_ns) == (6, 150)
    assert (found["b", "a"].count, found["b", "a"].min_ns, found["b", "a"].max_ns) == (4, 800, 900)
    assert [(row.name, row.count, row.warps) for row in kernel.markers] == [("a", 6, 2), ("b", 6, 2)]


def test_balance_and_tail(load):
    maker = Maker(grid=4, sms=2)
    for cta, (start, end) in enumerate([(0, 400), (0, 1000), (400, 600), (1000, 1200)]):
        maker.range("a", start, end, warp=(cta, 0)).life(start, end, warp=(cta, 0))
    (balance,) = summarize(load(maker)).kernels[0].balance
    assert (balance.ctas, balance.cta_mean_ns, balance.cta_max_ns, balance.slowest_cta) == (4, 450, 1000, (1, 0, 0))
    assert (balance.sms, balance.sm_mean_ns, balance.sm_max_ns, balance.busiest_sm) == (2, 900, 1200, 1)
    assert (balance.tail_ns, balance.tail_idle) == (600, 600 / 2400)
    assert balance.cta_imbalance == 1000 / 450


def test_several_launches_of_one_kernel(load):
    maker = Maker().range("a", 0, 100).life(0, 100).again().range("a", 500, 800).life(500, 800)
    (kernel,) = summarize(load(maker)).kernels
    assert (kernel.launches, kernel.duration.mean_ns, kernel.ranges[0].duration.mean_ns) == ((0, 1), 200, 200)
    assert len(kernel.balance) == 2


def test_a_kernel_is_chosen_by_pattern():
    trace = iket_rewrite.load_trace(real("clusters_divergence_graph"))
    assert [kernel.kernel for kernel in summarize(trace, kernel="div*").kernels] == ["divergent"]
    with pytest.raises(iket_rewrite.OptionError, match="matches 'gemm'") as caught:
        summarize(trace, kernel="gemm")
    assert "clustered, divergent" in caught.value.remedy
    with pytest.raises(iket_rewrite.OptionError, match="can not be divided by 'phase'"):
        summarize(trace, by="phase")


def test_a_sound_trace_has_no_findings(load):
    assert codes(load(full(Maker().range("a", 0, 640).mark("m", 3)))) == []


def test_short_ranges_are_noted_and_empty_ones_warned_of(load):
    some = full(Maker())
    for number in range(10):
        some.range("a", 0, 32 if number < 6 else 96)
    (finding,) = summarize(load(some)).findings
    assert (finding.code, finding.fails, finding.count) == ("tick", False, 6)
    assert "the mean (57.6 ns) does" in finding.message
    few = full(Maker())
    for number in range(10):
        few.range("a", 0, 32 if number < 4 else 96)
    assert codes(load(few)) == []


def test_a_range_is_judged_role_by_role(load):
    maker = Maker(block=64).range("copy", 0, 32).range("mma", 0, 900).range("copy", 0, 900, warp=(0, 1))
    summary = summarize(load(full(maker, 2)))
    (finding,) = summary.findings
    assert finding.code == "empty-range"
    assert "in warp 0:" in finding.message
    assert "record no range" not in finding.remedy


def test_lost_warps(load):
    trace = load(Maker(grid=2, block=48).range("a", 0, 640).life(0, 999).life(0, 999, warp=(0, 1)))
    (finding,) = summarize(trace).findings
    assert (finding.code, finding.count, finding.fails) == ("lost-warps", 2, True)
    limited = Maker(grid=2).range("a", 0, 640).life(0, 999).again(singleClusterActive=1)
    trace = load(limited.range("a", 0, 640).life(0, 999))
    assert codes(trace) == ["lost-warps", "single-cluster"]


def test_events_without_a_lifetime(load):
    trace = load(Maker(grid=0).range("a", 0, 640))
    assert codes(trace) == ["no-lifetime"]
    assert summarize(trace).kernels[0].ranges[0].share is None


def test_a_warp_without_a_lifetime_is_not_lost_where_its_events_are_there(load):
    maker = Maker(block=64).range("a", 0, 640).life(0, 999).range("a", 0, 640, warp=(0, 1))
    (finding,) = summarize(load(maker)).findings
    assert (finding.code, finding.count, finding.fails) == ("no-lifetime", 1, False)
    assert codes(load(Maker(grid=2, block=64).range("a", 0, 640).life(0, 9999, warp=(0, 1)))) == [
        "lost-warps",
        "no-lifetime",
    ]


def test_a_trace_without_launches(tmp_path):
    path = tmp_path / "t.trace.json"
    path.write_text('{"launches": [], "graphLaunches": {}}')
    (finding,) = summarize(iket_rewrite.load_trace(path)).findings
    assert (finding.code, finding.fails) == ("no-launches", True)


def test_stamps_of_no_clock_do_not_overflow_the_sums(load):
    stamp = 1_795_962_938_344_021_312
    maker = Maker(block=8 * 32)
    for warp in range(8):
        maker.range("open", stamp, 0, warp=(0, warp)).range("early", 0, stamp, warp=(0, warp))
        maker.life(0, stamp, warp=(0, warp))
    (kernel,) = summarize(load(maker), by="sm").kernels
    for row, sign in zip(sorted(kernel.ranges, key=lambda row: row.name), (1, -1), strict=True):
        assert (row.duration.total_ns, row.duration.mean_ns) == (sign * 8 * stamp, sign * float(stamp))
        assert row.at_tick == 0
        assert row.share == (1.0 if sign > 0 else 0.0)
    assert kernel.lifetime_ns == 8 * stamp
    assert [role.lifetime_ns for role in kernel.roles] == [8 * stamp]


def test_not_a_number_is_one_payload_whatever_its_bits(load):
    maker = full(Maker())
    for number, bits in enumerate((0x7FC00000, 0xFFC00001, 0x7F800000, 0x7FC00000)):
        maker.range("a", 640 * number, 640 * number + 320, payload=(13, bits))
    (kernel,) = summarize(load(maker), by="payload").kernels
    assert [(row.group, row.duration.count) for row in kernel.groups] == [("inf", 1), ("nan", 3)]


def test_launches_without_events(load):
    (finding,) = summarize(load(full(Maker().range("a", 0, 640)).again().life(0, 9))).findings
    assert (finding.code, finding.count) == ("no-events", 1)
    assert "1 of 2 launches" in finding.message


def test_unmatched_ranges(load):
    maker = full(Maker().range("a", 0, 640).range("b", 0, 640, kind=TOKEN).range("c", 0, 640))
    one, two, three = maker.launch["ranges"]
    one["internalEvents"].pop()
    two["internalEvents"][1]["eventId"] = 9
    three["internalEvents"][1]["eventId"] = 3
    findings = summarize(load(maker)).findings
    assert [(finding.code, finding.name) for finding in findings] == [("unmatched", name) for name in "abc"]


def test_stamps_that_go_backwards(load):
    assert codes(load(full(Maker().range("a", 640, 0)))) == ["backwards"]
    assert "backwards" in codes(load(Maker().range("a", 0, 640).life(700, 0)))


def test_events_outside_their_warp_s_lifetime(load):
    (finding,) = summarize(load(Maker().range("a", 0, 640).mark("m", 700).life(10, 650))).findings
    assert (finding.code, finding.count) == ("outside-lifetime", 2)


def test_crossing_ranges(load):
    (finding,) = summarize(load(full(Maker().range("a", 0, 640).range("b", 320, 960)))).findings
    assert (finding.code, finding.name) == ("crossing", "b")


def test_payload_types_that_nobody_has_tried(load):
    assert codes(load(full(Maker().mark("m", 0, payload=(9, 3))))) == ["payload-type"]


def test_clocks_of_several_processes(load):
    assert codes(load(full(Maker().range("a", 0, 640)), full(Maker().range("a", 0, 640)))) == ["clocks"]


def test_a_layout_from_the_future(tmp_path):
    document = full(Maker().range("a", 0, 640)).document()
    document["meta"]["version"] = 2
    path = tmp_path / "t.trace.json"
    path.write_text(__import__("json").dumps(document))
    assert codes(iket_rewrite.load_trace(path)) == ["layout-version"]
