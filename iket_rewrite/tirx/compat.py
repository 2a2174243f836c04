# SPDX-License-Identifier: Apache-2.0
"""Everything of TIRx and of its FFI that this package uses, named in one place.

TIRx documents little of it as stable.  A release that lacks one of these names is refused with that name.
"""

from __future__ import annotations

import importlib
from functools import reduce
from typing import Any

from .faults import TirxError, TirxMissingError

#: The release that this was tried with.
TRIED = "0.1.0a4"
#: The global function that TIRx calls with a module's CUDA source, when the module is loaded or exported.
COMPILE = "tvm_callback_cuda_compile"


def _hook(module: str, path: str, purpose: str) -> Any:
    """Return a name of TIRx or of its FFI.

    Raises:
        TirxError: it is not there.
    """
    try:
        return reduce(getattr, path.split("."), importlib.import_module(module))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "tvm_tirx":
            raise
        missing = TirxMissingError("TIRx is not installed", remedy="pip install 'iket-rewrite[tirx]'")
        missing.name = "tvm_tirx"
        raise missing from None
    except (ImportError, AttributeError) as error:
        raise TirxError(
            f"this release of TIRx has no {module}.{path}, which iket_rewrite uses to {purpose}",
            remedy=f"install the release that this package was tried with: apache-tvm-tirx=={TRIED}",
        ) from error


# --- Kernels are annotated with these -----------------------------------------------------------------------

T = _hook("tvm_tirx.script", "tirx", "annotate kernels")
IRBuilder = _hook("tvm_tirx.script.ir_builder", "IRBuilder", "tell which loops an event stands in")
_hook("tvm_tirx.script.ir_builder", "IRBuilder.is_in_scope", "tell whether a kernel is being built")
meta_class = _hook("tvm_tirx.script", "tirx.meta_class", "let kernels hold a profiler")
for _name in ("call_extern", "evaluate", "if_", "then_", "cuda.iket"):
    _hook("tvm_tirx.script", f"tirx.{_name}", "print an event into a kernel")

# --- Kernels are compiled with these -------------------------------------------------------------------------

Function = _hook("tvm_tirx.tirx", "Function", "recognise a kernel")
IRModule = _hook("tvm_tirx", "IRModule", "make a module of a kernel")
compile_module = _hook("tvm_tirx.tirx", "compile", "compile a module")
get_function = _hook("tvm_ffi", "get_global_func", "find the callback that compiles CUDA source")
register_function = _hook("tvm_ffi", "register_global_func", "register the callback that compiles CUDA source")
#: TIRx's own lowering looks for this attribute of a module.
ENABLED = "cuda.iket.enabled"
