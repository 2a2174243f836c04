# SPDX-License-Identifier: Apache-2.0
"""Every form in which a trace comes: current and older layout, compressed, a folder, several processes, new keys."""

from __future__ import annotations

import gzip
import json
import shutil

import numpy as np
import pytest
from made_traces import PUSH, REAL, TOKEN, Maker, older, plain, real

import iket_rewrite
from iket_rewrite.tracing import layout

COLUMNS = (
    "start_ns",
    "end_ns",
    "kind",
    "start_type",
    "start_bits",
    "end_type",
    "end_bits",
    "own_ns",
    "depth",
    "events",
)


def load(document, folder, name="t.trace.json", **options):
    path = folder / name
    path.write_text(json.dumps(document), encoding="utf-8")
    return iket_rewrite.load_trace(path, **options)


def content(trace):
    """What a trace says, whatever the numbers of its rows."""
    where = trace.locations

    def place(warp):
        row = trace.warps.location[warp]
        return (int(trace.warps.launch[warp]), *where.cta[row].tolist(), int(where.warp[row]), int(where.sm[row]))

    ranges = [
        (
            trace.names[trace.ranges.name[at]],
            place(trace.ranges.warp[at]),
            *(getattr(trace.ranges, key)[at] for key in COLUMNS),
        )
        for at in range(len(trace.ranges))
    ]
    marks = [
        (
            trace.names[trace.markers.name[at]],
            place(trace.markers.warp[at]),
            trace.markers.ns[at],
            trace.markers.payload(at),
        )
        for at in range(len(trace.markers))
    ]
    lives = [(place(at), trace.warps.start_ns[at], trace.warps.end_ns[at]) for at in range(len(trace.warps))]
    return ranges, marks, sorted(lives), trace.launches.kernel, trace.launches.graph


@pytest.mark.parametrize("name", REAL)
def test_the_older_layout_says_the_same(name, tmp_path):
    assert content(load(older(plain(name)), tmp_path)) == content(iket_rewrite.load_trace(real(name)))


@pytest.mark.parametrize("name", REAL)
def test_small_chunks_say_the_same(name, monkeypatch):
    whole = content(iket_rewrite.load_trace(real(name)))
    monkeypatch.setattr(layout, "CHUNK", 3)
    assert content(iket_rewrite.load_trace(real(name))) == whole


def test_the_older_documentation_s_example(tmp_path):
    """It shows launches without dimensions, ranges without a type and without events."""
    place = {"smId": 0, "tpcId": 0, "gpcId": 0, "ctaId": [0, 0, 0], "warpId": 0}
    document = {
        "launches": [
            {
                "gridId": 0,
                "kernelName": "my_kernel",
                "ranges": [
                    {
                        "rangeName": "mainloop",
                        "rangeScope": 0,
                        "startTs": 1000,
                        "endTs": 2500,
                        "warpLocs": [place],
                        "internalEvents": [],
                    }
                ],
                "markers": [
                    {
                        "markerName": "checkpoint",
                        "timestamp": 1500,
                        "location": place,
                        "payloadType": 0,
                        "payloadVal": 0,
                    }
                ],
                "warpLifetimes": [{"startTs": 900, "endTs": 3800, "warpLocation": place}],
            }
        ]
    }
    trace = load(document, tmp_path)
    assert trace.names == ("mainloop", "checkpoint")
    assert trace.ranges.duration_ns.tolist() == [1500]
    assert trace.ranges.kind.tolist() == [PUSH]
    assert trace.ranges.start_payload(0) is None
    assert trace.markers.inside.tolist() == [0]
    assert trace.launches.grid.tolist() == [[0, 0, 0]]


def test_the_older_layout_tells_token_ranges_by_their_ends(tmp_path):
    document = older(Maker().range("a", 0, 32, kind=TOKEN).range("b", 0, 32).document())
    for one in document["launches"][0]["ranges"]:
        del one["rangeType"]
    assert load(document, tmp_path).ranges.kind.tolist() == [TOKEN, PUSH]


