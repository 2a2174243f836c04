# SPDX-License-Identifier: Apache-2.0
"""The kernel of TIRx's public IKET guide, captured in one of three ways: python tirx_affine.py WAY FOLDER.

inprocess: this project's session; plain: nothing, for a capture around this program; theirs: TIRx's own `iket.run`.
"""

from __future__ import annotations

import sys

import torch
import tvm_tirx
from tvm_tirx.backend.cuda import iket
from tvm_tirx.backend.cuda.iket import IketProfiler
from tvm_tirx.script import tirx as T

WAY, FOLDER = sys.argv[1:3]


@T.function
def profiled_affine(A: T.Tensor((32,), T.float32), B: T.Tensor((32,), T.float32)):
    """B = 2 A + 1, as in TIRx's guide."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
        profiler = IketProfiler()
        tid = T.cuda.thread_idx("x")
        profiler.range_push("affine")
        value = A[tid]
        profiler.mark("loaded")
        B[tid] = T.float32(2) * value + T.float32(1)
        profiler.range_pop()


def compile_kernel():
    """Compile with TIRx's own lowering; what its `compile` returns loads under run-iket only."""
    if WAY == "theirs":
        return IketProfiler().compile(profiled_affine, target="cuda")
    module = tvm_tirx.IRModule.from_expr(profiled_affine).with_attr("cuda.iket.enabled", True)
    return tvm_tirx.tirx.compile(module, target="cuda", pipeline="tirx").jit().main


def workload() -> None:
    """Compile, launch and check."""
    compiled = compile_kernel()
    a = torch.arange(32, dtype=torch.float32, device="cuda")
    b = torch.empty_like(a)
    compiled(a, b)
    torch.cuda.synchronize()
    torch.testing.assert_close(b, 2 * a + 1)


if __name__ == "__main__":
    if WAY == "theirs":
        iket.run(workload, output_dir=FOLDER, postprocess="json")
    elif WAY == "inprocess":
        import iket_rewrite

        with iket_rewrite.capture(output=FOLDER):
            workload()
    else:
        workload()
