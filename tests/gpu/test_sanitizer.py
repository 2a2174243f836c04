# SPDX-License-Identifier: Apache-2.0
"""Under compute-sanitizer a program with marks has no finding that it lacks without them, and computes the same.

The marks are on and nothing is captured: records go to the shared memory that the system reserves.
"""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from building.compilers import command, environment
from builds import needs_nvcc
from gpu import sanitizer
from gpu.capture import HERE
from gpu.conftest import arch_here
from toolbox import INCLUDE, ROOT

import iket_rewrite

EXAMPLES = ROOT / "examples" / "cuda"
#: Programs that check their own result; each is small: a tool slows its kernels down by much.
CHECKED = {
    "gemm": EXAMPLES / "gemm" / "main.cu",
    "lookback_scan": EXAMPLES / "lookback_scan" / "main.cu",
    "tma_pipeline": EXAMPLES / "tma_pipeline" / "main.cu",
    "payloads": HERE / "sanitized" / "payloads.cu",
}
FAULTY = HERE / "sanitized" / "faults.cu"
#: Planted faults: the tool that must find it, and what it says.
FAULTS = {"race": ("racecheck", "Race reported between"), "bounds": ("memcheck", "Invalid __global__ write")}
MARKS = {"with marks": {}, "without": {"IKET": "0"}}

pytestmark = needs_nvcc


def build(source: Path, output: Path, variables: dict[str, str]) -> Path:
    """Compile a program with iket-nvcc for the GPU that is here."""
    line = command("nvcc_command", f"-I{INCLUDE}", "-std=c++17", f"-arch={arch_here()}", str(source), "-o", str(output))
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment(**variables))
    assert done.returncode == 0, done.stdout + done.stderr
    return output


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[tuple[str, str], Path]:
    """Every program with marks and without, where compute-sanitizer can look into this device."""
    if sanitizer.find() is None:
        pytest.skip("no compute-sanitizer here (PATH, CUDA_HOME, or pip install nvidia-cuda-sanitizer-api)")
    folder = tmp_path_factory.mktemp("programs")
    wanted = [(name, marks) for name in (*CHECKED, "faults") for marks in MARKS]
    with ThreadPoolExecutor(4) as pool:
        outputs = pool.map(
            lambda key: build(CHECKED.get(key[0], FAULTY), folder / f"{key[0]} {key[1]}", MARKS[key[1]]), wanted
        )
        built = dict(zip(wanted, outputs, strict=True))
    for (name, marks), program in built.items():
        assert bool(iket_rewrite.verify(program).sites) == (marks == "with marks"), name
    done, log = sanitizer.run("memcheck", [str(built["gemm", "without"])], folder / "probe")
    if sanitizer.REFUSED in (log + done.stdout + done.stderr).lower():
        pytest.skip("compute-sanitizer can not look into this device")
    return built


@pytest.mark.parametrize("tool", sanitizer.TOOLS)
@pytest.mark.parametrize("name", CHECKED)
def test_marks_add_no_finding(name, tool, programs, tmp_path):
    verdicts = {}
    for marks in MARKS:
        done, log = sanitizer.run(tool, [str(programs[name, marks])], tmp_path / marks)
        assert done.returncode == 0, log + done.stdout + done.stderr
        assert "right: " in done.stdout
        assert "wrong" not in done.stdout
        verdicts[marks] = sanitizer.read(log)
    added = verdicts["with marks"].beyond(verdicts["without"])
    assert added == [], verdicts["with marks"].log


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, marks, programs, tmp_path):
    tool, said = FAULTS[fault]
    _, log = sanitizer.run(tool, [str(programs["faults", marks]), fault], tmp_path / "log")
    verdict = sanitizer.read(log)
    assert verdict.count > 0, log
    assert any(said in kind for kind in verdict.kinds), log
