# SPDX-License-Identifier: Apache-2.0
"""Bad input: an error that names the place, and nothing but `TraceError`."""

from __future__ import annotations

import copy
import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_traces import Maker, older, plain, real

import iket_rewrite
from iket_rewrite import TraceError


def document():
    maker = Maker(block=64).range("x", 0, 32).range("y", 32, 64, payload=(5, 7)).mark("m", 40, payload=(6, 1))
    return maker.life(0, 99).again().range("x", 0, 32).document()


def refused(data, folder):
    path = folder / "t.trace.json"
    path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
    with pytest.raises(TraceError) as caught:
        iket_rewrite.load_trace(path)
    assert caught.value.exit_code == 2
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    return said.removeprefix(f"{path}: ").splitlines()[0]


@pytest.mark.parametrize(
    ("steps", "value", "said"),
    [
        ("launches.1.ranges.0.startTs", "soon", "launches[1].ranges[0].startTs: expected int, got str"),
        ("launches.0.ranges.1.startTs", 1.5, "launches[0].ranges[1].startTs: expected int, got float"),
        ("launches.0.ranges.1.startTs", None, "launches[0].ranges[1].startTs: expected int, got null"),
        ("launches.0.ranges.1.startTs", True, "launches[0].ranges[1].startTs: expected int, got bool"),
        ("launches.0.ranges.1.startTs", -1, "launches[0].ranges[1].startTs: -1 is out of range"),
        ("launches.0.ranges.1.endTs", 2**63, "launches[0].ranges[1].endTs: 9223372036854775808 is out of range"),
        ("launches.0.ranges.1.endTs", 10**40, "launches[0].ranges[1].endTs: "),
        ("launches.0.ranges.1.rangeNameIdx", -1, "launches[0].ranges[1].rangeNameIdx: -1 is not in the stringTable"),
        (
            "launches.0.ranges.1.rangeNameIdx",
            3,
            "launches[0].ranges[1].rangeNameIdx: 3 is not in the stringTable, which has 3",
        ),
        ("launches.0.ranges.1.rangeNameIdx", 2**40, "launches[0].ranges[1].rangeNameIdx: 1099511627776 is not in"),
        ("launches.0.ranges.1.warpLocIdxs", [], "launches[0].ranges[1].warpLocIdxs: is empty"),
        (
            "launches.0.ranges.1.warpLocIdxs",
            [-1, 0],
            "launches[0].ranges[1].warpLocIdxs[0]: -1 is not in the locationTable",
        ),
        (
            "launches.0.ranges.1.warpLocIdxs",
            [0, 9],
            "launches[0].ranges[1].warpLocIdxs[-1]: 9 is not in the locationTable",
        ),
        (
            "launches.0.ranges.1.warpLocIdxs",
            [0, 9, 0],
            "launches[0].ranges[1].warpLocIdxs: 9 is not in the locationTable",
        ),
        ("launches.0.ranges.1.rangeType", 256, "launches[0].ranges[1].rangeType: 256 is out of range (0 to 255)"),
        ("launches.0.ranges.1.rangeColor", -1, "launches[0].ranges[1].rangeColor: -1 is out of range"),
        ("launches.0.ranges.1.internalEvents", {}, "launches[0].ranges[1].internalEvents: expected array, got object"),
        (
            "launches.0.ranges.1.internalEvents.0.payloadVal",
            2**64,
            "launches[0].ranges[1].internalEvents[0].payloadVal: ",
        ),
        (
            "launches.0.ranges.1.internalEvents.0.payloadVal",
            -1,
            "launches[0].ranges[1].internalEvents[0].payloadVal: -1 is out of range",
        ),
        ("launches.0.markers.0.locIdx", 5, "launches[0].markers[0].locIdx: 5 is not in the locationTable"),
        ("launches.0.markers.0.payloadType", "f32", "launches[0].markers[0].payloadType: expected int, got str"),
        (
            "launches.0.warpLifetimes.0.locIdx",
            -7,
            "launches[0].warpLifetimes[0].locIdx: -7 is not in the locationTable",
        ),
        ("launches.0.gridDimX", -1, "launches[0].gridDimX: expected int >= 0"),
        ("launches.0.blockDimX", 10**30, "launches[0].blockDimX: "),
        ("launches.0.kernelName", 5, "launches[0].kernelName: expected str, got int"),
        ("launches.0.ranges", {}, "launches[0].ranges: expected array, got object"),
        ("launches.0", [], "launches[0]: expected object, got array"),
        ("launches", {}, "launches: expected array, got object"),
        ("graphLaunches", {"g:0": [{}]}, "graphLaunches['g:0'][0]: the key kernelName is missing"),
        ("stringTable", [1], "stringTable[0]: expected str, got int"),
        ("locationTable.0.ctaId", [0, 0], "locationTable[0].ctaId: expected array of length 3"),
        ("locationTable.0.smId", 2**31, "locationTable[0].smId: 2147483648 is out of range"),
    ],
)
def test_a_wrong_value_is_named_by_its_place(steps, value, said, tmp_path):
    broken = document()
    *path, last = [int(step) if step.isdigit() else step for step in steps.split(".")]
    inner = broken
    for step in path:
        inner = inner[step]
    inner[last] = value
    assert refused(broken, tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("launches", "is no trace: the key launches is missing"),
        ("launches.0.kernelName", "launches[0]: the key kernelName is missing"),
        ("launches.0.gridDimY", "launches[0]: the key gridDimY is missing"),
        ("launches.1.ranges", "launches[1]: the key ranges is missing"),
        ("launches.0.warpLifetimes", "launches[0]: the key warpLifetimes is missing"),
        ("launches.0.ranges.1.endTs", "launches[0].ranges[1]: the key endTs is missing"),
        ("launches.0.ranges.1.rangeType", "launches[0].ranges[1]: the key rangeType is missing"),
        (
            "launches.0.ranges.1.internalEvents.1.timestamp",
            "launches[0].ranges[1].internalEvents[1]: the key timestamp is",
        ),
        ("launches.0.markers.0.locIdx", "launches[0].markers[0]: the key locIdx is missing"),
        ("launches.0.markers.0.payloadVal", "launches[0].markers[0]: the key payloadVal is missing"),
        (
            "launches.0.ranges.1.internalEvents.0.payloadVal",
            "launches[0].ranges[1].internalEvents[0]: the key payloadVal is missing",
        ),
        ("locationTable.0.smId", "locationTable[0]: the key smId is missing"),
        ("stringTable", "launches[0].ranges[0]: the key rangeName is missing, and the file has no stringTable"),
        ("locationTable", "launches[0].ranges[0]: the key warpLocs is missing, and the file has no locationTable"),
    ],
)
def test_a_missing_key_is_named_by_its_place(steps, said, tmp_path):
    broken = document()
    *path, last = [int(step) if step.isdigit() else step for step in steps.split(".")]
    inner = broken
    for step in path:
        inner = inner[step]
    del inner[last]
    assert refused(broken, tmp_path).startswith(said)


