# SPDX-License-Identifier: Apache-2.0
"""Tracing inside GPU kernels: annotations in CUDA source become events of NVIDIA's IKET runtime.

Public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

#: Not asked of the installed metadata: reading that takes longer than rewriting a kernel.
__version__ = "0.1.0"

# Type checkers take this name for true; the module `typing` itself would double what importing the package costs.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .building.program import Program, rewrite_program
    from .building.runtime_compiling import CompiledCubin, compile_cubin
    from .capturing.around_command import profile
    from .capturing.bounds import event_bound
    from .capturing.in_process import Captured, capture
    from .capturing.results import ProfileResult
    from .capturing.workload import run
    from .errors import (
        AnnotationError,
        CaptureError,
        CaptureWarning,
        CompileError,
        CubinError,
        IketError,
        MetadataError,
        OptionError,
        Place,
        PlanError,
        SourceError,
        TargetError,
        ToolError,
        TraceError,
    )
    from .linting.core import lint
    from .linting.finding import LintFinding
    from .rewriting.core import Rewrite, rewrite, strip
    from .rewriting.event import Event
    from .rewriting.plan import Plan, Site
    from .rewriting.token_format import EventToken, decode_event, encode_event
    from .tracing.load import load_trace
    from .tracing.model import Trace
    from .verification.baseline import compare_binaries
    from .verification.comparison import Comparison
    from .verification.core import verify
    from .verification.report import Finding, Report

_HOMES = {
    "building.program": ("rewrite_program", "Program"),
    "building.runtime_compiling": ("compile_cubin", "CompiledCubin"),
    "errors": (
        "IketError",
        "SourceError",
        "AnnotationError",
        "PlanError",
        "OptionError",
        "TargetError",
        "MetadataError",
        "CompileError",
        "CubinError",
        "TraceError",
        "ToolError",
        "CaptureError",
        "CaptureWarning",
        "Place",
    ),
    "capturing.around_command": ("profile",),
    "capturing.bounds": ("event_bound",),
    "capturing.in_process": ("capture", "Captured"),
    "capturing.results": ("ProfileResult",),
    "capturing.workload": ("run",),
    "linting.core": ("lint",),
    "linting.finding": ("LintFinding",),
    "rewriting.core": ("rewrite", "strip", "Rewrite"),
    "rewriting.event": ("Event",),
    "rewriting.plan": ("Plan", "Site"),
    "rewriting.token_format": ("encode_event", "decode_event", "EventToken"),
    "tracing.load": ("load_trace",),
    "tracing.model": ("Trace",),
    "verification.baseline": ("compare_binaries",),
    "verification.comparison": ("Comparison",),
    "verification.core": ("verify",),
    "verification.report": ("Report", "Finding"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [  # noqa: PLE0604  (the lazy table above is the one list of public names)
    *_HOME_OF,
    "include_dir",
    "__version__",
]


def include_dir() -> str:
    """Return the folder to give to the compiler with -I, so that it finds `iket_rewrite/iket.cuh`."""
    import os

    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
