# SPDX-License-Identifier: Apache-2.0
"""What these tests share: lowering for a named architecture, and real compilers for what comes out."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import cuda.core  # noqa: F401  (two threads that import it first at one time fail)
import tilelang
from builds import check_declarations, check_records, nvrtc_options
from toolbox import Official, nvrtc
from tvm.target import Target

import iket_rewrite
from iket_rewrite import tilelang as iket

__all__ = ["Built", "build", "check_declarations", "check_records", "compile_with_nvrtc", "cubin", "lower", "target"]


def target(arch: str = "sm_90a") -> dict[str, object]:
    """Return a target that needs no GPU to be looked at."""
    return {"kind": "cuda", "arch": arch}


def lower(program, arch: str = "sm_90a") -> str:
    """Return the CUDA source that TileLang makes of a program, after the callback."""
    with Target(target(arch)):
        return tilelang.lower(program).kernel_source


@functools.cache
def cubin(source: str, arch: str = "sm_90a", *options: str) -> bytes:
    """Compile what TileLang generated; options are definitions of macros."""
    defines = (
        {"define_macro": [tuple(option.removeprefix("-D").split("=", 1)) for option in options]} if options else {}
    )
    return nvrtc(source, arch, **nvrtc_options("tilelang"), **defines)


def compile_with_nvrtc(code, target, pass_config=None) -> bytes:
    """Stand where TileLang's callback stands that compiles for the tvm_ffi backend."""
    flags = (pass_config or {}).get("tl.device_compile_flags", None) or []
    return cubin(str(code), str(target.attrs["arch"]), *map(str, flags))


@dataclass(frozen=True)
class Built:
    """A kernel from annotation to machine code."""

    record: iket.KernelRecord
    cubin: bytes
    official: Official
    report: iket_rewrite.Report


@functools.cache
def build(kernel, arch: str = "sm_90a", payloads: bool = True, **arguments) -> Built:
    """Lower a kernel in a session, compile it, and read it with NVIDIA's parser and ours."""
    with iket.session(runtime_payloads=payloads) as session:
        source = lower(kernel(**arguments), arch)
    (record,) = session.kernels
    assert record.source == source
    binary = cubin(source, arch)
    return Built(record, binary, Official(binary), iket_rewrite.verify(binary))
