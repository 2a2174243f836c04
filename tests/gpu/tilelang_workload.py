# SPDX-License-Identifier: Apache-2.0
"""Compile and launch TileLang kernels for a test: run as `python tilelang_workload.py WHOSE FOLDER`, under run-iket.

In: "ours", or "theirs" for the kernel of forty marks annotated and instrumented by TileLang's own module.
Out: FOLDER/results.json with the largest difference from PyTorch by kernel, and the events with their ids.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
FOLDER = Path(sys.argv[2])
os.environ["TILELANG_CACHE_DIR"] = str(FOLDER / "cache")

import tilelang  # noqa: E402
import torch  # noqa: E402
from tilelang.tools.cuda import iket as theirs  # noqa: E402
from tilelang_frontend import kernels  # noqa: E402

from iket_rewrite import tilelang as iket  # noqa: E402


def difference(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest difference."""
    torch.cuda.synchronize()
    return float((result.float() - expected.float()).abs().max())


def guide() -> float:
    """Run the guide's sample as it stands, and its kernel."""
    values = runpy.run_path(str(TESTS / "tilelang_frontend" / "guide_sample.py"))
    a, b = torch.rand(1024, device="cuda"), torch.rand(1024, device="cuda")
    return difference(values["kernel"](a, b), a + b)


def gemm(kernel) -> float:
    a = torch.randn(256, 256, device="cuda", dtype=torch.float16)
    b = torch.randn(256, 256, device="cuda", dtype=torch.float16)
    c = torch.empty(256, 256, device="cuda", dtype=torch.float32)
    kernel(a, b, c)
    return difference(c, a.double() @ b.double())


def attention(kernel) -> float:
    q, k, v = (torch.randn(256, 2, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    out = torch.empty_like(q)
    kernel(q, k, v, out)
    heads = [one.double().transpose(0, 1) for one in (q, k, v)]
    weights = torch.softmax(heads[0] @ heads[1].transpose(1, 2) / 8, dim=-1)
    return difference(out, (weights @ heads[2]).transpose(0, 1))


def in_place(kernel, expected) -> float:
    a = torch.rand(256, device="cuda")
    wanted = expected(a)
    kernel(a)
    return difference(a, wanted)


def every_payload(kernel) -> float:
    a = torch.arange(256, device="cuda", dtype=torch.float32) + 0.5
    c = torch.empty_like(a)
    kernel(a, a.half() * 2, a.bfloat16() * 4, c)
    return difference(c, a + 1)


def ours() -> dict:
    """Launch each kernel once."""
    programs = [kernels.gemm(), kernels.attention(), kernels.forty(), kernels.tokens(), kernels.every_payload()]
    results = {"main_kernel": guide()}
    with iket.session(runtime_payloads=True, verify=True) as session:
        compiled = tilelang.par_compile(programs, target="cuda", execution_backend="tvm_ffi")
    results["gemm_kernel"] = gemm(compiled[0])
    results["attention_kernel"] = attention(compiled[1])
    results["forty_kernel"] = in_place(compiled[2], lambda a: a + 1)
    results["tokens_kernel"] = in_place(compiled[3], lambda a: a * 2 + 1)
    results["every_payload_kernel"] = every_payload(compiled[4])
    tables = {record.kernels[0]: record.table for record in session.kernels}
    return {"differences": results, "tables": tables, "specialised": "tma_load" in compiled[0].get_kernel_source()}


def forty_of_theirs() -> dict:
    """Launch the kernel of forty marks with TileLang's own instrumentation."""
    with theirs.session(runtime_payloads=True):
        kernel = tilelang.compile(kernels.forty(module=theirs), target="cuda", execution_backend="tvm_ffi")
    return {"differences": {"forty_kernel": in_place(kernel, lambda a: a + 1)}}


if __name__ == "__main__":
    found = {"ours": ours, "theirs": forty_of_theirs}[sys.argv[1]]()
    (FOLDER / "results.json").write_text(json.dumps(found), encoding="utf-8")
