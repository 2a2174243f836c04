# SPDX-License-Identifier: Apache-2.0
"""The examples of capturing run and print what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from toolbox import ROOT

EXAMPLES = ROOT / "examples" / "capture"

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")


def run(name: str, *words: str) -> str:
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *words],
        env=dict(os.environ) | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def test_torch_and_core():
    shown = run("torch_and_core.py")
    # Four blocks of four warps, eight tiles.
    assert "square    16 ranges" in shown
    assert "load     128 ranges" in shown


def test_around_a_command():
    program = str(ROOT / "tests" / "gpu" / "captures" / "profiled.py")
    shown = run("around_command.py", sys.executable, program, "counted")
    assert "1 launches, 8 ranges, up to " in shown
    assert shown.count(" ns  counted ") == 8


def test_warp_lifetimes():
    shown = run("warp_lifetimes.py")
    assert shown.count("a warp lives") >= 2


@pytest.mark.skipif(find_spec("perfetto") is None, reason="the package perfetto is not installed")
def test_a_main_block(tmp_path):
    shown = run("main_block.py", str(tmp_path / "trace"))
    assert "inprocess" in shown
    assert len(list((tmp_path / "trace").iterdir())) == 4


@pytest.mark.skipif(find_spec("tilelang") is None, reason="TileLang is not installed")
def test_tuning_a_tilelang_kernel():
    shown = run("tune_tilelang.py")
    assert shown.count("ns a step") == 6
    assert "best: step" in shown
