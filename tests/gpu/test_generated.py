# SPDX-License-Identifier: Apache-2.0
"""200 random programs on a GPU: every event of every warp, its order and its payload are what the CPU predicts.

All of them run in one process and a few captures.  The results that the programs compute are compared as well: a
record that lay in a kernel's own memory would show there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from generated.comparing import difference
from generated.interpreting import run_block
from generated.language import Program
from generated.making import make_module
from gpu.capture import Captured, Warp, read_launch

from iket_rewrite.rewriting.plan import EMPTY

PROGRAM = Path(__file__).parent / "captures" / "generated_program.py"
MODULES, CAPTURES = 20, 1


def launches(folder: Path) -> dict[str, Captured]:
    """Return every captured launch by its kernel."""
    found: dict[str, Captured] = {}
    for number in range(CAPTURES):
        trace = json.loads((folder / f"part_{number}.trace.json").read_text(encoding="utf-8"))
        for launch in trace["launches"]:
            assert launch["kernelName"] not in found
            found[launch["kernelName"]] = read_launch(trace, launch, EMPTY, [])
    return found


def faults(program: Program, launch: Captured, output: list[int], address: int) -> list[str]:
    """Compare one launch with the interpreter; return what differs."""
    found = []
    predicted = [warp for block in range(program.blocks) for warp in run_block(program, block)]
    if launch.lifetimes != len(predicted):
        found.append(f"{program.name}: {launch.lifetimes} warps instead of {len(predicted)}")
    if output != [word for warp in predicted for word in warp.acc]:
        found.append(f"{program.name}: results differ")
    for warp in predicted:
        recorded = launch.warps.get(((warp.block, 0, 0), warp.number), Warp())
        if text := difference(warp.events, recorded, address):
            found.append(f"{program.name}, block {warp.block}, warp {warp.number}: {text[:2000]}")
    return found


def test_200_programs_record_what_the_cpu_predicts(tmp_path):
    command = [sys.executable, str(PROGRAM), str(tmp_path), str(MODULES), str(CAPTURES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    captured = launches(tmp_path)
    programs = [program for seed in range(MODULES) for program in make_module(seed).programs]
    assert len(programs) == 200
    assert set(captured) == {program.name for program in programs}
    found = []
    for program in programs:
        found += faults(program, captured[program.name], results["outputs"][program.name], results["input"])
    assert not found, f"{len(found)} differences, for example\n" + "\n".join(found[:5])
