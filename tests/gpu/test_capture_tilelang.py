# SPDX-License-Identifier: Apache-2.0
"""A TileLang kernel, captured inside the process: each payload is its tile, step or block."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpu.capture import Captured, read_launch

from iket_rewrite.rewriting.plan import EMPTY

PROGRAM = Path(__file__).parent / "captures" / "tilelang_program.py"

pytestmark = pytest.mark.skipif(
    find_spec("tilelang") is None, reason="TileLang is not installed: pip install 'iket-rewrite[tilelang]'"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("tilelang")
    done = subprocess.run([sys.executable, str(PROGRAM), str(made)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return made


def launches(path: Path) -> list[Captured]:
    trace = json.loads(path.read_text(encoding="utf-8"))
    ours = [launch for launch in trace["launches"] if launch["kernelName"] == "gemm_kernel"]
    return [read_launch(trace, launch, EMPTY, []) for launch in ours]


@pytest.mark.parametrize(("name", "count"), [("first", 1), ("second", 2)])
def test_every_payload_is_its_tile_block_or_step(folder, name, count):
    found = launches(folder / f"{name}.trace.json")
    assert len(found) == count
    for launch in found:
        blocks = defaultdict(list)
        for (block, _), warp in launch.warps.items():
            blocks[block[:2]].append(warp)
        assert set(blocks) == {(x, y) for x in range(2) for y in range(2)}
        for (x, y), warps in blocks.items():
            assert all([(mark.name, mark.payload) for mark in warp.marks] == [("tile", 2 * y + x)] for warp in warps)
            workers = [warp for warp in warps if warp.ranges]
            assert len(workers) == 4
            for warp in workers:
                steps = {part: [one.first for one in warp.ranges if one.name == part] for part in ("copy", "gemm")}
                assert steps == {"copy": list(range(8)), "gemm": list(range(8))}
                assert warp.range("store").first == x


def test_the_captured_kernel_computes_what_pytorch_computes(folder):
    differences = json.loads((folder / "results.json").read_text(encoding="utf-8"))["differences"]
    assert max(differences) <= 1e-2
