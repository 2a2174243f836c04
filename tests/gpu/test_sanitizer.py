# SPDX-License-Identifier: Apache-2.0
"""Under compute-sanitizer a program with marks has no finding that it lacks without them, and computes the same.

The marks are on and nothing is captured: records go to the shared memory that the system reserves.  There they race
with each other, which racecheck tells of; a race is theirs only where iket-verify finds a record's store at both ends.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from building.compilers import command, environment
from builds import needs_nvcc
from gpu import sanitizer
from gpu.capture import HERE
from gpu.conftest import arch_here
from gpu.program_code import Code
from toolbox import INCLUDE, ROOT

EXAMPLES = ROOT / "examples" / "cuda"
#: Programs that check their own result; each is small: a tool slows its kernels down by much.
CHECKED = {
    "gemm": EXAMPLES / "gemm" / "main.cu",
    "lookback_scan": EXAMPLES / "lookback_scan" / "main.cu",
    "tma_pipeline": EXAMPLES / "tma_pipeline" / "main.cu",
    "payloads": HERE / "sanitized" / "payloads.cu",
}
FAULTY = HERE / "sanitized" / "faults.cu"
#: Planted faults: the tool that must find it, and what it says; of races with the kernel's own instructions.
FAULTS = {
    "race": ("racecheck", r"Race reported between Read access of LDS in .*race.* and Write access of STS in .*race"),
    "overwrite": ("racecheck", r"between Write access of STS in (.*overwrite.*) and Write access of STS in \1$"),
    "bounds": ("memcheck", r"Invalid __global__ write"),
}
MARKS = {"with marks": {}, "without": {"IKET": "0"}}

pytestmark = needs_nvcc


@dataclass(frozen=True)
class Built:
    """An executable and what is in it."""

    path: str
    code: Code


def build(source: Path, output: Path, variables: dict[str, str]) -> Built:
    """Compile a program with iket-nvcc for the GPU that is here."""
    line = command("nvcc_command", f"-I{INCLUDE}", "-std=c++17", f"-arch={arch_here()}", str(source), "-o", str(output))
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment(**variables))
    assert done.returncode == 0, done.stdout + done.stderr
    return Built(str(output), Code.of(output))


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[tuple[str, str], Built]:
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
        recorded = any(function.records for function in program.code.functions)
        assert recorded == (marks == "with marks"), name
    done, log = sanitizer.run("memcheck", [built["gemm", "without"].path], folder / "probe")
    if sanitizer.REFUSED in (log + done.stdout + done.stderr).lower():
        pytest.skip("compute-sanitizer can not look into this device")
    return built


@pytest.mark.parametrize("tool", sanitizer.TOOLS)
@pytest.mark.parametrize("name", CHECKED)
def test_marks_add_no_finding(name, tool, programs, tmp_path):
    verdicts = {}
    for marks in MARKS:
        program = programs[name, marks]
        done, log = sanitizer.run(tool, [program.path], tmp_path / marks)
        assert done.returncode == 0, log + done.stdout + done.stderr
        assert "right: " in done.stdout
        assert "wrong" not in done.stdout
        verdicts[marks] = sanitizer.read(log, program.code)
    added = verdicts["with marks"].beyond(verdicts["without"])
    assert added == [], verdicts["with marks"].log
    # What docs/programs.md says of each tool.
    assert bool(verdicts["with marks"].of_records) == (tool == "racecheck"), verdicts["with marks"].log
    assert verdicts["without"].of_records == 0


@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, marks, programs, tmp_path):
    tool, said = FAULTS[fault]
    program = programs["faults", marks]
    _, log = sanitizer.run(tool, [program.path, fault], tmp_path / "log")
    verdict = sanitizer.read(log, program.code)
    assert verdict.count > 0, log
    assert any(re.search(said, kind) for kind in verdict.kinds), log
