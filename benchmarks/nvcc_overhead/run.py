# SPDX-License-Identifier: Apache-2.0
"""Wall time of iket-nvcc against nvcc alone on the same source, in one run.

Run: python benchmarks/nvcc_overhead/run.py [--check] [--output FILE] [--runs 9]
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import iket_rewrite

GEMM = Path(__file__).resolve().parents[2] / "examples" / "cuda" / "gemm" / "main.cu"
PLAIN = """\
#include <iket_rewrite/iket.cuh>
__global__ void plain(const float* in, float* out, int n)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < n) out[index] = in[index] * 2.0f;
}
"""
ONE = ("-arch=sm_90a",)
THREE = tuple(f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ("90a", "100a", "120a"))


@dataclass(frozen=True)
class Case:
    """One source: how it is compiled, and how much longer it may take (a part of nvcc's time, or seconds)."""

    name: str
    source: Path
    options: tuple[str, ...]
    part: float
    seconds: float


def cases(folder: Path) -> list[Case]:
    """Return what is compiled."""
    (folder / "plain.cu").write_text(PLAIN, encoding="utf-8")
    return [
        Case("plain", folder / "plain.cu", ONE, 0.05, 0.10),
        Case("marked", GEMM, ONE, 0.10, 0.15),
        Case("marked, fat", GEMM, THREE, 0.10, 0.15),
    ]


def seconds(command: list[str]) -> float:
    """Return the wall time of a compilation."""
    # As on a user's machine, Python may keep what it compiled of itself.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    took = time.perf_counter() - begin
    if done.returncode:
        sys.exit(f"{command[0]} failed: {done.stderr}")
    return took


def compare(case: Case, folder: Path, runs: int) -> tuple[float, float]:
    """Return the best times of iket-nvcc and of nvcc, run by turns: other work on the machine only adds."""
    ours = str(Path(sys.executable).with_name("iket-nvcc"))
    arguments = ["-c", "-std=c++17", f"-I{iket_rewrite.include_dir()}", *case.options, str(case.source)]
    arguments += ["-o", str(folder / "object.o")]
    times: dict[str, list[float]] = {ours: [], "nvcc": []}
    for command in times:
        seconds([command, *arguments])  # the first run is not counted
    for _ in range(runs):
        for command, taken in times.items():
            taken.append(seconds([command, *arguments]))
    return min(times[ours]), min(times["nvcc"])


def measure(runs: int) -> tuple[list[str], bool]:
    """Return the table's lines, and whether every goal was reached."""
    rows = [
        "| source | nvcc | iket-nvcc | longer | ratio | goal | met |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in cases(folder):
            ours, theirs = compare(case, folder, runs)
            allowed = max(case.part * theirs, case.seconds)
            reached = ours - theirs <= allowed
            met &= reached
            rows.append(
                f"| {case.name} | {theirs:.2f} s | {ours:.2f} s | {ours - theirs:+.3f} s | {ours / theirs:.3f} "
                f"| at most +{allowed:.3f} s | {'yes' if reached else 'no'} |"
            )
    return rows, met


def main() -> int:
    """Measure, print, and with --check judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--check", action="store_true", help="exit 1 where a goal is missed")
    parser.add_argument("--output", type=Path, help="write the table here")
    options = parser.parse_args()
    rows, met = measure(options.runs)
    lines = [
        "# What iket-nvcc adds to a compilation",
        "",
        "Made by `benchmarks/nvcc_overhead/run.py`; its README says what is measured.",
        "",
        f"* system: {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        f"* Python: {platform.python_implementation()} {platform.python_version()}",
        f"* iket-rewrite: {iket_rewrite.__version__}",
        "",
        *rows,
    ]
    print("\n".join(lines))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if met or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
