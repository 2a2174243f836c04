# SPDX-License-Identifier: Apache-2.0
"""Events in TileLang kernels: what `tilelang.tools.cuda.iket` offers, and more.

    from iket_rewrite import tilelang as iket

    with iket.session(output_dir="traces"):
        kernel = tilelang.compile(program)

It needs TileLang (`pip install 'iket-rewrite[tilelang]'`).
"""

from __future__ import annotations

from .callback import disable, enable, is_enabled
from .events import (
    event_table,
    mark,
    range,
    range_end,
    range_pop,
    range_push,
    range_start,
    reset,
    token_end,
    token_start,
)
from .faults import (
    EventError,
    IketWarning,
    NestingError,
    PayloadError,
    SessionError,
    TileLangError,
    VerificationError,
)
from .output import output_dir, output_path, profile_command, set_output_dir, trace_files
from .payload_mode import disable_runtime_payloads, enable_runtime_payloads, runtime_payloads_enabled
from .payloads import PayloadSpec, payload
from .records import KernelRecord
from .session import Session, session

__all__ = [
    "EventError",
    "IketWarning",
    "KernelRecord",
    "NestingError",
    "PayloadError",
    "PayloadSpec",
    "Session",
    "SessionError",
    "TileLangError",
    "VerificationError",
    "disable",
    "disable_runtime_payloads",
    "enable",
    "enable_runtime_payloads",
    "event_table",
    "is_enabled",
    "mark",
    "output_dir",
    "output_path",
    "payload",
    "profile_command",
    "range",
    "range_end",
    "range_pop",
    "range_push",
    "range_start",
    "reset",
    "runtime_payloads_enabled",
    "session",
    "set_output_dir",
    "token_end",
    "token_start",
    "trace_files",
]
