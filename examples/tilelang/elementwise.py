# SPDX-License-Identifier: Apache-2.0
"""A sum of two vectors with a range around each block and a mark at each warp's store.

Run:      python examples/tilelang/elementwise.py
Capture:  eval "$(python examples/tilelang/elementwise.py --command traces)"

Without a GPU it compiles for sm_90a and shows what would be recorded.
"""

from __future__ import annotations

import sys

import tilelang
import tilelang.language as T
import torch

from iket_rewrite import tilelang as iket

SIZE, THREADS = 1024, 128


def add(n: int):
    """Return the kernel."""

    @T.prim_func
    def add(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), T.float32), C: T.Tensor((n,), T.float32)):
        with (
            T.Kernel(T.ceildiv(n, THREADS), threads=THREADS) as block,
            iket.range("block", payload=block, color=0x3366FF),
        ):
            for thread in T.Parallel(THREADS):
                i = block * THREADS + thread
                if i < n:
                    C[i] = A[i] + B[i]
                    iket.mark("stored", payload=i)

    return add


def main() -> None:
    """Print the capture's command, or compile, verify and launch."""
    if sys.argv[1:2] == ["--command"]:
        print(iket.profile_command([sys.executable, __file__], directory=sys.argv[2]))
        return
    gpu = torch.cuda.is_available()
    target = "cuda" if gpu else {"kind": "cuda", "arch": "sm_90a"}
    with iket.session(runtime_payloads=True, verify=True) as session:
        kernel = tilelang.compile(add(SIZE), target=target, execution_backend="tvm_ffi")
    for site in session.kernels[0].table["sites"]:
        print(f"{site['file']}:{site['line']}: {site['kind']:10} {site['name'] or ''}")
    if gpu:
        a, b = torch.rand(SIZE, device="cuda"), torch.rand(SIZE, device="cuda")
        c = torch.empty_like(a)
        kernel(a, b, c)
        print("result:", "right" if torch.equal(c, a + b) else "wrong")


if __name__ == "__main__":
    main()
