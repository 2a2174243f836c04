# SPDX-License-Identifier: Apache-2.0
"""Captures around a command and of a main block: counts and payloads equal what the kernels must do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpu.capture import Captured, read_launch
from gpu.captures.expected import check_counted
from gpu.conftest import arch_here
from toolbox import INCLUDE, NVCC, ROOT

import iket_rewrite
from iket_rewrite import CaptureError
from iket_rewrite.rewriting.plan import EMPTY

CAPTURES = Path(__file__).parent / "captures"
#: Events of a warp of the kernel `counted`: its range's two ends, and a mark a round.
EVENTS = 2 + 3


def program(*words: object) -> list[str]:
    return [sys.executable, str(CAPTURES / "profiled.py"), *map(str, words)]


def own_words(printed: str) -> list[str]:
    """Return the lines that the program printed; the runtime writes lines with a date among them."""
    return [line for line in printed.splitlines() if not line.startswith("[20")]


def launches(path: Path) -> list[tuple[str, Captured]]:
    trace = json.loads(path.read_text(encoding="utf-8"))
    return [(launch["kernelName"], read_launch(trace, launch, EMPTY, [])) for launch in trace["launches"]]


def failure(slug: str, *words: object, folder: Path, **options) -> CaptureError:
    with pytest.raises(CaptureError) as caught:
        iket_rewrite.profile(program(*words), output_dir=folder / "out", **options)
    assert caught.value.slug == slug, caught.value
    assert not (folder / "out").exists()
    return caught.value


def test_a_python_program(tmp_path, capfd):
    result = iket_rewrite.profile(program("counted"), output_dir=tmp_path / "out")
    ((kernel, launch),) = launches(result.trace_json)
    assert kernel == "counted"
    check_counted(launch, 3)
    assert own_words(capfd.readouterr().out) == ["sum 3", "sum 3"]
    assert result.events_per_warp is not None
    assert result.events_per_warp >= EVENTS
    assert (result.contents.ranges, result.contents.markers) == (8, 24)
    assert result.perfetto.stat().st_size > 0
    assert result.html.stat().st_size > 0
    if find_spec("msgspec") is not None:
        assert len(result.trace.markers) == 24


@pytest.mark.skipif(NVCC is None, reason="no nvcc here (PATH, or the variable NVCC)")
def test_an_executable_of_cuda_cpp_under_the_command(tmp_path):
    source = CAPTURES / "counted.cu"
    text = iket_rewrite.rewrite(source.read_text(encoding="utf-8"), path=source.name).text
    (tmp_path / "counted.iket.cu").write_text(text, encoding="utf-8")
    (tmp_path / "main.cu").write_bytes((CAPTURES / "counted_main.cu").read_bytes())
    build = [NVCC, f"-arch={arch_here()}", f"-I{INCLUDE}", "main.cu", "-o", "app"]
    built = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [sys.executable, "-m", "iket_rewrite.cli.profile_command", "-o", "trace", "--", "./app"],
        cwd=tmp_path,
        env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert own_words(done.stdout) == ["sums 10 15", "sums 10 15"]
    assert "trace: 2 launches, 10 ranges, " in done.stderr
    (path,) = (tmp_path / "trace").glob("*.trace.json")
    (_, first), (_, second) = launches(path)
    check_counted(first, 3)
    check_counted(second, 5, more=1, blocks=range(2), warps=1)


def test_two_processes_have_a_trace_each(tmp_path):
    result = iket_rewrite.profile(program("two"), output_dir=tmp_path / "out")
    assert len(result.json_traces) == len(result.perfetto_traces) == len(result.html_reports) == 2
    found = sorted((launches(path) for path in result.json_traces), key=lambda one: len(one[0][1].warp(0, 0).marks))
    for ((_, launch),), rounds in zip(found, (2, 5), strict=True):
        check_counted(launch, rounds)


def test_a_process_that_launches_nothing_has_no_trace(tmp_path):
    result = iket_rewrite.profile(program("parent"), output_dir=tmp_path / "out")
    ((_, launch),) = launches(result.trace_json)
    check_counted(launch, 3)


def test_kernels_without_events_are_listed(tmp_path):
    error = failure("not-instrumented", "plain", folder=tmp_path)
    assert "counted" in error.message


@pytest.mark.parametrize("name", ["no_launch", "nothing"])
def test_a_program_that_launches_nothing_is_told(tmp_path, name):
    failure("no-launch", name, folder=tmp_path)


def test_a_failure_in_the_second_pass_is_told_from_one_in_the_first(tmp_path):
    error = failure("second-pass-failed", "second_fails", folder=tmp_path)
    assert "ended with status 5" in error.message
    assert "not again" in error.output
    failure("first-pass-failed", "no_such_program", folder=tmp_path)


def test_a_cluster_that_does_not_exist_is_told(tmp_path):
    failure("cluster-missing", "counted", folder=tmp_path, cluster=(9, 0, 0))
    result = iket_rewrite.profile(
        program("counted"), output_dir=tmp_path / "out", cluster=(2, 0, 0), postprocess="json"
    )
    ((_, launch),) = launches(result.trace_json)
    check_counted(launch, 3, blocks=range(2, 3))


def test_a_budget_that_is_too_small_is_told(tmp_path):
    error = failure("too-many-events", "counted", 2000, folder=tmp_path, max_events_per_warp=16)
    assert "counted" in error.message


def test_warp_lifetimes_take_no_annotation(tmp_path):
    result = iket_rewrite.profile(program("plain"), output_dir=tmp_path / "out", warp_lifetimes_only=True)
    trace = json.loads(result.trace_json.read_text(encoding="utf-8"))
    (launch,) = [launch for launch in trace["launches"] if launch["kernelName"] == "counted"]
    assert len(launch["warpLifetimes"]) == 4 * 2


@pytest.mark.parametrize(
    ("engine", "log"),
    [
        ("replay", ["module", "module", "workload", "module", "workload", "after"]),
        ("inprocess", ["module", "workload", "after"]),
    ],
)
def test_a_main_block_with_both_engines(tmp_path, engine, log):
    if engine == "inprocess" and find_spec("perfetto") is None:
        pytest.skip("the package perfetto is not installed")
    command = [sys.executable, str(CAPTURES / "main_block.py"), str(tmp_path), engine]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]
    assert [what for what, _ in lines] == log
    # The parent is who comes first and last.
    assert lines[0][1] == lines[-1][1]
    assert len({pid for _, pid in lines}) == log.count("module")
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["engine"] == engine
    ((_, launch),) = launches(Path(results["json"]))
    check_counted(launch, 3)
    assert all(Path(results[kind]).stat().st_size > 0 for kind in ("perfetto", "html"))


def test_the_doctor_says_that_a_capture_could_work():
    done = subprocess.run(
        [sys.executable, "-m", "iket_rewrite.cli.profile_command", "--doctor", "--json"],
        env=dict(os.environ) | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    values = json.loads(done.stdout)
    assert values["engines"] == ["inprocess", "replay"]
    assert next(part for part in values["parts"] if part["name"] == "driver and GPU")["state"] == "found"
