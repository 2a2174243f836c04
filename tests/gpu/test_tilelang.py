# SPDX-License-Identifier: Apache-2.0
"""TileLang kernels on a GPU: results against PyTorch, and every event and payload against what the kernel must do."""

from __future__ import annotations

import json
import struct
import sys
from collections import defaultdict
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from gpu.capture import Captured, f32, f64, profile, read_launch

from iket_rewrite.rewriting.plan import EMPTY

WORKLOAD = Path(__file__).with_name("tilelang_workload.py")
NAMES = [f"mark {number:02}" for number in range(40)]

pytestmark = pytest.mark.skipif(
    find_spec("tilelang") is None, reason="TileLang is not installed: pip install 'iket-rewrite[tilelang]'"
)


@dataclass
class Run:
    """One capture: the launches by kernel, and what the program wrote."""

    launches: dict[str, Captured]
    results: dict


def capture(whose: str, folder: Path) -> Run:
    trace = profile([sys.executable, str(WORKLOAD), whose, str(folder)], folder / "trace")
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    # PyTorch launches kernels of its own; ours are each launched once.
    launches = [launch for launch in trace["launches"] if launch["kernelName"] in results["differences"]]
    assert len(launches) == len({launch["kernelName"] for launch in launches})
    read = {launch["kernelName"]: read_launch(trace, launch, EMPTY, []) for launch in launches}
    return Run(read, results)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    """The guide's sample and all kernels, in one process."""
    return capture("ours", tmp_path_factory.mktemp("ours"))


def by_block(launch: Captured) -> dict[tuple[int, int], list]:
    """Return the warps of each block, by its first two indices."""
    blocks = defaultdict(list)
    for (block, _), warp in sorted(launch.warps.items(), key=lambda item: item[0]):
        blocks[block[0], block[1]].append(warp)
    return dict(blocks)


def values(warp, name: str) -> list[int | None]:
    """Return the payloads of a warp's ranges of one name, in time."""
    return [one.first for one in warp.ranges if one.name == name]


def marked(launch: Captured) -> list[tuple[tuple[int, int], str, int | None]]:
    """Return block, name and payload of every mark."""
    return [
        (block, mark.name, mark.payload)
        for block, warps in by_block(launch).items()
        for warp in warps
        for mark in warp.marks
    ]


# --- Results --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "tolerance"),
    [
        ("main_kernel", 0.0),
        ("gemm_kernel", 1e-2),
        ("attention_kernel", 1e-2),
        ("forty_kernel", 0.0),
        ("tokens_kernel", 1e-6),
        ("every_payload_kernel", 0.0),
    ],
)
def test_an_instrumented_kernel_computes_what_pytorch_computes(run, kernel, tolerance):
    assert run.results["differences"][kernel] <= tolerance


# --- The guide's sample -------------------------------------------------------------------------------------------


def test_the_guides_sample_is_captured_with_target_cuda_and_the_cython_backend(run):
    launch = run.launches["main_kernel"]
    assert len(launch.warps) == 8 * 4
    for warp in launch.warps.values():
        assert [one.name for one in warp.ranges] == ["block_total"]
        assert len(warp.marks) == 2
        block = warp.range("block_total")
        before, after = warp.mark("before_store"), warp.mark("after_store")
        assert block.start <= before.at <= after.at <= block.end
        # Payloads are opt-in, and these events have none.
        assert (block.first, before.payload, after.payload) == (None, None, None)


# --- The GEMM -----------------------------------------------------------------------------------------------------


def test_every_payload_of_the_gemm_is_its_tile_block_or_step(run):
    blocks = by_block(run.launches["gemm_kernel"])
    assert set(blocks) == {(x, y) for x in range(2) for y in range(2)}
    for (x, y), warps in blocks.items():
        # Every warp comes by the mark, the producers of a specialised kernel too.
        assert [[(mark.name, mark.payload) for mark in warp.marks] for warp in warps] == [
            [("tile", 2 * y + x)] for _ in warps
        ]
        consumers = [warp for warp in warps if warp.ranges]
        assert len(consumers) == 4
        for warp in consumers:
            assert values(warp, "copy") == list(range(8))
            assert values(warp, "gemm") == list(range(8))
            assert values(warp, "store") == [x]


