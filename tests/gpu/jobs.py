# SPDX-License-Identifier: Apache-2.0
"""The launches that the GPU tests look at; all of them run in one process, since starting one takes seconds."""

from __future__ import annotations

import json
from pathlib import Path

from gpu.capture import Job, f32
from toolbox import FIXTURES

HERE = Path(__file__).parent

REDUCE_IN = [float((7 * index) % 11) for index in range(512)]
SORT_IN = [(index * 2654435761) % 1000 for index in range(64)]
CLUSTER_IN = [3 * index - 40 for index in range(128)]
GEMM = {"m": 32, "n": 48, "k": 40}
GEMM_A = [float((3 * index) % 5) for index in range(GEMM["m"] * GEMM["k"])]
GEMM_B = [float((5 * index) % 7) for index in range(GEMM["k"] * GEMM["n"])]
#: Compared with 7.
FLAGS = [9, 3, 8, 7, 70, 0, 12, 6, 1000]
PRESSED_IN = [(index * 40503) % 977 for index in range(48)]
SILU_IN = [float(index % 3) for index in range(64)]


def floats(values: list[float]) -> dict:
    """Return an argument that holds 32-bit floats."""
    return {"data": [f32(value) for value in values]}


def integers(values: list[int]) -> dict:
    """Return an argument that holds 32-bit integers."""
    return {"data": [value & 0xFFFFFFFF for value in values]}


def jobs() -> list[Job]:
    """Return every launch."""
    expected = json.loads((FIXTURES / "cuda" / "expected.json").read_text(encoding="utf-8"))
    affine_float = next(name for name in _symbols(expected["templated"]) if "IfLj" in name)
    scalars = [{"i32": GEMM[key]} for key in ("m", "n", "k")]
    return [
        Job.fixture("all_payloads", "all_payloads", (6,), (256,), {"words": 64}, {"f32": 1.5}),
        Job.fixture("scoped_exits", "scoped_exits", (2,), (64,), {"words": 128}),
        Job(HERE / "conditional.cu", "conditional", (2,), (64,), [{"words": 128}]),
        Job(HERE / "roles.cu", "roles", (1,), (512,), [{"words": 64}, integers(FLAGS), {"u32": 7}]),
        Job(HERE / "pressed.cu", "pressed", (1,), (96,), [{"words": 96}, integers(PRESSED_IN), {"u32": 5}]),
        Job.fixture("block_reduce", "block_reduce", (2,), (256,), floats(REDUCE_IN), {"words": 2}, {"u32": 512}),
        Job.fixture(
            "many_events", "many_events", (1,), (64,), integers(SORT_IN), {"words": 64}, {"words": 128}, {"words": 64}
        ),
        Job.fixture("cluster", "cluster_sum", (4,), (32,), integers(CLUSTER_IN), {"words": 4}, cluster=(2,)),
        Job.fixture(
            "tiled_gemm",
            "tiled_gemm",
            (3, 2),
            (16, 16),
            floats(GEMM_A),
            floats(GEMM_B),
            {"words": GEMM["m"] * GEMM["n"]},
            *scalars,
        ),
        Job.fixture("helper_two_kernels", "silu_forward", (1,), (64,), floats(SILU_IN), {"words": 64}),
        Job.fixture(
            "helper_two_kernels", "swiglu_forward", (1,), (64,), floats(SILU_IN), floats(SILU_IN), {"words": 64}
        ),
        Job.fixture("wrappers", "softmax_rows", (2,), (64,), floats([1.0] * 128), {"words": 128}),
        Job.fixture("wrappers", "scale_rows", (2,), (64,), floats([2.0, 3.0, 4.0, 5.0]), floats([1.0] * 128)),
        Job.fixture("long_names", "long_names", (1,), (32,), floats([1.0] * 32), {"words": 32}),
        Job.fixture(
            "templated",
            affine_float,
            (2,),
            (128,),
            floats([2.0] * 1024),
            {"words": 1024},
            {"f64": 0.5},
            {"f64": 3.0},
            {"u64": 3},
        ),
    ]


def _symbols(entry: dict) -> list[str]:
    symbols = entry["symbols"]
    return list(symbols.values()) if isinstance(symbols, dict) else symbols
