# SPDX-License-Identifier: Apache-2.0
"""Captures inside the process: what the trace says equals what the kernel must do, computed here.

The traces are read with the few lines of `gpu.capture`, which know nothing of the library.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpu.capture import Captured, read_launch
from gpu.captures.expected import WARPS, check_counted, sums

from iket_rewrite.rewriting.plan import EMPTY

PROGRAMS = Path(__file__).parent / "captures" / "programs.py"


@dataclass
class Ended:
    """One program that ended well: what it left, and its folder."""

    results: dict
    folder: Path

    def trace(self, name: str) -> dict:
        return json.loads((self.folder / f"{name}.trace.json").read_text(encoding="utf-8"))

    def launches(self, name: str = "only") -> list[tuple[str, Captured]]:
        trace = self.trace(name)
        replayed = [launch for replay in trace["graphLaunches"].values() for launch in replay]
        every = [*trace["launches"], *replayed]
        return [(launch["kernelName"], read_launch(trace, launch, EMPTY, [])) for launch in every]

    def only(self, name: str = "only") -> Captured:
        ((_, launch),) = self.launches(name)
        return launch


@pytest.fixture
def run(tmp_path):
    def start(name: str) -> Ended:
        command = [sys.executable, str(PROGRAMS), name, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return Ended(json.loads((tmp_path / "results.json").read_text(encoding="utf-8")), tmp_path)

    return start


# --- When the block begins ------------------------------------------------------------------------------------


def test_a_block_that_begins_before_cuda_and_ends_before_the_kernel(run):
    ended = run("before_cuda")
    check_counted(ended.only(), 3)
    assert ended.results["buffer"] == sums(3)
    assert ended.results["launches"] == 1
    assert "1 launches, 8 ranges, 24 markers" in ended.results["text"]


def test_a_block_that_begins_when_the_kernel_has_run_already(run):
    ended = run("after_cuda")
    check_counted(ended.only(), 3)
    assert ended.results["buffer"] == sums(3)


def test_captures_in_a_row_hold_their_own_launches(run):
    ended = run("in_a_row")
    check_counted(ended.only("first"), 3)
    folder = Path(ended.results["second"])
    assert folder.parent == ended.folder / "second"
    trace = json.loads(folder.read_text(encoding="utf-8"))
    first, second = (read_launch(trace, launch, EMPTY, []) for launch in trace["launches"])
    check_counted(first, 5, blocks=range(2))
    check_counted(second, 6, blocks=range(1))
    assert ended.results["third"] == 4 * WARPS
    assert ended.results["sum"] == [0]
    # An exception of the block comes out, and nothing is written.
    assert (ended.results["raised"], ended.results["failed"]) == ('"the block\'s own"', False)
    # A temporary file lives as long as its capture.
    assert (ended.results["was"], ended.results["is"]) == (True, False)


def test_modules_with_many_events_that_are_met_together_are_captured_again_and_again(run):
    assert run("many_events_together").results["markers"] == [80, 40, 40, 80]


def test_a_module_with_many_events_that_is_met_later_is_an_error_that_says_so(run):
    # What runtime 4.8.1 does; a later one may record it.
    results = run("many_events_in_turn").results
    assert results["first"] == 40
    assert results["second"] in ("records-unreadable", "none")


def test_a_capture_in_a_capture_is_refused_and_the_first_goes_on(run):
    ended = run("nested")
    assert ended.results["slugs"] == ["already-capturing"] * 2
    check_counted(ended.only(), 3)


def test_one_context_can_be_chosen(run):
    check_counted(run("contexts").only(), 3)


# --- Whose kernels --------------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_a_kernel_among_those_of_pytorch(run):
    ended = run("torch_and_core")
    (launch,) = [launch for kernel, launch in ended.launches() if kernel == "counted"]
    check_counted(launch, 3)
    # No other kernel has an event.
    others = [launch for kernel, launch in ended.launches() if kernel != "counted"]
    assert not any(warp.marks or warp.ranges for launch in others for warp in launch.warps.values())
    assert ended.results["buffer"] == sums(3)
    assert ended.results["total"] == sum(sums(3)) + 4 * 64
    assert ended.results["doubled"] == 2 * (1 << 12)


@pytest.mark.skipif(find_spec("cupy") is None, reason="CuPy is not installed")
def test_a_kernel_that_cupy_launches(run):
    ended = run("cupy_kernel")
    (launch,) = [launch for kernel, launch in ended.launches() if kernel == "counted"]
    check_counted(launch, 3)
    assert ended.results["buffer"] == sums(3)
    assert ended.results["more"] == 4


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_warp_lifetimes_need_no_annotation(run):
    ended = run("lifetimes")
    trace = ended.trace("only")
    launches = {launch["kernelName"]: launch for launch in trace["launches"]}
    (theirs,) = [launch for name, launch in launches.items() if "elementwise" in name]
    for launch in (theirs, launches["counted"]):
        blocks = launch["gridDimX"] * launch["gridDimY"] * launch["gridDimZ"]
        threads = launch["blockDimX"] * launch["blockDimY"] * launch["blockDimZ"]
        lives = launch["warpLifetimes"]
        places = [trace["locationTable"][life["locIdx"]] for life in lives]
        assert len(lives) == blocks * -(-threads // 32)
        assert len({(tuple(place["ctaId"]), place["warpId"]) for place in places}) == len(lives)
        assert all(life["startTs"] <= life["endTs"] for life in lives)
        assert not launch.get("ranges")
        assert not launch.get("markers")
    assert (launches["counted"]["gridDimX"], launches["counted"]["blockDimX"]) == (4, 64)
    assert ended.results["sum"] == 2 * (1 << 16)
    assert ended.results["buffer"] == sums(3)


# --- Graphs, clusters, budgets --------------------------------------------------------------------------------


def test_each_replay_of_a_graph_is_a_launch(run):
    ended = run("graph")
    launches = ended.launches()
    assert [kernel for kernel, _ in launches] == ["counted"] * 2
    for _, launch in launches:
        check_counted(launch, 3)
    first, second = (max(one.end for warp in launch.warps.values() for one in warp.ranges) for _, launch in launches)
    assert first != second


def test_clusters_are_recorded_whole_or_one_of_them(run):
    ended = run("clusters")

    def blocks(name: str) -> dict[int, list[int]]:
        warps = ended.only(name).warps
        return {block: [mark.payload for mark in warp.marks] for ((block, _, _), _), warp in warps.items()}

    assert blocks("whole") == {block: [block] for block in range(8)}
    assert blocks("one") == {2: [2], 3: [3]}
    check_counted(ended.only("block"), 3, blocks=range(3, 4))
    assert ended.results["beyond"] == "cluster-missing"


def test_more_events_than_the_budget_are_told(run):
    ended = run("budget")
    check_counted(ended.only("some"), 90, more=80, blocks=range(3))
    assert len(ended.results["some"]) == 1
    assert "counted" in ended.results["some"][0]
    assert "2 warps" in ended.results["some"][0] or "2 of 8 warps" in ended.results["some"][0]
    assert ended.results["slug"] == "too-many-events"
    check_counted(ended.only("all"), 2000)
    assert ended.results["all"] == []
    assert ended.results["buffer"] == sums(2000)


def test_an_empty_capture_is_a_failure_that_tells_why(run):
    results = run("nothing").results
    assert (results["no_cuda"], results["plain"], results["no_lifetime"]) == (
        "no-launch",
        "not-instrumented",
        "no-launch",
    )


# --- run ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("perfetto") is None, reason="the package perfetto is not installed")
def test_run_in_the_process_publishes_the_same_kinds_of_file(run):
    ended = run("run_here")
    assert (ended.results["calls"], ended.results["engine"], ended.results["launches"]) == (1, "inprocess", 1)
    json_file, perfetto, page = map(Path, ended.results["files"])
    trace = json.loads(json_file.read_text(encoding="utf-8"))
    check_counted(read_launch(trace, trace["launches"][0], EMPTY, []), 3)
    assert b"counted" in perfetto.read_bytes()
    assert "counted" in page.read_text(encoding="utf-8")
    assert ended.results["buffer"] == sums(3)
