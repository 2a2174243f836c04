# SPDX-License-Identifier: Apache-2.0
"""Compile annotated TIRx kernels for real, through the callback that TIRx itself calls, and read the binaries back."""

from __future__ import annotations

import json

import tvm_ffi
from tvm_tirx.target import Target

from iket_rewrite.tirx import IketProfiler, Instrumented, callback

ARCH = "sm_90a"
TARGET = Target({"kind": "cuda", "arch": ARCH})


def compiled(kernel, **options) -> Instrumented:
    """Compile a kernel with its events."""
    return IketProfiler().compile(kernel, target=TARGET, **options)


def generated(executable) -> str:
    """Return the CUDA source that TIRx generated, before it is rewritten."""
    (device,) = [module for module in executable.mod.imports if module.kind == "cuda"]
    return device.inspect_source()


def cubin(executable: Instrumented) -> bytes:
    """Return the binary that TIRx gets when it loads the module: its own callback compiles without a GPU."""
    with callback.instrumenting(executable.runtime_payloads):
        return compile_source(generated(executable))


def compile_source(source: str) -> bytes:
    """Call TIRx's own compile callback, as it does itself."""
    compiler = tvm_ffi.get_global_func("tvm_callback_cuda_compile")
    binary, form = compiler(source, json.dumps({"cuda": {"arch": ARCH}}))
    assert form == "cubin"
    return bytes(binary)
