# SPDX-License-Identifier: Apache-2.0
"""Capture a TileLang kernel inside the process: run as `python tilelang_program.py FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
FOLDER = Path(sys.argv[1])
os.environ["TILELANG_CACHE_DIR"] = str(FOLDER / "cache")

import tilelang  # noqa: E402
import torch  # noqa: E402
from tilelang_frontend import kernels  # noqa: E402

import iket_rewrite  # noqa: E402
from iket_rewrite import tilelang as iket  # noqa: E402


def main() -> None:
    """Capture the same matrix product with compilation in the block, and again without."""
    a, b = (torch.randn(256, 256, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty(256, 256, device="cuda", dtype=torch.float32)
    with iket_rewrite.capture(output=FOLDER / "first.trace.json"):
        with iket.session(runtime_payloads=True):
            kernel = tilelang.compile(kernels.gemm(), target="cuda", execution_backend="tvm_ffi")
        kernel(a, b, c)
    differences = [float((c.double() - a.double() @ b.double()).abs().max())]
    a = torch.randn_like(a)
    with iket_rewrite.capture(output=FOLDER / "second.trace.json"):
        kernel(a, b, c)
        kernel(a, b, c)
    differences.append(float((c.double() - a.double() @ b.double()).abs().max()))
    (FOLDER / "results.json").write_text(json.dumps({"differences": differences}), encoding="utf-8")


if __name__ == "__main__":
    main()
