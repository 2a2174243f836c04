# SPDX-License-Identifier: Apache-2.0
"""Real captures from an H200.  What is expected is worked out here from the plain JSON, never by the library."""

from __future__ import annotations

import statistics
import struct
from collections import Counter, defaultdict

import numpy as np
import pytest
from made_traces import PUSH, REAL, launches, plain, real

import iket_rewrite
from iket_rewrite.tracing.model import kind_name
from iket_rewrite.tracing.summary import summarize


def spans(document, kernel, name):
    names = document["stringTable"]
    return [
        one["endTs"] - one["startTs"]
        for launch in launches(document)
        if launch["kernelName"] == kernel
        for one in launch["ranges"]
        if names[one["rangeNameIdx"]] == name
    ]


def row(summary, kernel, name):
    (found,) = [one for part in summary.kernels if part.kernel == kernel for one in part.ranges if one.name == name]
    return found


def test_there_are_captures():
    assert set(REAL) == {
        "clusters_divergence_graph",
        "extended_36_events",
        "native_all_payloads",
        "tilelang_gemm_sm90a",
        "tirx_affine",
    }


@pytest.mark.parametrize("name", REAL)
def test_every_record_arrives_in_the_order_of_the_file(name):
    document, trace = plain(name), iket_rewrite.load_trace(real(name))
    names, places = document["stringTable"], document["locationTable"]
    expected = [one for launch in launches(document) for one in launch["ranges"]]
    table, warps, where = trace.ranges, trace.warps, trace.locations
    assert len(table) == len(expected)
    for at, one in enumerate(expected):
        location = places[one["warpLocIdxs"][0]]
        row = warps.location[table.warp[at]]
        assert trace.names[table.name[at]] == names[one["rangeNameIdx"]]
        assert (table.start_ns[at], table.end_ns[at]) == (one["startTs"], one["endTs"])
        assert table.kind[at] == one["rangeType"]
        assert (where.cta[row].tolist(), where.warp[row]) == (location["ctaId"], location["warpId"])
        assert (where.sm[row], where.tpc[row], where.gpc[row]) == tuple(
            location[f"{key}Id"] for key in ("sm", "tpc", "gpc")
        )
        for end, event in (("start", one["internalEvents"][0]), ("end", one["internalEvents"][-1])):
            assert getattr(table, f"{end}_type")[at] == event.get("payloadType", 0)
            assert getattr(table, f"{end}_bits")[at] == event.get("payloadVal", 0)
            assert getattr(table, f"{end}_event")[at] == event["eventId"]
    marks = [one for launch in launches(document) for one in launch["markers"]]
    assert trace.markers.ns.tolist() == [one["timestamp"] for one in marks]
    assert [trace.names[number] for number in trace.markers.name] == [names[one["markerNameIdx"]] for one in marks]
    assert trace.markers.bits.tolist() == [one.get("payloadVal", 0) for one in marks]


@pytest.mark.parametrize("name", REAL)
def test_launches_and_lifetimes(name):
    document, trace = plain(name), iket_rewrite.load_trace(real(name))
    expected = launches(document)
    assert list(trace.launches.kernel) == [launch["kernelName"] for launch in expected]
    assert trace.launches.grid.tolist() == [[launch[f"gridDim{axis}"] for axis in "XYZ"] for launch in expected]
    assert trace.launches.block.tolist() == [[launch[f"blockDim{axis}"] for axis in "XYZ"] for launch in expected]
    assert list(trace.launches.graph) == [""] * len(document["launches"]) + [
        key for key, nodes in document["graphLaunches"].items() for _ in nodes
    ]
    for number, launch in enumerate(expected):
        stamps = [one[key] for one in launch["ranges"] + launch["warpLifetimes"] for key in ("startTs", "endTs")]
        assert (trace.launches.start_ns[number], trace.launches.end_ns[number]) == (min(stamps), max(stamps))
        rows = trace.launches.warps_of(number)
        lives = sorted((one["startTs"], one["endTs"]) for one in launch["warpLifetimes"])
        assert sorted(zip(trace.warps.start_ns[rows], trace.warps.end_ns[rows], strict=True)) == lives
        assert len(trace.ranges.name[trace.launches.ranges_of(number)]) == len(launch["ranges"])
        assert len(trace.markers.name[trace.launches.markers_of(number)]) == len(launch["markers"])


