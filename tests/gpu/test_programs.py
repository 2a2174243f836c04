# SPDX-License-Identifier: Apache-2.0
"""Whole programs on a GPU: the examples built by `iket-nvcc`, separate compilation, PyTorch, run-time compilation.

Each program checks its own result; what the trace says is compared with what the kernel must have done.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from building.compilers import command, environment
from builds import needs_nvcc
from gpu.capture import HERE, Captured, f32, profile, read_launch
from gpu.conftest import arch_here
from toolbox import INCLUDE, NVCC, ROOT

import iket_rewrite

EXAMPLES = ROOT / "examples"
LINKED = HERE / "linked"


def built(output: Path, *arguments: str, **variables: str) -> Path:
    """Compile with `iket-nvcc` for the GPU that is here."""
    line = command("nvcc_command", f"-I{INCLUDE}", "-std=c++17", f"-arch={arch_here()}", *arguments, "-o", str(output))
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment(**variables))
    assert done.returncode == 0, done.stdout + done.stderr
    return output


def right(line: list[str]) -> None:
    """Run a program that checks its own result."""
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=280, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right: " in done.stdout


def launched(line: list[str], folder: Path, kernel: str) -> Captured:
    """Run a program plainly, then under run-iket; return its one launch of a kernel."""
    right(line)
    trace = profile(line, folder / "trace")
    (launch,) = (launch for launch in trace["launches"] if kernel in launch["kernelName"])
    return read_launch(trace, launch, None, [])


def counts(warp) -> dict[str, int]:
    return dict(Counter([mark.name for mark in warp.marks] + [one.name for one in warp.ranges]))


# --- Examples in CUDA C++ -------------------------------------------------------------------------------------


@needs_nvcc
def test_the_matrix_product(tmp_path):
    program = built(tmp_path / "gemm", str(EXAMPLES / "cuda/gemm/main.cu"))
    launch = launched([str(program)], tmp_path, "gemm")
    assert len(launch.warps) == 2 * 3 * 8
    n, k = 128, 80
    for (x, y, _), number in launch.warps:
        warp = launch.warps[(x, y, 0), number]
        assert counts(warp) == {"block": 1, "load": 5, "compute": 5, "stored": 1}
        assert [one.first for one in warp.ranges if one.name == "load"] == list(range(5))
        block = warp.range("block")
        assert all(block.start <= one.start <= one.end <= block.end for one in warp.ranges)
        # Two lines of threads, each of four rows, make a warp.
        row, column = 64 * y + 8 * number, 64 * x
        value = sum(3 * (row * k + step) % 5 * (5 * (step * n + column) % 7) for step in range(k))
        assert warp.mark("stored").payload == f32(value)


@needs_nvcc
def test_the_warp_specialised_pipeline(tmp_path):
    program = built(tmp_path / "pipeline", str(EXAMPLES / "cuda/tma_pipeline/main.cu"))
    launch = launched([str(program)], tmp_path, "pipeline_sum")
    assert len(launch.warps) == 8 * 5
    tiles, tile = 12, 1024
    for (block, _, _), number in launch.warps:
        warp = launch.warp(block, number)
        if number == 4:
            assert counts(warp) == {"producer": 1, "wait for room": tiles, "issue": tiles}
            assert [mark.payload for mark in warp.marks] == [index % 4 for index in range(tiles)]
            continue
        assert counts(warp) == {"consumer": 1, "wait for tile": tiles, "add": tiles, "summed": 1}
        assert warp.range("consumer").first == number
        assert [one.first for one in warp.ranges if one.name == "wait for tile"] == list(range(tiles))
        mine = (at for at in range(block * tiles * tile, (block + 1) * tiles * tile) if at // 32 % 4 == number)
        assert warp.mark("summed").payload == f32(sum(at * 7 % 13 for at in mine))


@needs_nvcc
def test_the_look_back_scan(tmp_path):
    program = built(tmp_path / "scan", str(EXAMPLES / "cuda/lookback_scan/main.cu"))
    launch = launched([str(program)], tmp_path, "lookback_scan")
    assert len(launch.warps) == 100 * 8
    tiles = set()
    for (block, _, _), number in launch.warps:
        warp = launch.warp(block, number)
        number_of_tile = launch.warp(block, 0).range("tile").first
        tiles.add(number_of_tile)
        expected = {"tile": 1, "local scan": 1, "wait for prefix": 1, "store": 1}
        published = []
        if number == 0:
            published = [1, 2] if number_of_tile else [2]
            expected |= {"published": len(published)}
            expected |= {"look back": 1, "found": 1} if number_of_tile else {}
        assert counts(warp) == expected
        assert warp.range("tile").first == number_of_tile
        assert [mark.payload for mark in warp.marks if mark.name == "published"] == published
    assert tiles == set(range(100))


# --- Separate compilation ---------------------------------------------------------------------------------------


def check_linked(program: Path, folder: Path) -> None:
    report = iket_rewrite.verify(program)
    assert report.ok, report.findings
    launch = launched([str(program)], folder, "first")
    assert len(launch.warps) == 2 * 2
    for (block, _, _), number in launch.warps:
        warp = launch.warp(block, number)
        index = 64 * block + 32 * number
        assert counts(warp) == {"first": 1, "second step": 1, "noted": 2}
        assert [mark.payload for mark in warp.marks] == [index, 2 * index]
        outer, inner = warp.range("first"), warp.range("second step")
        assert inner.first == index
        assert outer.start <= inner.start <= inner.end <= outer.end


@needs_nvcc
@pytest.mark.parametrize("options", [["-rdc=true"], ["-dlto", "-rdc=true"]], ids=["rdc", "dlto"])
def test_units_that_are_linked_for_the_device(options, tmp_path):
    sources = [str(LINKED / name) for name in ("first.cu", "second.cu")]
    plan = tmp_path / "plan.json"
    iket_rewrite.rewrite_program(sources, plan=plan).write_plan()
    objects = []
    for source in sources:
        output = tmp_path / f"{Path(source).stem}.o"
        objects.append(str(built(output, *options, "-c", source, IKET_PLAN=str(plan))))
    program = tmp_path / "program"
    line = [NVCC, *options, f"-arch={arch_here()}", *objects, "-o", str(program)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_linked(program, tmp_path)


@needs_nvcc
def test_an_overlay_that_is_linked_for_the_device(tmp_path):
    sources = [str(LINKED / name) for name in ("first.cu", "second.cu")]
    program = iket_rewrite.rewrite_program(sources)
    program.write(tmp_path / "overlay")
    copies = [str(tmp_path / "overlay" / program.copy_of(source)) for source in sources]
    options = [f"-I{INCLUDE}", "-rdc=true", f"-arch={arch_here()}", *program.options(str(tmp_path / "overlay"))]
    line = [NVCC, *options, *copies, "-o", str(tmp_path / "program")]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_linked(tmp_path / "program", tmp_path)


# --- Compilation while the program runs ---------------------------------------------------------------------------


def check_axpy(launch: Captured) -> None:
    assert len(launch.warps) == 4 * 4
    for (block, _, _), number in launch.warps:
        warp = launch.warp(block, number)
        assert counts(warp) == {"axpy": 1, "load": 2, "stored": 2}
        first = 128 * block + 32 * number
        assert [one.first for one in warp.ranges if one.name == "load"] == [first, first + 512]


def test_a_cubin_of_compile_cubin_in_cuda_core(tmp_path):
    check_axpy(launched([sys.executable, str(EXAMPLES / "runtime/cuda_core.py")], tmp_path, "axpy"))


@pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="no cupy here")
def test_rewritten_text_in_cupy(tmp_path):
    check_axpy(launched([sys.executable, str(EXAMPLES / "runtime/cupy_raw_module.py")], tmp_path, "axpy"))


def _torch_can_build() -> str:
    """Say what PyTorch lacks to build an extension, or return an empty string."""
    if importlib.util.find_spec("torch") is None:
        return "no torch here"
    import torch

    if not torch.cuda.is_available():
        return "this torch has no CUDA"
    beside = os.path.join(os.path.dirname(sys.executable), "ninja")
    if shutil.which("ninja") is None and not os.path.exists(beside):
        return "PyTorch builds extensions with ninja, which is missing here (pip install ninja)"
    return ""


@pytest.fixture
def torch_folder(tmp_path, monkeypatch):
    """PyTorch builds in a folder of its own, and finds ninja beside the interpreter."""
    lacking = _torch_can_build()
    if lacking:
        pytest.skip(lacking)
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    return tmp_path


@needs_nvcc
def test_an_extension_that_torch_builds_with_iket_nvcc(torch_folder):
    line = [sys.executable, str(EXAMPLES / "cuda/torch_extension/run.py")]
    launch = launched(line, torch_folder, "softmax_rows")
    rows = []
    for (block, _, _), number in launch.warps:
        warp = launch.warp(block, number)
        if not warp.ranges:
            continue
        assert counts(warp) == {"row": 1, "maximum": 1, "sum": 1, "store": 1, "normaliser": 1}
        assert warp.range("row").first == 4 * block + number
        rows.append(4 * block + number)
    assert sorted(rows) == list(range(37))


@needs_nvcc
def test_rewritten_text_in_torchs_load_inline(torch_folder):
    check_axpy(launched([sys.executable, str(EXAMPLES / "runtime/torch_inline.py")], torch_folder, "axpy"))
