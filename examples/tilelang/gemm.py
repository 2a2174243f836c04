# SPDX-License-Identifier: Apache-2.0
"""A software-pipelined matrix product: which step of the pipeline takes how long, in every warp.

Run:      python examples/tilelang/gemm.py
Capture:  eval "$(python examples/tilelang/gemm.py --command traces)"

On Hopper TileLang gives the copies to warps of their own.  The range "copy" stays with the others and encloses
nothing there, which the session warns of; the range "multiply" holds the wait for the copy as well.
"""

from __future__ import annotations

import sys

import tilelang
import tilelang.language as T
import torch

from iket_rewrite import tilelang as iket

SIZE, TILE, STEP, THREADS = 512, 128, 32, 128


def gemm(size: int):
    """Return the kernel."""

    @T.prim_func
    def gemm(
        A: T.Tensor((size, size), T.float16),
        B: T.Tensor((size, size), T.float16),
        C: T.Tensor((size, size), T.float32),
    ):
        with T.Kernel(size // TILE, size // TILE, threads=THREADS) as (x, y):
            a = T.alloc_shared((TILE, STEP), T.float16)
            b = T.alloc_shared((STEP, TILE), T.float16)
            c = T.alloc_fragment((TILE, TILE), T.float32)
            iket.mark("tile", payload=y * (size // TILE) + x)
            T.clear(c)
            for step in T.Pipelined(size // STEP, num_stages=3):
                with iket.range("copy", payload=step):
                    T.copy(A[y * TILE, step * STEP], a)
                    T.copy(B[step * STEP, x * TILE], b)
                with iket.range("multiply", payload=step):
                    T.gemm(a, b, c)
            with iket.range("store"):
                T.copy(c, C[y * TILE, x * TILE])

    return gemm


def main() -> None:
    """Print the capture's command, or compile, verify and launch."""
    if sys.argv[1:2] == ["--command"]:
        print(iket.profile_command([sys.executable, __file__], directory=sys.argv[2]))
        return
    gpu = torch.cuda.is_available()
    target = "cuda" if gpu else {"kind": "cuda", "arch": "sm_90a"}
    with iket.session(runtime_payloads=True, verify=True) as session:
        kernel = tilelang.compile(gemm(SIZE), target=target, execution_backend="tvm_ffi")
    for event in session.kernels[0].table["events"]:
        print(f"{event['id']:3} {event['kind']:6} {event['name']:9} {event['payload'] or '-'}")
    if gpu:
        a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty(SIZE, SIZE, device="cuda", dtype=torch.float32)
        kernel(a, b, c)
        error = (c.double() - a.double() @ b.double()).abs().max().item()
        print(f"largest difference from PyTorch: {error:.1e}")


if __name__ == "__main__":
    main()