def test_places_count_over_chunks(tmp_path, monkeypatch):
    from iket_rewrite.tracing import layout

    monkeypatch.setattr(layout, "CHUNK", 2)
    broken = plain("tilelang_gemm_sm90a")
    broken["launches"][0]["ranges"][1234]["endTs"] = "x"
    assert refused(broken, tmp_path) == "launches[0].ranges[1234].endTs: expected int, got str"
    broken["launches"][0]["ranges"][1234]["endTs"] = -5
    assert refused(broken, tmp_path).startswith("launches[0].ranges[1234].endTs: -5 is out of range")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("warpLocs", 5, "launches[0].ranges[0].warpLocs: expected array, got int"),
        ("warpLocs", [5], "launches[0].ranges[0].warpLocs[0]: expected object, got int"),
        ("warpLocs", [{"ctaId": [0, 0, 0]}], "launches[0].ranges[0].warpLocs[0]: the key warpId is missing"),
        ("rangeName", 5, "launches[0].ranges[0].rangeName: expected str, got int"),
    ],
)
def test_the_older_layout_is_checked_as_well(key, value, said, tmp_path):
    broken = older(document())
    broken["launches"][0]["ranges"][0][key] = value
    assert refused(broken, tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"{", "the JSON text is cut short"),
        (b"[]", "expected object, got array"),
        (b"null", "expected object, got null"),
        (b'{"launches": [}', "JSON is malformed"),
        (b"\x00\x01\x02", "JSON is malformed"),
        (b'{"launches": []} tail', "JSON is malformed: trailing characters"),
        (b'{"launches": ' + b"[" * 100_000, "is nested too deeply"),
        (b'{"launches": [], "stringTable": ["\xff"]}', "stringTable: invalid UTF-8"),
        (gzip.compress(b'{"launches": []}', mtime=0)[:-9], "the compressed file is damaged or cut short"),
        (b"\x1f\x8bnot really", "the compressed file is damaged or cut short"),
        (gzip.compress(b"", mtime=0), "is empty"),
    ],
)
def test_damaged_files(data, said, tmp_path):
    assert refused(data, tmp_path).startswith(said)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.999])
