# SPDX-License-Identifier: Apache-2.0
"""A tutorial leads to a trace: its blocks, those that only a GPU can run among them, one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from builds import NVCC
from pages import BLOCKS, blocks
from toolbox import ROOT

from iket_rewrite import load_trace


def run(command: list[str], folder: Path) -> str:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    binaries = f"{folder / 'commands'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": binaries, "PYTHONPATH": paths}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    # iket-trace returns 1 for a warning about the trace.
    allowed = (0, 1) if "iket-trace" in command[-1] else (0,)
    assert done.returncode in allowed, f"{command}\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def lay_commands(folder: Path) -> None:
    """Lay the commands that an installation brings: these tests run from a checkout."""
    folder.mkdir()
    for name in ("rewrite", "verify", "profile", "trace"):
        script = folder / f"iket-{name}"
        module = f"iket_rewrite.cli.{name}_command"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n', encoding="utf-8")
        script.chmod(0o755)


@pytest.mark.parametrize(
    ("page", "package", "names"),
    [
        ("docs/tutorials/tilelang.md", "tilelang", {"block", "done"}),
        ("docs/tutorials/tirx.md", "tvm_tirx", {"double"}),
    ],
)
def test_a_tutorial_in_python_captures(page, package, names, tmp_path):
    if find_spec(package) is None or find_spec("torch") is None:
        pytest.skip(f"{package} or PyTorch is not installed")
    program = tmp_path / "program.py"
    program.write_text("\n\n".join(block.text for block in blocks(page)), encoding="utf-8")
    run([sys.executable, str(program)], tmp_path)
    trace = load_trace(tmp_path / "trace.json")
    assert {trace.names[index] for index in (*trace.ranges.name, *trace.markers.name)} == names


@pytest.mark.skipif(NVCC is None, reason="no nvcc here (PATH, or the variable NVCC)")
def test_the_tutorial_in_cuda_captures(tmp_path):
    page = "docs/tutorials/cuda.md"
    lay_commands(tmp_path / "commands")
    for name, block in zip(("kernel.cu", "main.cu"), blocks(page, "cuda"), strict=True):
        (tmp_path / name).write_text(block.text, encoding="utf-8")
    lines = [line[2:] for block in BLOCKS if block.page == page for line in block.text.splitlines() if line[:2] == "$ "]
    for line in lines:
        if not line.startswith("pip "):
            run(["bash", "-c", line], tmp_path)
    trace = load_trace(tmp_path / "trace")
    # One block of four warps and eight tiles.
    assert len(trace.ranges.name) == 4 * (1 + 8)
    assert len(trace.markers.name) == 4 * 8
    assert (tmp_path / "page.html").stat().st_size > 0