def test_a_compressed_file(tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(real("tirx_affine").read_bytes()))
    assert content(iket_rewrite.load_trace(path)) == content(iket_rewrite.load_trace(real("tirx_affine")))


def test_a_compressed_file_under_a_plain_name(tmp_path):
    path = tmp_path / "t.trace.json"
    path.write_bytes(gzip.compress(real("tirx_affine").read_bytes()))
    assert len(iket_rewrite.load_trace(str(path)).ranges) == 1


def test_a_folder_as_run_iket_leaves_it(tmp_path):
    (tmp_path / "postprocess").mkdir()
    for pid in ("0x1a", "0x2b"):
        shutil.copy(real("tirx_affine"), tmp_path / "postprocess" / f"iket_pid_{pid}.trace.json")
    (tmp_path / "iket.data.json").write_text("{}")
    trace = iket_rewrite.load_trace(tmp_path)
    assert [process.label for process in trace.processes] == ["pid 0x1a", "pid 0x2b"]
    assert [process.pid for process in trace.processes] == ["0x1a", "0x2b"]


def test_several_processes_are_put_together(tmp_path):
    first = Maker("a").range("x", 0, 64).range("y", 64, 128).mark("m", 32).life(0, 128).write(tmp_path / "a.trace.json")
    second = Maker("b").range("y", 0, 32).range("x", 32, 64).mark("m", 48).life(0, 64).write(tmp_path / "b.trace.json")
    trace = iket_rewrite.load_trace([first, second])
    assert trace.launches.process.tolist() == [0, 1]
    assert [trace.names[name] for name in trace.ranges.name] == ["x", "y", "y", "x"]
    assert trace.warps.launch[trace.ranges.warp].tolist() == [0, 0, 1, 1]
    assert trace.markers.inside.tolist() == [0, 3]
    # The same CTA and warp, but of two launches.
    assert len(set(trace.ranges.warp.tolist())) == 2
    assert trace.alignment is None


