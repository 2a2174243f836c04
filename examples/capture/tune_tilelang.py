# SPDX-License-Identifier: Apache-2.0
"""Tune a TileLang kernel by the time of one of its ranges: captures in a loop, a few milliseconds each.

The whole kernel's time says which variant is fastest; the range says why: how long a consumer warp waits and multiplies
in one step of the pipeline, without the launch, the prologue and the store.

Run: python examples/capture/tune_tilelang.py
"""

from __future__ import annotations

import itertools
import time

import numpy as np
import tilelang
import tilelang.language as T
import torch

import iket_rewrite
from iket_rewrite import tilelang as iket

SIZE, TILE, THREADS = 1024, 128, 128


def product(size: int, step: int, stages: int):
    """Return a matrix product with a range around each step's multiplication."""

    @T.prim_func
    def product(
        A: T.Tensor((size, size), T.float16),
        B: T.Tensor((size, size), T.float16),
        C: T.Tensor((size, size), T.float32),
    ):
        with T.Kernel(size // TILE, size // TILE, threads=THREADS) as (x, y):
            a = T.alloc_shared((TILE, step), T.float16)
            b = T.alloc_shared((step, TILE), T.float16)
            c = T.alloc_fragment((TILE, TILE), T.float32)
            T.clear(c)
            for k in T.Pipelined(size // step, num_stages=stages):
                T.copy(A[y * TILE, k * step], a)
                T.copy(B[k * step, x * TILE], b)
                with iket.range("multiply"):
                    T.gemm(a, b, c)
            T.copy(c, C[y * TILE, x * TILE])

    return product


def measured(kernel, *tensors: torch.Tensor) -> tuple[float, float]:
    """Return the median of the range in ns, scaled to a column of A, and what the capture cost in ms."""
    began = time.perf_counter()
    with iket_rewrite.capture(max_events_per_warp=512) as captured:
        kernel(*tensors)
    took = captured.trace.ranges.duration_ns
    cost = time.perf_counter() - began
    return float(np.median(took)), 1e3 * cost


def main() -> None:
    """Compile every variant, capture each three times, and print the best."""
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty(SIZE, SIZE, device="cuda", dtype=torch.float32)
    expected = a.double() @ b.double()
    results, kept = [], []
    for step, stages in itertools.product((32, 64), (2, 3, 4)):
        with iket.session():
            kernel = tilelang.compile(product(SIZE, step, stages), target="cuda", execution_backend="tvm_ffi")
        # The runtime reads every captured kernel again at the next capture: an unloaded one would end the process.
        kept.append(kernel)
        kernel(a, b, c)
        assert (c.double() - expected).abs().max() < 0.1
        times, costs = zip(*(measured(kernel, a, b, c) for _ in range(3)), strict=True)
        per_column = min(times) / step
        results.append((per_column, step, stages))
        print(
            f"step {step}, {stages} stages: {min(times):6.0f} ns a step, {per_column:5.1f} ns a column; "
            f"captures took {', '.join(f'{cost:.0f}' for cost in costs)} ms"
        )
    best = min(results)
    print(f"best: step {best[1]}, {best[2]} stages")


if __name__ == "__main__":
    main()