@pytest.mark.parametrize("name", REAL)
def test_statistics_of_every_range(name):
    document = plain(name)
    summary = summarize(iket_rewrite.load_trace(real(name)))
    seen = 0
    for kernel in {launch["kernelName"] for launch in launches(document)}:
        for event in document["stringTable"]:
            durations = sorted(spans(document, kernel, event))
            if not durations:
                continue
            seen += 1
            found = row(summary, kernel, event)
            assert found.duration.count == len(durations)
            assert found.duration.total_ns == sum(durations)
            assert found.duration.mean_ns == pytest.approx(statistics.fmean(durations))
            assert (found.duration.min_ns, found.duration.max_ns) == (durations[0], durations[-1])
            assert found.duration.median_ns == statistics.median(durations)
            assert found.duration.p95_ns == pytest.approx(np.percentile(durations, 95))
            assert found.at_tick == sum(one <= 32 for one in durations)
    assert seen


@pytest.mark.parametrize("name", REAL)
def test_own_times_are_what_a_second_by_second_count_says(name):
    """Each tick of a warp belongs to the range opened last, of two to the shorter; ranges last whole ticks here."""
    trace = iket_rewrite.load_trace(real(name))
    own = Counter()
    by_warp = defaultdict(list)
    for at in range(len(trace.ranges)):
        by_warp[int(trace.ranges.warp[at])].append(at)
    table = trace.ranges
    for rows in by_warp.values():
        first = min(int(table.start_ns[at]) for at in rows)
        last = max(int(table.end_ns[at]) for at in rows)
        for now in range(first, last, 32):
            opened = [at for at in rows if table.start_ns[at] <= now < table.end_ns[at]]
            if opened:
                own[max(opened, key=lambda at: (table.start_ns[at], -table.end_ns[at], at))] += 32
    assert table.own_ns.tolist() == [own[at] for at in range(len(table))]


def test_the_tirx_example_lasts_192_ns_and_its_marker_lies_64_ns_into_it():
    document = plain("tirx_affine")
    (launch,) = document["launches"]
    (one,), (mark,) = launch["ranges"], launch["markers"]
    assert one["endTs"] - one["startTs"] == 192
    assert mark["timestamp"] - one["startTs"] == 64
    trace = iket_rewrite.load_trace(real("tirx_affine"))
    assert trace.ranges.duration_ns.tolist() == [192]
    assert trace.markers.inside.tolist() == [0]
    (kernel,) = summarize(trace).kernels
    (interval,) = kernel.intervals
    assert (interval.kind, interval.first, interval.second) == ("range", "affine", "loaded")
    assert interval.duration.mean_ns == 64
    assert kernel.ranges[0].share == 192 / 320


def test_the_gemm_s_copy_range_is_empty_in_the_consumers_and_said_so():
    document = plain("tilelang_gemm_sm90a")
    (launch,) = document["launches"]
    warps = defaultdict(set)
    for one in launch["ranges"]:
        number = document["locationTable"][one["warpLocIdxs"][0]]["warpId"]
        warps[document["stringTable"][one["rangeNameIdx"]]].add(number)
    short = sum(one <= 32 for one in spans(document, "main_kernel", "copy"))
    assert (short, len(spans(document, "main_kernel", "copy"))) == (906, 1024)
    assert warps["copy"] == set(range(4, 12))
    summary = summarize(iket_rewrite.load_trace(real("tilelang_gemm_sm90a")))
    (finding,) = summary.findings
    assert (finding.code, finding.name, finding.count) == ("empty-range", "copy", 906)
    assert "warps 4-11" in finding.message
    assert "warps 0-3 record no range" in finding.remedy
    assert not summary.ok


