# SPDX-License-Identifier: Apache-2.0
"""Other profilers of this process: two can not patch or trace it at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from . import failures

INJECTION = "CUDA_INJECTION64_PATH"
#: The variable by which run-iket configures its library: its name since 4.8.0, and the one before.
CONFIGURATIONS = ("IKET_INJECTION_CONFIG", "SMODEL_INJECTION_CONFIG")
_OUR_LIBRARIES = ("libiket_injection", "libsmodel_injection")
#: Parts of the names of libraries that are loaded only where a profiler is at work; libcupti is not such a one: PyTorch
#: loads it always.
_LIBRARIES = {
    "libToolsInjection": "Nsight Systems",
    "libInterceptorInjectionTarget": "Nsight Systems",
    "libcuda-injection": "Nsight Compute",
    "libTreeLauncherTargetInjection": "Nsight Compute",
    "libsanitizer-collection": "compute-sanitizer",
}


def is_replayed(environment: Mapping[str, str] | None = None) -> bool:
    """Say whether this process is one that run-iket has started."""
    values = os.environ if environment is None else environment
    library = os.path.basename(values.get(INJECTION, ""))
    return library.startswith(_OUR_LIBRARIES) and any(values.get(name) for name in CONFIGURATIONS)


def find_injected(environment: Mapping[str, str]) -> str | None:
    """Return the profiler that an environment puts into every CUDA process, or None."""
    library = environment.get(INJECTION)
    if library and os.path.basename(library).startswith(_OUR_LIBRARIES):
        return f"run-iket ({INJECTION} names {library})"
    if library:
        return f"{_who(library) or 'a tool'} ({INJECTION} names {library})"
    return "Nsight Systems (NSYS_PROFILING_SESSION_ID is set)" if environment.get("NSYS_PROFILING_SESSION_ID") else None


def refuse_others(environment: Mapping[str, str] | None = None) -> None:
    """Refuse to capture in this process beside another profiler.

    Raises:
        CaptureError: there is one.
    """
    values = os.environ if environment is None else environment
    if is_replayed(values):
        raise failures.recorded_by_run_iket()
    found = find_injected(values) or _loaded() or _torch_profiler()
    if found is not None:
        raise failures.other_profiler(found)


def _who(text: str) -> str | None:
    lowered = text.lower()
    if "nsight-systems" in lowered or "nsys" in lowered:
        return "Nsight Systems"
    if "nsight-compute" in lowered:
        return "Nsight Compute"
    return next((name for part, name in _LIBRARIES.items() if part.lower() in lowered), None)


def _loaded() -> str | None:
    """Look through what is mapped into this process."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    return next((f"{name} ({part} is loaded)" for part, name in _LIBRARIES.items() if part in text), None)


def _torch_profiler() -> str | None:
    torch = sys.modules.get("torch")
    enabled = getattr(getattr(torch, "autograd", None), "_profiler_enabled", None)
    return "torch.profiler" if enabled is not None and enabled() else None
