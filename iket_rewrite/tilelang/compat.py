# SPDX-License-Identifier: Apache-2.0
"""Everything of TileLang and of its FFI that this package uses, named in one place.

TileLang documents none of it as stable.  A release that lacks one of these names is refused with that name, when the
package is imported or, for what only some sessions need, when such a session starts.
"""

from __future__ import annotations

import importlib
from functools import reduce
from typing import Any

from .faults import TileLangError, TileLangMissingError

#: Releases that this was tried with: the last one in every test, the two before it in those that need no GPU.
TRIED = ("0.1.12", "0.1.13", "0.1.14", "0.1.15")
_INSTALL = "pip install 'iket-rewrite[tilelang]'"


def release() -> str:
    """Return TileLang's release, or "unknown"."""
    return str(getattr(importlib.import_module("tilelang"), "__version__", "unknown"))


def hook(module: str, path: str, purpose: str) -> Any:
    """Return a name of TileLang, of TVM or of its FFI.

    Args:
        module: where it is.
        path: attributes from there, with dots.
        purpose: what this package does with it, for the message.

    Raises:
        TileLangError: it is not there.
    """
    try:
        return reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as error:
        raise TileLangError(
            f"TileLang {release()} has no {module}.{path}, which iket_rewrite uses to {purpose}",
            remedy=f"install a release that this package was tried with: tilelang=={TRIED[-1]}",
        ) from error


def _require_tilelang() -> None:
    try:
        importlib.import_module("tilelang")
    except ModuleNotFoundError as error:
        if error.name != "tilelang":
            raise
        missing = TileLangMissingError("TileLang is not installed", remedy=_INSTALL)
        missing.name = error.name
        raise missing from None


_require_tilelang()

# --- Kernels are annotated with these -----------------------------------------------------------------------

call_extern = hook("tilelang.language", "call_extern", "print an event into a kernel")
evaluate = hook("tilelang.language", "evaluate", "put the two ends of a range around a block")
cast = hook("tilelang.language", "cast", "give a payload its declared type")
IRBuilder = hook("tvm.script.ir_builder", "IRBuilder", "tell which kernel is being built")
const = hook("tvm.tirx", "const", "write a payload that is a Python number")
PrimExpr = hook("tvm.tirx", "PrimExpr", "recognise a payload's expression")
Buffer = hook("tvm.tirx", "Buffer", "recognise a payload that is a whole buffer")
StringImm = hook("tvm.tirx", "StringImm", "find the events of a kernel")
_Builder = hook("tilelang.language.eager.builder", "Builder", "tell where in a kernel an event is written")
_Condition = hook("tilelang.language.eager.builder", "BoolOpFrame", "tell where in a kernel an event is written")
For = hook("tvm.tirx", "For", "tell how a payload reads a fragment")
ForKind = hook("tvm.tirx", "ForKind", "tell how a payload reads a fragment")
Call = hook("tvm.tirx", "Call", "tell how a payload reads a fragment")
BufferLoad = hook("tvm.tirx", "BufferLoad", "tell how a payload reads a fragment")
visit = hook("tvm.tirx.stmt_functor", "post_order_visit", "find the events of a kernel")


def in_condition() -> bool:
    """Say whether the kernel's builder is in an operand of `and`, `or` or `... if ... else ...`, which holds no
    statements."""
    builder = _Builder.current()
    return builder is not None and builder.find_frame_idx(_Condition) is not None


# --- Generated source comes through these -------------------------------------------------------------------

get_function = hook("tvm_ffi", "get_global_func", "find the callback that is registered")
register_function = hook("tvm_ffi", "register_global_func", "register the callback")
remove_function = hook("tvm_ffi", "remove_global_func", "remove the callback")
register_error = hook("tvm_ffi", "register_error", "carry errors out of the callback")
POSTPROC = "tilelang_callback_cuda_postproc"

# --- Sessions watch these ------------------------------------------------------------------------------------

CacheState = hook("tilelang.env", "CacheState", "switch the kernel cache off")
KernelCache = hook("tilelang.cache.kernel_cache", "KernelCache", "notice kernels that come from the kernel cache")
JITKernel = hook("tilelang.jit.kernel", "JITKernel", "notice kernels that are launched without events")
JITImpl = hook("tilelang.jit", "JITImpl", "notice kernels that a decorated function has kept")
for _owner, _name in ((KernelCache, "cached"), (JITKernel, "__init__"), (JITKernel, "__call__"), (JITImpl, "__call__")):
    hook(_owner.__module__, f"{_owner.__qualname__}.{_name}", "notice kernels that hold no events")

# --- Sessions that verify watch these too --------------------------------------------------------------------

COMPILE = "tilelang_callback_cuda_compile"


def library_generators() -> dict[str, Any]:
    """Return, by execution backend, the class whose `compile_lib` leaves a compiled kernel at its `libpath`.

    NVRTC's is missing where cuda-python is: TileLang does not offer that backend then.

    Raises:
        TileLangError: this release has none.
    """
    path, purpose = "LibraryGenerator.compile_lib", "verify compiled kernels"
    hook("tilelang.jit.adapter.libgen", path, purpose)
    found = {"cython": hook("tilelang.jit.adapter.libgen", "LibraryGenerator", purpose)}
    if hook("tilelang.jit.adapter.nvrtc", "is_nvrtc_available", purpose):
        hook("tilelang.jit.adapter.nvrtc.libgen", f"NVRTC{path}", purpose)
        found["nvrtc"] = hook("tilelang.jit.adapter.nvrtc.libgen", "NVRTCLibraryGenerator", purpose)
    return found
