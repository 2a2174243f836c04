# SPDX-License-Identifier: Apache-2.0
"""Events in TIRx kernels: what `tvm_tirx.backend.cuda.iket` offers, and more.

    from iket_rewrite import tirx as iket
    from iket_rewrite.tirx import IketProfiler

It needs TIRx (`pip install 'iket-rewrite[tirx]'`).
"""

from __future__ import annotations

from ..capturing.around_command import profile
from ..capturing.in_process import capture
from ..capturing.results import ProfileResult
from ..capturing.workload import run
from .compiling import Instrumented
from .faults import TirxError, TirxEventError
from .profiler import IketProfiler

__all__ = [
    "IketProfiler",
    "Instrumented",
    "ProfileResult",
    "TirxError",
    "TirxEventError",
    "capture",
    "profile",
    "run",
]
