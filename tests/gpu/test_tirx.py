# SPDX-License-Identifier: Apache-2.0
"""TIRx kernels on a GPU: results against PyTorch, and every event and payload against what the kernel must do."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from gpu.capture import f32, f64, read_launch

from iket_rewrite.rewriting.plan import EMPTY

TESTS = Path(__file__).resolve().parents[1]
LONG = "a name of far more than thirty-two bytes: größe ✓"
BLOCKS = 4

pytestmark = pytest.mark.skipif(
    find_spec("tvm_tirx") is None, reason="TIRx is not installed: pip install 'iket-rewrite[tirx]'"
)


def python(*arguments: str, folder: Path) -> str:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS.parent), environment.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def only_launch(path: Path):
    trace = json.loads(path.read_text(encoding="utf-8"))
    (launch,) = [launch for launch in trace["launches"] if launch["ranges"] or launch["markers"]]
    return read_launch(trace, launch, EMPTY, [])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Every kernel, captured in one process."""
    folder = tmp_path_factory.mktemp("tirx")
    python(str(Path(__file__).with_name("tirx_workload.py")), str(folder), folder=folder)
    return folder


def test_kernels_compute_what_pytorch_computes(folder):
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert set(results["differences"].values()) == {0.0}


def test_a_regular_compilation_of_an_annotated_kernel_records_nothing(folder):
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["regular"] == "not-instrumented"


@pytest.mark.parametrize("name", ["affine", "theirs"])
def test_a_mark_lies_in_its_range(folder, name):
    launch = only_launch(folder / f"{name}.trace.json")
    (warp,) = launch.warps.values()
    assert warp.range("affine").start <= warp.mark("loaded").at <= warp.range("affine").end
    assert len(warp.marks) == 1


def test_tirxs_own_lowering_records_its_payload_and_its_token_range(folder):
    (warp,) = only_launch(folder / "theirs.trace.json").warps.values()
    assert warp.range("affine").first == 0
    assert (
        warp.range("affine").start <= warp.range("token").start <= warp.range("token").end <= warp.range("affine").end
    )


def test_every_payload_type_comes_back_with_its_value(folder):
    launch = only_launch(folder / "every_payload.trace.json")
    assert len(launch.warps) == BLOCKS
    for (block, _), warp in launch.warps.items():
        number = block[0]
        assert warp.range(LONG).first == number
        assert warp.range(LONG).color == 0x3366FF
        found = {mark.name: mark.payload for mark in warp.marks}
        assert found.pop("pointer") % 4 == 0
        assert found == {
            "bool": int(number > 0),
            "i8": (number - 8) & 0xFF,
            "u8": number,
            "i16": (number - 16) & 0xFFFF,
            "u16": number,
            "i32": (number - 32) & 0xFFFFFFFF,
            "u32": number,
            "i64": (number - (1 << 40)) & 0xFFFFFFFFFFFFFFFF,
            "u64": number + (1 << 40),
            "f16": struct.unpack("<H", struct.pack("<e", 3.0))[0],
            "bf16": f32(6.0) >> 16,
            "f32": f32(1.5),
            "f64": f64(0.75),
            "python int": 7,
            "python float": f32(2.5),
            "python bool": 1,
        }


def test_tokens_end_the_ranges_that_they_name(folder):
    (warp,) = only_launch(folder / "tokens.trace.json").warps.values()
    whole = warp.range("whole")
    assert (whole.first, whole.last) == (0, 1)
    steps = [one for one in warp.ranges if one.name == "step"]
    assert len(steps) == 4
    # Each step ends in the next turn of the loop, the last one behind the end of `whole`.
    assert all(earlier.end <= later.start for earlier, later in pairwise(steps))
    assert steps[-1].end >= whole.end
    assert {one.name for one in warp.ranges} == {"whole", "step"}


def test_many_events_are_each_under_their_own_name(folder):
    (warp,) = only_launch(folder / "many.trace.json").warps.values()
    assert {mark.name: mark.payload for mark in warp.marks} == {f"filler{index:02}": index for index in range(33)}


@pytest.mark.parametrize("engine", ["auto", "inprocess", "replay"])
def test_the_guides_program_runs_with_its_imports_changed(tmp_path, engine):
    text = (TESTS / "tirx_frontend" / "guide_program.py").read_text(encoding="utf-8")
    if engine != "auto":
        text = text.replace('postprocess="all"', f'postprocess="all", engine="{engine}"')
        assert engine in text
    program = tmp_path / "profile_affine.py"
    program.write_text(text, encoding="utf-8")
    printed = python(str(program), folder=tmp_path).split()
    files = [Path(line) for line in printed if "iket_affine_trace" in line]
    assert [file.is_file() and file.stat().st_size > 0 for file in files] == [True] * 3
    (warp,) = only_launch(files[0]).warps.values()
    assert warp.range("affine").start <= warp.mark("loaded").at <= warp.range("affine").end