def test_the_gemm_s_roles_and_balance():
    document = plain("tilelang_gemm_sm90a")
    (launch,) = document["launches"]
    places = document["locationTable"]
    lifetime = defaultdict(int)
    ends = defaultdict(int)
    ctas = defaultdict(list)
    for one in launch["warpLifetimes"]:
        place = places[one["locIdx"]]
        lifetime[place["warpId"] >= 4] += one["endTs"] - one["startTs"]
        ends[place["smId"]] = max(ends[place["smId"]], one["endTs"])
        ctas[tuple(place["ctaId"])] += [one["startTs"], one["endTs"]]
    (kernel,) = summarize(iket_rewrite.load_trace(real("tilelang_gemm_sm90a"))).kernels
    idle, busy = kernel.roles
    assert (idle.label, idle.ranges, idle.warps, idle.lifetime_ns) == ("warps 0-3", (), 64, lifetime[False])
    assert (busy.label, busy.warps, busy.lifetime_ns) == ("warps 4-11", 128, lifetime[True])
    assert busy.ranges == ("copy", "epilogue", "mma")
    assert row(summarize(iket_rewrite.load_trace(real("tilelang_gemm_sm90a"))), "main_kernel", "mma").share == (
        sum(spans(document, "main_kernel", "mma")) / lifetime[True]
    )
    (balance,) = kernel.balance
    times = [max(stamps) - min(stamps) for stamps in ctas.values()]
    assert (balance.ctas, balance.cta_max_ns, balance.cta_mean_ns) == (16, max(times), statistics.fmean(times))
    assert balance.tail_ns == max(ends.values()) - min(ends.values())
    total = (max(ends.values()) - min(one["startTs"] for one in launch["warpLifetimes"])) * len(ends)
    assert balance.tail_idle == pytest.approx(sum(max(ends.values()) - end for end in ends.values()) / total)


@pytest.mark.parametrize("name", ["native_all_payloads", "extended_36_events"])
def test_payloads_of_every_type_come_back(name):
    """The kernel recorded threadIdx-free values; their meaning is worked out from the bits with struct."""
    document, trace = plain(name), iket_rewrite.load_trace(real(name))
    layouts = {1: "<b", 2: "<B", 3: "<h", 4: "<H", 5: "<i", 6: "<I", 7: "<q", 13: "<f", 14: "<d", 16: "<Q"}
    seen = set()
    for at, mark in enumerate(document["launches"][0]["markers"]):
        if "payloadType" not in mark:
            assert trace.markers.payload(at) is None
            continue
        layout = layouts[mark["payloadType"]]
        seen.add(mark["payloadType"])
        raw = mark["payloadVal"].to_bytes(8, "little")[: struct.calcsize(layout)]
        assert trace.markers.payload(at) == struct.unpack(layout, raw)[0]
    assert seen == set(layouts)
    values = {}
    for at in range(len(trace.markers)):
        values.setdefault(trace.names[trace.markers.name[at]], []).append(trace.markers.payload(at))
    assert min(values["i8"]) < 0
    assert max(values["u64"]) > 2**53


def test_payloads_at_both_ends_of_a_token_range():
    trace = iket_rewrite.load_trace(real("native_all_payloads"))
    rows = [at for at in range(len(trace.ranges)) if trace.names[trace.ranges.name[at]] == "tokp"]
    pairs = sorted((trace.ranges.start_payload(at), trace.ranges.end_payload(at)) for at in rows)
    assert pairs == [(32 * at, 1000 + 32 * at) for at in range(8)]
    assert {kind_name(trace.ranges.kind[at]) for at in rows} == {"token_range"}


def test_graph_replays_and_clusters():
    trace = iket_rewrite.load_trace(real("clusters_divergence_graph"))
    assert [graph for graph in trace.launches.graph if graph] == ["graph_exec_2:0"] * 2 + ["graph_exec_2:1"] * 2
    (clustered,) = [one for one in summarize(trace).kernels if one.kernel == "clustered"]
    assert (len(clustered.launches), clustered.graph_launches) == (3, 2)
    assert (clustered.duration.count, clustered.warps) == (3, 32)
    push = trace.ranges.kind == PUSH
    # The token ranges of this kernel run inside its one push/pop range.
    assert set(trace.ranges.depth[push]) == {0}
    assert set(trace.ranges.depth[~push]) == {1}
