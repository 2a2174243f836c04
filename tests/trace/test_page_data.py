# SPDX-License-Identifier: Apache-2.0
"""What of a trace goes into a page, what is left out, and the commands that write and serve it."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import PUSH, REAL, TOKEN, Maker, launches, plain, real

import iket_rewrite
from iket_rewrite.cli.page_server import PageServer
from iket_rewrite.cli.trace_command import main
from iket_rewrite.errors import OptionError
from iket_rewrite.rewriting.render import template_folder
from iket_rewrite.tracing.page import page_data, render_page, short_name
from iket_rewrite.tracing.page_columns import Styles, columns, lanes
from iket_rewrite.tracing.page_reduction import choose

BASE = 1_800_000_000_000_000_000
COMMAND = [sys.executable, "-m", "iket_rewrite.cli.trace_command"]


def made(maker, tmp_path):
    return iket_rewrite.load_trace(maker.write(tmp_path / "made.trace.json"))


def many(tmp_path, *, ctas=40, warps=2, ranges=10, again=0):
    maker = Maker(grid=ctas, block=32 * warps)
    for launch in range(again + 1):
        zero = BASE + 100_000 * launch
        for cta in range(ctas):
            for warp in range(warps):
                end = zero + 64 * ranges + 32 * ((cta * 7) % ctas)
                maker.life(zero, end, warp=(cta, warp)).mark("m", zero, warp=(cta, warp))
                for at in range(ranges):
                    start = zero + 64 * at
                    maker.range("work", start, start + 32 + at % 2, warp=(cta, warp), payload=(6, at))
        if launch < again:
            maker.again()
    return made(maker, tmp_path)


def times(steps, segments):
    """Undo the differences, as the page does."""
    found = []
    for count in segments[2::3]:
        part = steps[len(found) : len(found) + count]
        found += np.cumsum(part).tolist()
    return found


@pytest.mark.parametrize("name", REAL)
def test_the_columns_hold_every_record_of_the_file(name):
    document, trace = plain(name), iket_rewrite.load_trace(real(name))
    data, parts = page_data(trace)
    names = document["stringTable"]
    assert len(parts) == len(launches(document))
    for launch, part, about in zip(launches(document), parts, data["launches"], strict=True):
        stamps = [one[key] for one in launch["ranges"] + launch["warpLifetimes"] for key in ("startTs", "endTs")]
        zero = min(stamps + [one["timestamp"] for one in launch["markers"]])
        assert about["span"] == max(stamps + [one["timestamp"] for one in launch["markers"]]) - zero
        styles = [data["styles"][style]["name"] for style in part["ranges"]["style"]]
        owners = np.repeat(part["lanes"][0::3], part["lanes"][2::3]).tolist()
        warps, places = part["warps"], document["locationTable"]
        starts = times(part["ranges"]["start"], part["lanes"])
        payloads = part["ranges"]["payload"] or [0] * len(styles)
        shown = [
            (
                *row[:3],
                *warps["cta"][3 * row[3] : 3 * row[3] + 3],
                warps["id"][row[3]],
                row[4] and part["payloads"][row[4] - 1][2],
            )
            for row in zip(styles, starts, part["ranges"]["duration"], owners, payloads, strict=True)
        ]
        expected = [
            (
                names[one["rangeNameIdx"]],
                one["startTs"] - zero,
                one["endTs"] - one["startTs"],
                *places[one["warpLocIdxs"][0]]["ctaId"],
                places[one["warpLocIdxs"][0]]["warpId"],
                hex(one["internalEvents"][0]["payloadVal"]) if one["internalEvents"][0].get("payloadType") else 0,
            )
            for one in launch["ranges"]
        ]
        assert sorted(shown, key=str) == sorted(expected, key=str)
        marks = sorted(times(part["markers"]["time"], part["markerLanes"]))
        assert marks == sorted(one["timestamp"] - zero for one in launch["markers"])
        lives = sorted(zip(warps["start"], warps["end"], strict=True))
        assert lives == sorted((one["startTs"] - zero, one["endTs"] - zero) for one in launch["warpLifetimes"])


def test_a_column_that_says_nothing_is_left_out(tmp_path):
    trace = made(Maker().life(BASE, BASE + 64).range("a", BASE, BASE + 32), tmp_path)
    (kept,) = choose(trace, [0])
    part = columns(trace, kept, Styles())
    assert [part["ranges"][key] for key in ("own", "payload", "endPayload")] == [None] * 3
    assert part["warps"]["recorded"] is None
    assert part["warps"]["cluster"] is None


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(-2, 12), st.sampled_from([PUSH, TOKEN])),
        max_size=25,
    )
)
def test_ranges_of_a_lane_never_overlap(tmp_path_factory, records):
    maker = Maker(block=96)
    for at, (warp, start, length, kind) in enumerate(records):
        maker.range(f"r{at}", BASE + 32 * start, BASE + 32 * (start + length), warp=(0, warp), kind=kind)
    trace = made(maker, tmp_path_factory.getbasetemp())
    rows = np.arange(len(records))
    lane = lanes(trace, rows)
    table = trace.ranges
    end = np.maximum(table.start_ns, table.end_ns)
    for one in rows:
        for two in rows[:one]:
            if (table.warp[one], lane[one]) == (table.warp[two], lane[two]):
                assert end[one] <= table.start_ns[two] or end[two] <= table.start_ns[one]


# --- What is left out ----------------------------------------------------------------------------------------


def test_a_small_trace_is_kept_whole(tmp_path):
    trace = many(tmp_path, again=2)
    kept = choose(trace, [0, 1, 2])
    assert [len(one.ranges) for one in kept] == [800] * 3
    assert {one.ctas for one in kept} == {(40, 40)}


def test_whole_ctas_are_kept_and_the_last_one_among_them(tmp_path):
    trace = many(tmp_path)
    (kept,) = choose(trace, [0], limit=300)
    assert len(kept.ranges) + len(kept.markers) + len(kept.warps) <= 300
    shown, total = kept.ctas
    assert (shown, total) == (300 // 24, 40)
    ctas = trace.locations.cta[trace.warps.location[kept.warps], 0]
    assert len(kept.ranges) == 10 * len(kept.warps) == 20 * shown
    assert set(trace.ranges.warp[kept.ranges]) == set(kept.warps)
    last = trace.locations.cta[trace.warps.location[np.argmax(trace.warps.end_ns)], 0]
    assert last in ctas
    assert np.diff(np.unique(ctas)).max() <= 8


def test_of_a_cta_that_is_too_large_the_longest_ranges_are_kept(tmp_path):
    trace = many(tmp_path, ctas=1, warps=1, ranges=1000)
    (kept,) = choose(trace, [0], limit=200)
    assert kept.longest
    assert 150 <= len(kept.ranges) <= 200
    assert set(trace.ranges.duration_ns[kept.ranges].tolist()) == {33}


def test_of_many_launches_some_of_every_kernel_are_kept(tmp_path):
    trace = many(tmp_path, ctas=2, ranges=50, again=99)
    kept = choose(trace, range(100), limit=10_000)
    rows = [one.launch for one in kept]
    assert len(rows) == 5
    assert (rows[0], rows[-1]) == (0, 99)
    assert all(one.ctas == (2, 2) for one in kept)
    data, _ = page_data(trace, limit=10_000)
    assert "5 of 100 launches" in data["left"][0]


@pytest.mark.parametrize("limit", [1, 7, 100, 1000, 5000])
def test_no_limit_is_exceeded_by_much(tmp_path, limit):
    trace = many(tmp_path, again=3)
    kept = choose(trace, range(4), limit=limit)
    assert kept
    # The warps of one CTA are always there.
    assert sum(len(one.ranges) + len(one.markers) + len(one.warps) for one in kept) <= max(limit, 4 * 4)
    json.dumps(page_data(trace, limit=limit), allow_nan=False)


# --- The text of the page ------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Collects the tags of a page, and what stands in its scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self._inside = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if self._inside is False and tag == "script":
            self._inside = True
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = False if tag == "script" else self._inside

    def handle_data(self, data):
        if self._inside:
            self.scripts[-1] += data


def test_one_file_with_everything_in_it(tmp_path):
    maker = Maker(kernel="</script><b>").life(BASE, BASE + 64).range("<!--<script>", BASE, BASE + 32)
    page = render_page(made(maker, tmp_path), title='"><b>\ud800')
    page.encode("utf-8")
    found = Tags()
    found.feed(page)
    for tag, attributes in found.tags:
        assert tag not in ("b", "img", "iframe", "object", "embed", "base")
        assert "src" not in attributes
        assert attributes.get("href", "data:,") == "data:,"
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    (policy,) = [one["content"] for tag, one in found.tags if one.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    data, launch, _ = found.scripts
    assert json.loads(data)["kernels"][0]["name"] == "</script><b>"
    assert json.loads(launch)["ranges"]["duration"] == [32]
    assert set(re.findall(r"https?://[^\s\"'`]+", page)) == {"http://www.w3.org/2000/svg"}


def test_scripts_build_the_page_from_text_only():
    files = sorted((template_folder() / "report").glob("*.js"))
    assert len(files) > 5
    for file in files:
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "fetch(",
            "import(",
        ):
            assert way not in file.read_text(encoding="utf-8"), (file.name, way)


def test_same_trace_same_page():
    pages = {render_page(iket_rewrite.load_trace(real("clusters_divergence_graph"))) for _ in range(2)}
    assert len(pages) == 1


def test_only_the_chosen_kernel(tmp_path):
    trace = iket_rewrite.load_trace(real("clusters_divergence_graph"))
    data, parts = page_data(trace, kernel="div*")
    assert {one["name"] for one in data["kernels"]} == {"divergent"}
    assert len(parts) == len(data["launches"]) == trace.launches.kernel.count("divergent")
    document = plain("clusters_divergence_graph")
    records = [
        one
        for launch in launches(document)
        if launch["kernelName"] == "divergent"
        for one in launch["ranges"] + launch["markers"]
    ]
    used = {document["stringTable"][one.get("rangeNameIdx", one.get("markerNameIdx"))] for one in records}
    assert {style["name"] for style in data["styles"]} == used
    with pytest.raises(OptionError, match="no kernel's name matches 'x'"):
        page_data(trace, kernel="x")


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("main_kernel", "main_kernel"),
        ("_Z10tiled_gemmPKfS0_Pfi", "tiled_gemm"),
        ("_ZN7cutlass13device_kernelINS_4gemm6kernelEEEvT_", "cutlass::device_kernel"),
        ("_ZN44_GLOBAL__N__0123456789abcdef_4_k_cu_123456786scaledIfEEvT_", "scaled"),
        ("_ZN12_GLOBAL__N_15inner1kEv", "inner::k"),
        ("_Z", "_Z"),
        ("_Z99short", "_Z99short"),
        ("", ""),
    ],
)
def test_names_of_kernels_are_readable(kernel, name):
    assert short_name(kernel) == name


def test_progress_goes_forward(tmp_path):
    seen = []
    render_page(many(tmp_path, again=3), progress=seen.append)
    assert seen == sorted(seen)
    assert 0 < seen[0] <= seen[-1] <= 1


# --- The commands --------------------------------------------------------------------------------------------


def test_report_writes_a_page(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(real("tirx_affine")), "-o", "a.html", "--title", "My <kernel>"]) == 0
    out, err = capfd.readouterr()
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert out == f"a.html: {len(page.encode()):,} bytes; open it in any browser, it needs no network\n"
    assert err == ""
    assert "<title>My &lt;kernel&gt; · iket</title>" in page
    assert main(["report", str(real("tirx_affine")), "-o", "-"]) == 0
    assert capfd.readouterr().out.startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "no/such/folder/a.html"], "can not be written"),
        (["-o", "a.html", "--kernel", "none"], "no kernel's name matches"),
        (["-o", "a.html", "--limit", "0"], "--limit"),
        ([], "--output"),
    ],
)
def test_report_that_can_not_be_written(tmp_path, monkeypatch, capfd, arguments, said):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["report", str(real("tirx_affine")), *arguments])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert said in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_trace_leaves_the_old_page(tmp_path, capfd):
    page, trace = tmp_path / "a.html", tmp_path / "bad.trace.json"
    page.write_text("old")
    trace.write_bytes(real("tirx_affine").read_bytes()[:-20])
    assert main(["report", str(trace), "-o", str(page)]) == 2
    assert page.read_text() == "old"
    assert "Traceback" not in capfd.readouterr().err


@pytest.fixture
def server():
    with PageServer("<p>é</p>") as found:
        thread = threading.Thread(target=found.serve_forever, daemon=True)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_the_server_gives_the_page_to_who_knows_its_address(server):
    with urllib.request.urlopen(server.url, timeout=10) as answer:
        assert answer.read().decode() == "<p>é</p>"
        assert answer.headers["Cache-Control"] == "no-store"
    packed = urllib.request.Request(server.url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(packed, timeout=10) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.read()[:2] == b"\x1f\x8b"
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("wrong", ["/", "/index.html", "/favicon.ico", "/x/../", "/é/"])
def test_the_server_gives_nothing_else(server, wrong):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{urllib.parse.quote(wrong)}", timeout=10)


def test_the_server_answers_no_other_name(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    for host, code in (("evil.example:80", 404), ("localhost:1", 200), ("", 404)):
        connection.request("GET", server.path, headers={"Host": host})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == code
    connection.request("POST", server.path, body=b"x")
    assert connection.getresponse().status == 501


def test_a_port_that_is_taken_is_an_error(server):
    with pytest.raises(OptionError, match=f"port {server.server_port} can not be used"):
        PageServer("", server.server_port)


def test_open_serves_until_it_is_interrupted(tmp_path):
    command = [*COMMAND, "open", str(real("tirx_affine")), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\S{22}/", url)
            with urllib.request.urlopen(url, timeout=30) as answer:
                assert b"profiled_affine_kernel" in answer.read()
            assert process.stdout.readline() == "Ctrl+C ends it\n"
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    assert err == ""


def test_without_a_display_the_way_through_ssh_is_said(tmp_path):
    bare = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    command = [*COMMAND, "open", str(real("tirx_affine"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=bare) as process:
        try:
            lines = [process.stdout.readline() for _ in range(5)]
            port = re.search(r":(\d+)/", lines[0]).group(1)
            assert f"ssh -L {port}:127.0.0.1:{port} " in "".join(lines)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
