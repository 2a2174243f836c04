# SPDX-License-Identifier: Apache-2.0
"""A TIRx kernel with a range, a payload and a mark, captured in the process that launches it.

Run on a machine with a GPU: python examples/tirx/affine.py
"""

from __future__ import annotations

import torch
from tvm_tirx.script import tirx as T

import iket_rewrite
from iket_rewrite.tirx import IketProfiler

BLOCKS, THREADS = 8, 128


@T.function
def affine(A: T.Tensor((BLOCKS * THREADS,), T.float32), B: T.Tensor((BLOCKS * THREADS,), T.float32)):
    """B = 2 A + 1."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=BLOCKS, block=THREADS)):
        profiler = IketProfiler()
        block = T.cuda.block_idx("x")
        thread = T.cuda.thread_idx("x")
        profiler.range_push("affine, one block of the grid per CTA", block, color=0x3366FF)
        value = A[block * THREADS + thread]
        profiler.mark("loaded", value)
        B[block * THREADS + thread] = T.float32(2) * value + T.float32(1)
        profiler.range_pop()


def main() -> None:
    """Compile, launch, capture, and print what each range took."""
    compiled = IketProfiler().compile(affine, target="cuda")
    a = torch.rand(BLOCKS * THREADS, device="cuda")
    b = torch.empty_like(a)
    with iket_rewrite.capture() as captured:
        compiled(a, b)
        torch.cuda.synchronize()
    torch.testing.assert_close(b, 2 * a + 1)
    trace = captured.trace
    ranges = trace.ranges
    columns = (ranges.name, ranges.start_bits, ranges.start_ns, ranges.end_ns)
    for name, block, start, end in zip(*columns, strict=True):
        print(f"{trace.names[name]}: block {block}, {end - start} ns")


if __name__ == "__main__":
    main()
