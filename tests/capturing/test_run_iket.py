# SPDX-License-Identifier: Apache-2.0
"""The real `run-iket` of each release: how it is started, its options, and the command line that it accepts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from capturing.support import H200, StandIn, listing
from fetch_parsers import RELEASES, packages

import iket_rewrite
from iket_rewrite import CaptureError
from iket_rewrite.capturing import run_iket

INSTALLED = "installed"


@pytest.fixture(params=[INSTALLED, *(pytest.param(one, marks=pytest.mark.parsers) for one in RELEASES)])
def release(request, monkeypatch) -> str:
    for name in ("IKET_RUN_IKET", "IKET_RUNTIME"):
        monkeypatch.delenv(name, raising=False)
    if request.param != INSTALLED:
        if packages(request.param) is None:
            pytest.skip("not fetched: make test-parsers")
        monkeypatch.setenv("IKET_RUNTIME", str(packages(request.param)))
    return request.param


def line(found: run_iket.RunIket, folder: Path, command: list[str], **more) -> list[str]:
    values = {"postprocess": "all", "max_events_per_warp": None, "cluster": None, "warp_lifetimes_only": False} | more
    return run_iket.arguments(found, command, folder=folder, **values)


def test_options_are_read_from_its_help(release):
    found = run_iket.find_run_iket()
    assert found.options >= {"--output-dir", "--clobber", "--postprocess", "--keep", "--max-ts-cnt-per-warp"}
    assert "--warp-trace" in found.options
    assert ("--enabled-cluster" in found.options) == (release == INSTALLED)
    assert release in (found.version, INSTALLED)


def test_it_runs_a_program_and_fails_as_the_tests_of_a_program_without_cuda_say(release, tmp_path):
    """Without a GPU the real run-iket goes as far as its first pass, which is far enough to accept our command line."""
    mark = tmp_path / "ran"
    command = [sys.executable, "-c", f"open({str(mark)!r}, 'a').write('x')"]
    found = run_iket.find_run_iket()
    options = line(found, tmp_path / "out", command, max_events_per_warp=64)
    done = subprocess.run(options, capture_output=True, text=True, check=False, timeout=60)
    assert mark.read_text() in ("x", "xx"), done.stdout + done.stderr
    assert "unrecognized" not in done.stderr
    assert (tmp_path / "out" / "tracker").is_dir()
    assert list((tmp_path / "out").rglob("tracker.json")) == []


def test_a_cluster_needs_a_release_that_has_the_option(release, tmp_path):
    found = run_iket.find_run_iket()
    if release == INSTALLED:
        options = line(found, tmp_path, ["app"], cluster=(1, 2, 3))
        assert options[options.index("--enabled-cluster") + 1] == "1,2,3"
    else:
        with pytest.raises(CaptureError, match=f"runtime {release} is too old for one cluster") as caught:
            line(found, tmp_path, ["app"], cluster=(1, 2, 3))
        assert caught.value.slug == "runtime-too-old"


def test_nothing_of_the_runtime_reaches_the_program(release, tmp_path):
    code = "import importlib.util, os; print(sorted(os.environ), importlib.util.find_spec('iket'))"
    options = line(run_iket.find_run_iket(), tmp_path / "out", [sys.executable, "-c", code])
    done = subprocess.run(options, capture_output=True, text=True, check=False)
    assert "None" in done.stdout
    assert ("'PYTHONPATH'" in done.stdout) == ("PYTHONPATH" in os.environ)


def test_the_run_iket_of_another_environment_is_started_with_its_interpreter(monkeypatch):
    """As for one that is installed with pipx: the runtime is not on this interpreter's path, the script is on PATH."""
    beside = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(beside))
    monkeypatch.delenv("IKET_RUN_IKET", raising=False)
    monkeypatch.delenv("IKET_RUNTIME", raising=False)
    monkeypatch.setattr(sys, "path", [])
    found = run_iket.find_run_iket()
    assert found.command[0] == str(beside / "python")
    assert "--enabled-cluster" in found.options


def test_one_that_is_nowhere_or_does_not_start_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("IKET_RUN_IKET", str(tmp_path / "run-iket"))
    with pytest.raises(CaptureError) as caught:
        run_iket.find_run_iket()
    assert caught.value.slug == "runtime-missing"
    assert f"not where IKET_RUN_IKET says: {tmp_path / 'run-iket'} is no program" in caught.value.message
    assert "IKET_RUN_IKET, or unset it" in caught.value.remedy
    (tmp_path / "run-iket").write_text("#!/bin/sh\necho broken; exit 3\n")
    (tmp_path / "run-iket").chmod(0o755)
    with pytest.raises(CaptureError) as caught:
        run_iket.find_run_iket()
    assert (caught.value.slug, caught.value.output.strip()) == ("runtime-missing", "broken")
    assert "IKET_RUN_IKET names" in caught.value.message


@pytest.mark.parametrize(
    ("code", "slug", "words"),
    [
        ("print('no CUDA here')", "no-launch", "launched no kernel"),
        ("print('why'); raise SystemExit(7)", "first-pass-failed", "ended with status 7 in the first pass"),
        ("import os; os.kill(os.getpid(), 6)", "first-pass-failed", "was ended by signal 6 (SIGABRT)"),
    ],
)
def test_what_the_real_one_does_without_a_kernel_is_told_plainly(release, monkeypatch, tmp_path, code, slug, words):
    """Only the GPU is told of; without one the real run-iket still runs its first pass."""
    for name in ("CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    StandIn(monkeypatch, tmp_path).has(H200)
    with pytest.raises(CaptureError) as caught:
        iket_rewrite.profile([sys.executable, "-c", code], output_dir=tmp_path / "out")
    assert (caught.value.slug, words in caught.value.message) == (slug, True), caught.value
    assert "Traceback" not in str(caught.value)
    assert listing(tmp_path) == []
