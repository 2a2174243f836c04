# SPDX-License-Identifier: Apache-2.0
"""Two traces side by side, and several processes on one clock."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from made_traces import Maker, plain, real

import iket_rewrite
from iket_rewrite.tracing.align import align
from iket_rewrite.tracing.compare import compare


@pytest.fixture
def load(tmp_path):
    """Return a function that loads a document made by hand."""
    count = iter(range(100))

    def load_it(*makers):
        return iket_rewrite.load_trace([maker.write(tmp_path / f"{next(count)}.trace.json") for maker in makers])

    return load_it


def runs(mean, seed, *, launches=12, kernel="made", noise=40):
    """A kernel launched several times; each launch has its own speed, and its 8 ranges follow it closely."""
    dice = random.Random(seed)
    maker = Maker(kernel)
    for launch in range(launches):
        pace, now = mean + dice.gauss(0, noise), launch * 100_000
        first = now
        for _ in range(8):
            end = now + round(pace + dice.gauss(0, 4))
            maker.range("work", now, end)
            now = end
        maker.life(first, now)
        if launch + 1 < launches:
            maker.again()
    return maker


def verdicts(comparison):
    return {(row.name or row.kind): row.verdict for row in comparison.rows}


def test_the_same_trace_twice_is_noise_with_a_ratio_of_one(load):
    trace = load(runs(1000, 1))
    assert [(row.ratio, row.verdict) for row in compare(trace, trace).rows] == [(1.0, "noise")] * 2


def test_a_difference_beyond_the_repetitions_is_told(load):
    assert verdicts(compare(load(runs(1000, 1)), load(runs(1500, 2)))) == {"launch": "slower", "work": "slower"}
    assert verdicts(compare(load(runs(1500, 1)), load(runs(1000, 2)))) == {"launch": "faster", "work": "faster"}


def test_no_difference_is_called_noise_about_as_often_as_promised(load):
    false = sum(
        row.verdict != "noise"
        for seed in range(40)
        for row in compare(load(runs(1000, seed)), load(runs(1000, 1000 + seed))).rows
        if row.name == "work"
    )
    # One in twenty is expected; one in six would be a wrong formula (counting instances gives one in two).
    assert false <= 6


def test_the_error_counts_launches_not_instances(load):
    maker = runs(1000, 3)
    row = compare(load(maker), load(maker)).rows[1]
    means = [
        statistics.fmean(one["endTs"] - one["startTs"] for one in launch["ranges"])
        for launch in maker.document()["launches"]
    ]
    expected = statistics.stdev(means) / math.sqrt(len(means))
    assert (row.before.repetitions, row.before.unit, row.before.count) == (12, "launch", 96)
    assert row.before.error_ns == pytest.approx(math.hypot(expected, 32 / math.sqrt(6 * 96)))


def test_one_repetition_tells_nothing(load):
    one = Maker().range("a", 0, 640).life(0, 700)
    rows = compare(load(one), load(one)).rows
    assert [(row.spread, row.verdict) for row in rows] == [(None, "unknown")] * 2


def test_ctas_stand_in_for_launches(load):
    maker = Maker(grid=6)
    for cta in range(6):
        maker.range("a", 0, 640 + 32 * cta, warp=(cta, 0)).life(0, 999, warp=(cta, 0))
    row = compare(load(maker), load(maker)).rows[1]
    assert (row.before.repetitions, row.before.unit) == (6, "cta")


def test_what_one_trace_lacks(load):
    before = Maker("k").range("a", 0, 640).range("old", 0, 64).life(0, 700)
    after = Maker("k").range("a", 0, 640).range("new", 0, 64).life(0, 700)
    found = verdicts(compare(load(before), load(after)))
    assert (found["old"], found["new"]) == ("only before", "only after")


def test_kernels_are_matched_by_name_and_single_ones_by_being_single(load):
    two = compare(load(runs(900, 1, kernel="a")), load(runs(900, 1, kernel="b")))
    assert two.renamed == ("a", "b")
    assert verdicts(two) == {"launch": "noise", "work": "noise"}
    clusters = iket_rewrite.load_trace(real("clusters_divergence_graph"))
    apart = compare(clusters, load(runs(900, 1, kernel="clustered")))
    assert apart.renamed is None
    assert {row.verdict for row in apart.rows if row.kernel == "divergent"} == {"only before"}


def test_a_pattern_that_matches_nothing(load):
    trace = load(runs(900, 1))
    with pytest.raises(iket_rewrite.OptionError, match="no kernel's name matches 'x'"):
        compare(trace, trace, kernel="x")
    assert len(compare(trace, trace, kernel="m*").rows) == 2


def ranks(*shifts, barriers=4, jitter=0):
    """One process per shift; all pass the barrier at the same moments, on clocks that differ by the shift."""
    dice = random.Random(5)
    makers = []
    for shift in shifts:
        maker = Maker(block=64)
        for warp in (0, 1):
            for number in range(barriers):
                late = 0 if warp == 0 and shift == shifts[0] else dice.randint(0, jitter) if jitter else 0
                maker.mark("barrier", 10_000 * (number + 1) + shift + late + 8 * warp, warp=(0, warp))
            maker.range("work", 9000 + shift, 9640 + shift, warp=(0, warp)).life(shift, 90_000 + shift, warp=(0, warp))
        makers.append(maker)
    return makers


def test_alignment_takes_the_shift_out(load):
    trace = align(load(*ranks(0, 5_000_000, 123)), "barrier")
    assert [process.shift_ns for process in trace.processes] == [0, -5_000_000, -123]
    assert (trace.alignment.epochs, trace.alignment.error_ns, trace.alignment.spread_ns) == (4, 0, 8)
    assert trace.ranges.start_ns.tolist() == [9000] * 6
    assert set(trace.launches.start_ns.tolist()) == {0}
    assert set(trace.warps.end_ns.tolist()) == {90_000}
    assert trace.ranges.duration_ns.tolist() == [640] * 6


def test_the_remaining_error_is_what_the_stamps_say(load):
    makers = ranks(0, 777, jitter=50)
    stamps = []
    for maker in makers:
        by_epoch = {}
        for number, mark in enumerate(maker.launch["markers"]):
            by_epoch.setdefault(number % 4, []).append(mark["timestamp"])
        stamps.append([min(by_epoch[epoch]) for epoch in range(4)])
    shift = int(statistics.median(a - b for a, b in zip(*stamps, strict=True)))
    trace = align(load(*makers), "barrier")
    assert trace.processes[1].shift_ns == shift
    assert trace.alignment.error_ns == max(abs(a - b - shift) for a, b in zip(*stamps, strict=True))


def test_one_passing_leaves_the_error_unknown(load):
    assert align(load(*ranks(0, 9, barriers=1)), "barrier").alignment.error_ns is None


def test_passings_are_matched_launch_by_launch(load):
    """The second process launches the kernel once more, and its first launch does not pass the marker."""
    one = Maker().mark("b", 1000).life(0, 2000).again().mark("b", 5000).life(4000, 6000)
    other = Maker().life(0, 50).again().mark("b", 1007).life(0, 2000).again().mark("b", 5007).life(4000, 6000)
    trace = align(load(one, other), "b")
    assert (trace.alignment.epochs, trace.processes[1].shift_ns) == (2, -7)
    # Nothing was recorded in it but a lifetime; launches without any record keep their zeros.
    assert trace.launches.start_ns[2] == -7


def test_what_can_not_be_aligned(load):
    with pytest.raises(iket_rewrite.OptionError, match="one process only"):
        align(iket_rewrite.load_trace(real("tirx_affine")), "loaded")
    with pytest.raises(iket_rewrite.OptionError, match="no marker is named 'fence'") as caught:
        align(load(*ranks(0, 1)), "fence")
    assert "barrier" in caught.value.remedy
    with pytest.raises(iket_rewrite.OptionError, match="does not pass the marker 'barrier'"):
        align(load(*ranks(0), Maker().mark("other", 5)), "barrier")


def test_real_captures_align_on_a_marker_of_both():
    trace = iket_rewrite.load_trace([real("native_all_payloads"), real("extended_36_events")])
    firsts = []
    for name in ("native_all_payloads", "extended_36_events"):
        document = plain(name)
        index = document["stringTable"].index("m")
        firsts.append(
            min(one["timestamp"] for one in document["launches"][0]["markers"] if one["markerNameIdx"] == index)
        )
    aligned = align(trace, "m")
    assert [process.shift_ns for process in aligned.processes] == [0, firsts[0] - firsts[1]]
