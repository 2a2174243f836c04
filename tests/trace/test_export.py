# SPDX-License-Identifier: Apache-2.0
"""Files for viewers, read back: no slice lost, none overlapping another on its track."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict

import pytest
from made_traces import REAL, TOKEN, TRACES, Maker, launches, plain, real
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

import iket_rewrite
from iket_rewrite.rewriting.table import event_table
from iket_rewrite.tracing.align import align
from iket_rewrite.tracing.export_chrome import chrome_bytes
from iket_rewrite.tracing.export_perfetto import perfetto_bytes

#: Ranges of the captures that come with NVIDIA's own Perfetto file.
NAMES = {"clusters_divergence_graph": {"outer", "stage"}, "tilelang_gemm_sm90a": {"copy", "mma", "epilogue"}}


class Perfetto:
    """A Perfetto file as a viewer takes it in: stable in time, one stack per track."""

    def __init__(self, data: bytes) -> None:
        trace = protos.Trace()
        trace.ParseFromString(data)
        self.tracks, self.slices, self.instants = {}, [], []
        names, arguments = {}, {}
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id
            names |= {one.iid: one.name for one in packet.interned_data.event_names}
            arguments |= {one.iid: one.name for one in packet.interned_data.debug_annotation_names}
            if packet.HasField("track_descriptor"):
                assert packet.track_descriptor.uuid not in self.tracks
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        stacks = defaultdict(list)
        events = [packet for packet in trace.packet if packet.HasField("track_event")]
        for packet in sorted(events, key=lambda one: one.timestamp):
            event = packet.track_event
            assert event.track_uuid in self.tracks
            values = {arguments[one.name_iid]: getattr(one, one.WhichOneof("value")) for one in event.debug_annotations}
            name = event.name or names.get(event.name_iid)
            if event.type == event.TYPE_SLICE_BEGIN:
                stacks[event.track_uuid].append((name, packet.timestamp, values))
            elif event.type == event.TYPE_SLICE_END:
                name, start, values = stacks[event.track_uuid].pop()
                self.slices.append((self.path(event.track_uuid), name, start, packet.timestamp, values))
            else:
                self.instants.append((self.path(event.track_uuid), name, packet.timestamp, values))
        assert not any(stacks.values())

    def path(self, uuid):
        track = self.tracks[uuid]
        if not track.parent_uuid:
            return (track.process.process_name,)
        return (*self.path(track.parent_uuid), track.name)


def expected(document, key):
    """Return (launch, SM, CTA, warp, name, start, end) of every range, counted, from the plain JSON."""
    names, places = document["stringTable"], document["locationTable"]
    found = []
    for number, launch in enumerate(launches(document)):
        for one in launch[key]:
            place = places[one["warpLocIdxs"][0] if key == "ranges" else one["locIdx"]]
            name = names[one["rangeNameIdx"] if key == "ranges" else one["markerNameIdx"]]
            stamps = (one["startTs"], one["endTs"]) if key == "ranges" else (one["timestamp"],)
            found.append((number, place["smId"], ",".join(map(str, place["ctaId"])), place["warpId"], name, *stamps))
    return Counter(found)


def base(document):
    return min(one["startTs"] for launch in launches(document) for one in launch["ranges"] + launch["warpLifetimes"])


def where(path):
    title, sm, cta, warp, *_ = path
    number = int(title.split("(launch ")[1].split(")")[0].split(",")[0])
    return number, int(sm.removeprefix("SM ")), cta.removeprefix("CTA "), int(warp.removeprefix("warp "))


@pytest.mark.parametrize("name", REAL)
def test_no_slice_is_lost_in_perfetto(name):
    document = plain(name)
    file = Perfetto(perfetto_bytes(iket_rewrite.load_trace(real(name))))
    zero = base(document)
    ranges = [one for one in file.slices if one[0][-1] != "lifetime"]
    found = Counter((*where(path), event, start + zero, end + zero) for path, event, start, end, _ in ranges)
    assert found == expected(document, "ranges")
    marks = Counter((*where(path), event, at + zero) for path, event, at, _ in file.instants)
    assert marks == expected(document, "markers")
    lives = [one for one in file.slices if one[0][-1] == "lifetime"]
    assert len(lives) == sum(len(launch["warpLifetimes"]) for launch in launches(document))


@pytest.mark.parametrize("name", REAL)
def test_no_slice_is_lost_in_chrome_s_format(name):
    document = plain(name)
    events = json.loads(chrome_bytes(iket_rewrite.load_trace(real(name))))["traceEvents"]
    threads = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    zero = base(document)

    def place(one):
        sm, cta, warp, *_ = threads[one["pid"], one["tid"]].split(" / ")
        return one["pid"] - 1, int(sm.split()[1]), cta.split()[1], int(warp.split()[1])

    def stamp(microseconds):
        return round(microseconds * 1000) + zero

    ranges = [one for one in events if one["ph"] == "X" and one["name"] != "warp"]
    found = Counter((*place(one), one["name"], stamp(one["ts"]), stamp(one["ts"] + one["dur"])) for one in ranges)
    assert found == expected(document, "ranges")
    marks = Counter((*place(one), one["name"], stamp(one["ts"])) for one in events if one["ph"] == "i")
    assert marks == expected(document, "markers")
    by_thread = defaultdict(list)
    for one in events:
        if one["ph"] == "X":
            by_thread[one["pid"], one["tid"]].append((round(one["ts"] * 1000), round((one["ts"] + one["dur"]) * 1000)))
    for spans in by_thread.values():
        assert_nested(spans)


def assert_nested(spans):
    stack = []
    for start, end in spans:
        while stack and stack[-1] <= start:
            stack.pop()
        assert not stack or end <= stack[-1], spans
        stack.append(end)


def test_overlapping_token_ranges_get_tracks_of_their_own(tmp_path):
    maker = Maker().range("outer", 0, 400).life(0, 500)
    for start in (0, 10, 20, 100):
        maker.range("tile", start, start + 60, kind=TOKEN)
    trace = iket_rewrite.load_trace(maker.range("other", 5, 300, kind=TOKEN).write(tmp_path / "t.trace.json"))
    tracks = defaultdict(list)
    for path, name, start, end, _ in Perfetto(perfetto_bytes(trace)).slices:
        tracks[path[4:]].append((name, start, end))
    assert tracks == {
        (): [("outer", 0, 400)],
        ("tile",): [("tile", 0, 60), ("tile", 100, 160)],
        ("tile #2",): [("tile", 10, 70)],
        ("tile #3",): [("tile", 20, 80)],
        ("other",): [("other", 5, 300)],
        ("lifetime",): [("warp", 0, 500)],
    }


def test_a_range_that_is_called_like_another_track_is_kept_apart(tmp_path):
    maker = Maker().range("lifetime", 0, 90, kind=TOKEN).life(10, 500)
    file = Perfetto(perfetto_bytes(iket_rewrite.load_trace(maker.write(tmp_path / "t.trace.json"))))
    assert len(file.slices) == 2
    behaviours = {track.sibling_merge_behavior for track in file.tracks.values()}
    assert behaviours == {protos.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE}


def test_crossing_push_ranges_are_all_drawn(tmp_path):
    maker = Maker().range("a", 0, 100).range("b", 50, 150).range("c", 60, 90).range("a", 150, 160)
    trace = iket_rewrite.load_trace(maker.write(tmp_path / "t.trace.json"))
    found = {(path[4:], name, start, end) for path, name, start, end, _ in Perfetto(perfetto_bytes(trace)).slices}
    assert found == {
        ((), "a", 0, 100),
        (("b",), "b", 50, 150),
        ((), "c", 60, 90),
        ((), "a", 150, 160),
    }


def test_empty_and_equal_ranges_keep_their_order(tmp_path):
    maker = Maker().range("outer", 0, 64).range("empty", 0, 0).range("inner", 0, 64).range("last", 64, 64)
    trace = iket_rewrite.load_trace(maker.write(tmp_path / "t.trace.json"))
    found = [(name, start, end) for _, name, start, end, _ in Perfetto(perfetto_bytes(trace)).slices]
    assert sorted(found) == [("empty", 0, 0), ("inner", 0, 64), ("last", 64, 64), ("outer", 0, 64)]


def annotated(tmp_path):
    source = '#include <iket_rewrite/iket.cuh>\n__global__ void k() {\n  IKET_MARK("m");\n  IKET_RANGE("r");\n}\n'
    maker = Maker("k").range("r", 0, 96, payload=(16, 2**63 + 1), rangeColor=0xFF0000)
    maker.mark("m", 1, payload=(15, 0x7F00)).mark("m", 2, payload=(13, 0x7FC00000), color=0x00FF00)
    maker.mark("m", 3, payload=(1, 248)).mark("m", 4, payload=(14, 0x3FB999999999999A))
    path = maker.write(tmp_path / "t.trace.json")
    return iket_rewrite.load_trace(path, events=event_table(iket_rewrite.rewrite(source, path="k.cu").plan))


def test_arguments_in_perfetto(tmp_path):
    file = Perfetto(perfetto_bytes(annotated(tmp_path)))
    ((_, _, _, _, values),) = file.slices
    assert values == {
        "payload": 2**63 + 1,
        "payload_type": "u64",
        "own_ns": 96,
        "source": "k.cu:4",
        "color": "#ff0000",
    }
    pointer, nan, negative, double = [values for _, _, _, values in file.instants]
    assert pointer == {"payload": 0x7F00, "payload_type": "pointer", "source": "k.cu:3"}
    assert nan["payload"] != nan["payload"]
    assert nan["color"] == "#00ff00"
    assert (negative["payload"], double["payload"]) == (-8, 0.1)


def test_arguments_in_chrome_s_format(tmp_path):
    events = json.loads(chrome_bytes(annotated(tmp_path)))["traceEvents"]
    (one,) = [event for event in events if event["ph"] == "X"]
    # More than a double holds: kept as text.
    assert one["args"]["payload"] == str(2**63 + 1)
    assert (one["args"]["source"], one["args"]["color"], one["cname"]) == ("k.cu:4", "#ff0000", "terrible")
    pointer, nan, negative, double = [event["args"]["payload"] for event in events if event["ph"] == "i"]
    assert (pointer, nan, negative, double) == ("0x7f00", "nan", -8, 0.1)


def two(tmp_path):
    for name, shift in (("iket_pid_1", 0), ("iket_pid_2", 7_000)):
        maker = Maker().range("r", shift, shift + 900).mark("m", shift + 10).life(shift, shift + 1000)
        maker.write(tmp_path / f"{name}.trace.json")
    return iket_rewrite.load_trace(tmp_path)


def test_processes_are_not_drawn_on_one_clock_unless_asked(tmp_path):
    trace = two(tmp_path)
    lives = {
        path[0]: (start, end) for path, name, start, end, _ in Perfetto(perfetto_bytes(trace)).slices if name == "warp"
    }
    assert lives == {
        "made (launch 0) [pid 1, own clock]": (0, 1000),
        "made (launch 1) [pid 2, own clock]": (2000, 3000),
    }
    aligned = align(trace, "m")
    lives = {path[0]: start for path, name, start, _, _ in Perfetto(perfetto_bytes(aligned)).slices if name == "warp"}
    assert lives == {"made (launch 0) [pid 1]": 0, "made (launch 1) [pid 2]": 0}


def test_some_launches_only():
    trace = iket_rewrite.load_trace(real("clusters_divergence_graph"))
    file = Perfetto(perfetto_bytes(trace, launches=[1, 2]))
    assert {path[0] for path, *_ in file.slices} == {"divergent (launch 1)", "divergent (launch 2, graph_exec_2:0)"}
    events = json.loads(chrome_bytes(trace, launches=[1, 2]))["traceEvents"]
    assert {one["pid"] for one in events} == {2, 3}


def test_an_empty_trace_is_a_file_as_well(tmp_path):
    trace = iket_rewrite.load_trace(Maker().write(tmp_path / "t.trace.json"))
    assert Perfetto(perfetto_bytes(trace)).slices == []
    assert json.loads(chrome_bytes(trace))["traceEvents"][0]["ph"] == "M"


@pytest.mark.parametrize("name", ["clusters_divergence_graph", "tilelang_gemm_sm90a"])
def test_nvidia_s_own_converter_draws_the_same_slices_of_the_same_capture(name):
    theirs = protos.Trace()
    theirs.ParseFromString((TRACES / f"{name}.pftrace").read_bytes())
    described = [one.track_descriptor for one in theirs.packet if one.HasField("track_descriptor")]
    tracks = {one.uuid: one for one in described}
    slices, instants, stacks = Counter(), Counter(), defaultdict(list)

    def place(uuid):
        names = []
        while uuid in tracks and len(names) < 20:
            names.append(tracks[uuid].name)
            uuid = tracks[uuid].parent_uuid
        sm = next(int(one.split("VSM")[1]) for one in names if "VSM" in one)
        cta = next(re.findall(r"\d+", one) for one in names if one.startswith("CTA("))
        warp = next(int(one[4:]) for one in names if re.fullmatch(r"Warp\d+", one))
        return sm, ",".join(cta), warp

    for packet in theirs.packet:
        event = packet.track_event
        if not packet.HasField("track_event") or tracks[event.track_uuid].name in ("Root", "WarpLifeTime"):
            continue
        event_name = re.split(r"\(| \[", event.name)[0]
        if event.type == event.TYPE_SLICE_BEGIN:
            stacks[event.track_uuid].append((event_name, packet.timestamp))
        elif event.type == event.TYPE_SLICE_END and (opened := stacks[event.track_uuid].pop())[0] in NAMES[name]:
            slices[(*place(event.track_uuid), *opened, packet.timestamp)] += 1
        elif event.type == event.TYPE_INSTANT:
            instants[(*place(event.track_uuid), event_name, packet.timestamp)] += 1
    zero = base(plain(name))
    ours = Perfetto(perfetto_bytes(iket_rewrite.load_trace(real(name))))
    drawn = [one for one in ours.slices if one[0][-1] != "lifetime"]
    assert slices == Counter(
        (*where(path)[1:], event, start + zero, end + zero) for path, event, start, end, _ in drawn
    )
    assert instants == Counter((*where(path)[1:], event, at + zero) for path, event, at, _ in ours.instants)
