# SPDX-License-Identifier: Apache-2.0
"""A TileLang matrix product, captured in one of two ways: python tilelang_gemm.py inprocess|plain FOLDER.

TileLang's cache is off in a session, so every run of the program compiles the kernel.
"""

from __future__ import annotations

import sys

import tilelang
import tilelang.language as T
import torch

from iket_rewrite import tilelang as iket

WAY, FOLDER = sys.argv[1:3]
SIZE, TILE, STEP, THREADS = 512, 128, 32, 128


@T.prim_func
def product(
    A: T.Tensor((SIZE, SIZE), T.float16), B: T.Tensor((SIZE, SIZE), T.float16), C: T.Tensor((SIZE, SIZE), T.float32)
):
    """C = A B, with a mark and ranges in every tile."""
    with T.Kernel(SIZE // TILE, SIZE // TILE, threads=THREADS) as (x, y):
        a = T.alloc_shared((TILE, STEP), T.float16)
        b = T.alloc_shared((STEP, TILE), T.float16)
        c = T.alloc_fragment((TILE, TILE), T.float32)
        iket.mark("tile", payload=y * (SIZE // TILE) + x)
        T.clear(c)
        for step in T.Pipelined(SIZE // STEP, num_stages=3):
            T.copy(A[y * TILE, step * STEP], a)
            T.copy(B[step * STEP, x * TILE], b)
            with iket.range("multiply", payload=step):
                T.gemm(a, b, c)
        with iket.range("store"):
            T.copy(c, C[y * TILE, x * TILE])


def workload() -> None:
    """Compile, launch and check."""
    with iket.session(runtime_payloads=True):
        kernel = tilelang.compile(product, target="cuda", execution_backend="tvm_ffi")
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty(SIZE, SIZE, device="cuda", dtype=torch.float32)
    kernel(a, b, c)
    assert (c.double() - a.double() @ b.double()).abs().max() < 0.1


if __name__ == "__main__":
    if WAY == "inprocess":
        import iket_rewrite

        with iket_rewrite.capture(output=FOLDER):
            workload()
    else:
        workload()
