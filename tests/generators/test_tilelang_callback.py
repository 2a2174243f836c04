# SPDX-License-Identifier: Apache-2.0
"""Registered as TileLang's post-processing callback, the rewriter gets the real generated source."""

from __future__ import annotations

import subprocess
import sys

# A process of its own: TileLang brings libraries along that other tests should not share a process with.
SCRIPT = """
import tilelang, tilelang.language as T, tvm_ffi, iket_rewrite
from tilelang.tools.cuda import iket
from tvm.target import Target

def build():
    @T.prim_func
    def add(A: T.Tensor((1024,), T.float32), B: T.Tensor((1024,), T.float32)):
        with T.Kernel(8, threads=128) as bx, iket.range("block"):
            for tx in T.Parallel(128):
                iket.mark("index", payload=iket.payload(bx * 128 + tx, dtype="int32"))
                B[bx * 128 + tx] = A[bx * 128 + tx] + T.float32(1)
    return add

plans = []

@tvm_ffi.register_global_func("tilelang_callback_cuda_postproc", override=True)
def rewrite_cuda(code, target):
    result = iket_rewrite.rewrite(code, runtime_payloads=True)
    plans.append(result.plan)
    return result.text

with Target({"kind": "cuda", "arch": "sm_90a"}):
    source = tilelang.lower(build()).kernel_source
(plan,) = plans
print([(event.kind.value, event.name, event.payload.name if event.payload else None) for event in plan.events])
print("__iket_meta_info" in source, "TL_IKET_EVENT" in source)
"""


def test_the_callback_instruments_what_tilelang_generates(tmp_path):
    # TileLang reads the source of its kernels, so they need a file.
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    events, flags = done.stdout.splitlines()[-2:]
    assert events == "[('range', 'block', None), ('mark', 'index', 'i32')]"
    assert flags == "True False"