def test_a_real_file_cut_short(share, tmp_path):
    data = real("native_all_payloads").read_bytes()
    assert refused(data[: int(len(data) * share)], tmp_path) == "the JSON text is cut short"
    packed = gzip.compress(data)
    assert "cut short" in refused(packed[: int(len(packed) * share) or 3], tmp_path)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(TraceError, match="can not be read: No such file"):
        iket_rewrite.load_trace(tmp_path / "none.trace.json")
    with pytest.raises(TraceError, match="no trace is in this folder"):
        iket_rewrite.load_trace(tmp_path)
    with pytest.raises(TraceError, match="no trace is named"):
        iket_rewrite.load_trace([])
    path = Maker().write(tmp_path / "a.trace.json")
    with pytest.raises(TraceError, match="is named twice"):
        iket_rewrite.load_trace([path, tmp_path / "." / "a.trace.json"])


LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]), st.just({}), st.just([{}])
)


def spots(value, path=()):
    """Yield the path of everything inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from spots(inner, (*path, key))


SPOTS = list(spots(document()))
OLD_SPOTS = list(spots(older(document())))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(st.booleans(), st.integers(0, 10**6), LEAVES, st.booleans())
def test_any_one_change_is_read_or_refused(tmp_path, old, spot, leaf, drop):
    broken = copy.deepcopy(older(document()) if old else document())
    places = OLD_SPOTS if old else SPOTS
    *path, last = places[spot % len(places)]
    inner = broken
    for step in path:
        inner = inner[step]
    if drop:
        del inner[last]
    else:
        inner[last] = leaf
    file = tmp_path / "t.trace.json"
    file.write_text(json.dumps(broken))
    try:
        trace = iket_rewrite.load_trace(file)
    except TraceError as error:
        assert str(error).startswith(f"{file}: ")  # noqa: PT017
    else:
        from iket_rewrite.tracing.export_chrome import chrome_bytes
        from iket_rewrite.tracing.export_perfetto import perfetto_bytes
        from iket_rewrite.tracing.summary import summarize

        summarize(trace, by="payload")
        perfetto_bytes(trace)
        json.loads(chrome_bytes(trace))


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=4))
def test_any_damaged_bytes_are_read_or_refused(tmp_path, spot, junk):
    data = bytearray(json.dumps(document()).encode())
    spot %= len(data)
    data[spot : spot + len(junk)] = junk
    file = tmp_path / "t.trace.json"
    file.write_bytes(data)
    try:
        iket_rewrite.load_trace(file)
    except TraceError as error:
        assert str(error).startswith(f"{file}: ")  # noqa: PT017
