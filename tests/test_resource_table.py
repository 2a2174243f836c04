# SPDX-License-Identifier: Apache-2.0
"""`benchmarks/event_cost/resources.py` reads every number of a kernel, and counts blocks as NVIDIA's header does."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
import sys

import pytest
from builds import needs_nvcc, toolkit_include
from toolbox import NVCC, ROOT

HOME = ROOT / "benchmarks" / "event_cost"
COMMITTED = (ROOT / "benchmarks" / "results" / "resources.md").read_text(encoding="utf-8")
#: A number, or one for each build; spills have two of them.
NUMBER = r"\d+(?: → \d+)?"

ORACLE = """\
#include <cuda_occupancy.h>
#include <cstdio>

int main()
{
    cudaOccDeviceState state;
    int major, threads, registers, shared, barriers;
    while (std::scanf("%d %d %d %d %d", &major, &threads, &registers, &shared, &barriers) == 5) {
        cudaOccDeviceProp device;
        device.computeMajor = major, device.computeMinor = 0;
        device.maxThreadsPerBlock = 1024, device.maxThreadsPerMultiprocessor = 2048, device.warpSize = 32;
        device.regsPerBlock = device.regsPerMultiprocessor = 65536, device.numSms = 1;
        device.sharedMemPerBlock = 48 * 1024, device.sharedMemPerBlockOptin = 227 * 1024;
        device.sharedMemPerMultiprocessor = 228 * 1024, device.reservedSharedMemPerBlock = 1024;
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = 1024, kernel.numRegs = registers, kernel.sharedSizeBytes = 0;
        kernel.partitionedGCConfig = PARTITIONED_GC_OFF, kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        kernel.maxDynamicSharedSizeBytes = 227 * 1024, kernel.numBlockBarriers = barriers;
        kernel.virtualResourceCount = 0;
        cudaOccResult result;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared)) return 1;
        std::printf("%d\\n", result.activeBlocksPerMultiprocessor);
    }
}
"""


def cells(text: str) -> dict[str, list[str]]:
    """Return the cells of each row, by the kernel, of one table."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    return {name: rest for name, *rest in rows[2:]}


def check(row: list[str]) -> None:
    """Check that no number is missing, and that those that must fit together do."""
    patterns = [r"\d+", NUMBER, f"{NUMBER} / {NUMBER}", NUMBER, r"\d+", NUMBER, NUMBER, NUMBER, NUMBER]
    assert len(row) == len(patterns)
    for cell, pattern in zip(row, patterns, strict=True):
        assert re.fullmatch(pattern, cell), row
    threads, registers, _, _, _, blocks, warps, instructions, outside = row
    for build in (0, -1):
        parts = [int(cell.split(" → ")[build]) for cell in (registers, blocks, warps, instructions, outside)]
        assert parts[0] > 0
        assert 0 < parts[1] <= 32
        assert parts[2] == parts[1] * -(-int(threads) // 32) <= 64
        # Records are instructions of the build with marks alone.
        assert parts[3] > parts[4] if build else parts[3] == parts[4]


@needs_nvcc
def test_an_example_has_every_number():
    command = [sys.executable, str(HOME / "resources.py"), "--only", "gemm", "--arch", "sm_90a"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(cells(done.stdout)) == ["gemm"]
    check(cells(done.stdout)["gemm"])


@needs_nvcc
def test_a_build_that_fails_says_why_and_fails(tmp_path):
    program = f"""\
import runpy, sys
sys.argv = ["resources.py", "--only", "lookback_scan", "gemm", "--arch", "sm_90a"]
from pathlib import Path
broken = Path({str(tmp_path)!r}) / "broken.cu"
broken.write_text("__global__ void kernel() {{ nothing(); }}")
module = runpy.run_path({str(HOME / "resources.py")!r})
module["CUDA"]["gemm"] = (str(broken), 256)
sys.exit(module["main"]())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert list(cells(done.stdout)) == ["lookback_scan"]
    assert re.search(r'^\* gemm: not compiled here: .*identifier "nothing" is undefined', done.stdout, re.MULTILINE)


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_the_committed_table_is_whole(arch):
    # A table is written to its end or not at all: every example is there, with every number.
    rows = cells(COMMITTED.split(f"## {arch}")[1].split("\n## ")[0])
    names = runpy.run_path(str(HOME / "resources.py"))["NAMES"]
    assert list(rows) == list(names)
    for row in rows.values():
        check(row)


@needs_nvcc
def test_blocks_are_counted_as_nvidias_header_counts_them(tmp_path, monkeypatch):
    include = toolkit_include()
    if include is None or not (include / "cuda_occupancy.h").is_file():
        pytest.skip("no cuda_occupancy.h here (wheel nvidia-cuda-runtime, or CUDA_HOME)")
    monkeypatch.syspath_prepend(str(HOME))
    from occupancy import blocks_per_sm

    (tmp_path / "oracle.cpp").write_text(ORACLE)
    line = [NVCC or "nvcc", f"-I{include}", str(tmp_path / "oracle.cpp"), "-o", str(tmp_path / "oracle")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shared = (0, 1, 40, 8192, 16448, 49152, 49153, 100000, 113 * 1024, 114 * 1024, 227 * 1024, 227 * 1024 + 1)
    cases = list(
        itertools.product(
            (90, 100),
            (32, 33, 96, 128, 160, 256, 1000, 1024),
            (10, 24, 48, 64, 65, 168, 240, 255),
            shared,
            (0, 1, 9, 16),
        )
    )
    given = "".join(f"{arch // 10} {' '.join(map(str, rest))}\n" for arch, *rest in cases)
    theirs = subprocess.run([str(tmp_path / "oracle")], input=given, capture_output=True, text=True, check=True)
    ours = [
        blocks_per_sm(arch, threads=threads, registers=registers, shared_bytes=bytes_, barriers=barriers)
        for arch, threads, registers, bytes_, barriers in cases
    ]
    differing = [
        (case, one, int(other))
        for case, one, other in zip(cases, ours, theirs.stdout.split(), strict=True)
        if one != int(other)
    ]
    assert differing == []