def test_labels_are_unique_without_pids(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        Maker().range("x", 0, 1).write(tmp_path / folder / "t.trace.json")
    trace = iket_rewrite.load_trace([tmp_path / "a" / "t.trace.json", tmp_path / "b"])
    assert [process.label for process in trace.processes] == ["t", "t #2"]


def test_keys_that_nobody_knows_are_kept_aside(tmp_path):
    maker = Maker().range("x", 0, 32).range("x", 32, 64, colour_scheme="dark").mark("m", 5, weight=[1, 2]).life(0, 99)
    document = maker.document()
    document["futureTable"] = {"a": 1}
    document["meta"]["producer"] = "run-iket 9"
    document["launches"][0]["stream"] = 7
    document["launches"][0]["ranges"][0]["internalEvents"][1]["lane"] = 31
    document["locationTable"][0]["dieId"] = 2
    trace = load(document, tmp_path)
    assert trace.processes[0].extra == {"futureTable": {"a": 1}, "meta": {"producer": "run-iket 9"}}
    assert trace.launches.extra == {"stream": {0: 7}}
    assert trace.ranges.extra == {"colour_scheme": {1: "dark"}, "internalEvents[1].lane": {0: 31}}
    assert trace.markers.extra == {"weight": {0: [1, 2]}}
    assert trace.locations.extra == {"dieId": {0: 2}}
    assert trace.ranges.duration_ns.tolist() == [32, 32]


def test_rows_of_unknown_keys_count_over_launches_and_files(tmp_path):
    def made(name):
        maker = Maker().range("x", 0, 32).again().range("x", 32, 64).range("x", 64, 96, hint=name)
        return maker.write(tmp_path / f"{name}.trace.json")

    trace = iket_rewrite.load_trace([made("a"), made("b")])
    assert trace.ranges.extra == {"hint": {2: "a", 5: "b"}}


def test_clusters_and_a_limited_capture(tmp_path):
    document = Maker(grid=8).range("x", 0, 32).document()
    document["launches"][0] |= {"enabledCluster": {"x": 2, "y": 0, "z": 0}, "singleClusterActive": 1}
    document["locationTable"][0]["clusterId"] = [2, 0, 0]
    trace = load(document, tmp_path)
    assert trace.launches.cluster.tolist() == [[2, 0, 0]]
    assert trace.launches.single_cluster.tolist() == [True]
    assert trace.locations.cluster.tolist() == [[2, 0, 0]]


def test_a_range_over_two_warps_and_one_of_many_events(tmp_path):
    maker = Maker(block=64).range("wide", 0, 96, kind=TOKEN).range("pipe", 32, 64, kind=3).life(0, 99, warp=(0, 1))
    document = maker.document()
    wide, pipe = document["launches"][0]["ranges"]
    wide["warpLocIdxs"] = [0, 1]
    pipe["internalEvents"].insert(1, {"eventId": 9, "timestamp": 48})
    pipe["warpLocIdxs"] = [0, 0, 0]
    trace = load(document, tmp_path)
    assert trace.locations.warp[trace.warps.location[trace.ranges.end_warp]].tolist() == [1, 0]
    assert trace.ranges.events.tolist() == [2, 3]


def test_a_launch_without_anything(tmp_path):
    trace = load(Maker().document(), tmp_path)
    assert trace.launches.recorded.tolist() == [False]
    assert (len(trace.ranges), len(trace.markers), len(trace.warps)) == (0, 0, 0)
    assert trace.launches.start_ns.tolist() == [0]


def test_no_launch_at_all(tmp_path):
    trace = load({"launches": [], "stringTable": [], "locationTable": []}, tmp_path)
    assert len(trace.launches) == 0


def test_stamps_keep_every_bit(tmp_path):
    high = 2**62 + 1
    trace = load(Maker().range("x", high, high + 32).document(), tmp_path)
    assert trace.ranges.start_ns.tolist() == [high]
    assert trace.ranges.start_ns.dtype == np.int64


def test_progress_ends_at_one(tmp_path):
    seen = []
    iket_rewrite.load_trace(real("tilelang_gemm_sm90a"), progress=seen.append)
    assert seen == sorted(seen)
    assert 0.9 < seen[-1] <= 1


@pytest.mark.parametrize("table", ["ranges", "markers", "warps", "launches"])
def test_frames(table):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    trace = iket_rewrite.load_trace(real("native_all_payloads"))
    one, other = trace.to_pandas(table), trace.to_polars(table)
    assert len(one) == len(other) == len(getattr(trace, table))
    assert list(one.columns) == other.columns
    assert list(one["kernel"]) == other["kernel"].to_list() == ["k"] * len(one)


def test_frames_hold_exact_payloads():
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    trace = iket_rewrite.load_trace(real("native_all_payloads"))
    frame = trace.to_pandas("markers")
    assert sorted(frame[frame.name == "u64"].payload) == sorted(
        one["payloadVal"]
        for one in plain("native_all_payloads")["launches"][0]["markers"]
        if one.get("payloadType") == 16
    )
    assert set(frame[frame.name == "i8"].payload_type) == {"i8"}
    texts = trace.to_polars("markers")
    assert texts["payload"].to_list() == [None if value is None else str(value) for value in frame.payload]


def test_an_unknown_frame():
    trace = iket_rewrite.load_trace(real("tirx_affine"))
    with pytest.raises(iket_rewrite.OptionError, match="no table 'events'"):
        trace.to_pandas("events")


def test_a_trace_says_what_it_is_in_one_line():
    trace = iket_rewrite.load_trace(real("clusters_divergence_graph"))
    assert repr(trace) == "Trace(1 processes, 6 launches, 44 warps, 140 ranges, 50 markers)"