def test_the_specialised_gemm_has_warps_that_only_load(run):
    if not run.results["specialised"]:
        pytest.skip("TileLang does not specialise warps on this GPU")
    for warps in by_block(run.launches["gemm_kernel"]).values():
        assert [bool(warp.ranges) for warp in warps].count(False) >= 1
        assert len(warps) == 8


# --- Attention ----------------------------------------------------------------------------------------------------


def test_every_payload_of_the_attention_kernel_is_its_step_or_head(run):
    blocks = by_block(run.launches["attention_kernel"])
    assert set(blocks) == {(x, y) for x in range(4) for y in range(2)}
    for (_, head), warps in blocks.items():
        workers = [warp for warp in warps if warp.ranges]
        assert len(workers) == 4
        for warp in workers:
            assert values(warp, "scores") == [0, 1, 2, 3]
            assert values(warp, "softmax") == [0, 64, 128, 192]
            assert values(warp, "values") == [head] * 4
            assert [mark.name for mark in warp.marks] == ["done"]


# --- Forty events -------------------------------------------------------------------------------------------------


def test_forty_marks_are_each_under_their_own_name(run):
    launch = run.launches["forty_kernel"]
    assert len(launch.warps) == 2 * 4
    for (block, _), warp in launch.warps.items():
        assert len(warp.marks) == 40
        assert {mark.name: mark.payload for mark in warp.marks} == {
            name: 100 * block[0] + number for number, name in enumerate(NAMES)
        }


def test_tilelangs_own_injector_puts_marks_under_other_names(tmp_path):
    """The contrast: the same kernel, the same runtime, and names that do not go with their payloads."""
    theirs = capture("theirs", tmp_path)
    assert theirs.results["differences"]["forty_kernel"] == 0.0
    found = marked(theirs.launches["forty_kernel"])
    # Where the id that was recorded belongs to no declared event, the runtime makes up a name.
    rightly = {(100 * block + number, name) for block in range(2) for number, name in enumerate(NAMES)}
    wrong = [(name, payload) for _, name, payload in found if (payload, name) not in rightly]
    missing = set(NAMES) - {name for _, name, _ in found}
    assert wrong or missing


# --- Token ranges and payload types -------------------------------------------------------------------------------


def test_token_ranges_overlap_with_payloads_at_both_ends(run):
    launch = run.launches["tokens_kernel"]
    assert len(launch.warps) == 2 * 4
    for (block, _), warp in launch.warps.items():
        first, second, nested = warp.range("first"), warp.range("second"), warp.range("nested")
        assert (first.first, first.last) == (block[0], block[0] + 7)
        assert (second.first, second.last) == (None, None)
        assert (nested.first, nested.last) == (f64(2.5), None)
        assert first.start <= second.start <= nested.start <= nested.end <= first.end <= second.end
        assert second.color == 0xFF0000


def test_every_payload_type_comes_back_with_its_value(run):
    launch = run.launches["every_payload_kernel"]
    for (block, _), warp in launch.warps.items():
        number = block[0]
        element = number + 0.5
        found = {mark.name: mark.payload for mark in warp.marks}
        pointer = found.pop("handle")
        assert pointer is not None
        assert (pointer - 4 * number) % 256 == 0
        assert found == {
            "bool": int(number > 0),
            **dict.fromkeys(
                ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
                number + 1,
            ),
            "float16": struct.unpack("<H", struct.pack("<e", 2 * element))[0],
            "bfloat16": f32(4 * element) >> 16,
            "float32": f32(element),
            "float64": f64(element),
        }


def test_the_event_table_leads_from_a_name_to_its_line(run):
    table = run.results["tables"]["gemm_kernel"]
    lines = {site["name"]: site["line"] for site in table["sites"] if site["name"]}
    source = (Path(__file__).parents[1] / "tilelang_frontend" / "kernels.py").read_text(encoding="utf-8").splitlines()
    for name in ("tile", "copy", "gemm", "store"):
        assert f'"{name}"' in source[lines[name] - 1]
