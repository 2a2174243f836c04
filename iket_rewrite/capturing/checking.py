# SPDX-License-Identifier: Apache-2.0
"""Whether a capture holds what was asked for: an empty trace is a failure, and its reason is looked for here."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence

from ..errors import CaptureWarning
from . import budget, failures
from .contents import Contents, launches_elsewhere
from .devices import ask_driver, require_gpu
from .messages import wanted_buffer


def refuse_empty_session(contents: Contents, messages: Sequence[str], *, warp_lifetimes_only: bool) -> None:
    """Refuse a session's trace without an event; say why it has none.

    Raises:
        CaptureError: with warp lifetimes only, there is no launch; else there is no event.
    """
    if contents.events or (warp_lifetimes_only and contents.kernels):
        return
    budget.refuse_all_dropped(contents, messages)
    if contents.kernels:
        raise failures.not_instrumented(contents.kernels)
    if (size := wanted_buffer(messages)) is not None:
        raise failures.buffer_too_small(size)
    require_gpu(ask_driver())
    if warp_lifetimes_only or not cuda_is_used():
        raise failures.no_launch_in_block()
    raise failures.not_instrumented(())


def refuse_other_cluster(traces: Sequence[bytes], cluster: Sequence[int]) -> None:
    """Refuse traces in which no launch recorded the requested cluster; warn where only some did.

    Raises:
        CaptureError: none did.
    """
    right: list[str] = []
    wrong: list[str] = []
    for data in traces:
        one_right, one_wrong = launches_elsewhere(data, cluster)
        right += one_right
        wrong += one_wrong
    if wrong and not right:
        raise failures.cluster_missing(cluster, wrong)
    if wrong:
        warnings.warn(str(failures.cluster_missing(cluster, wrong).message), CaptureWarning, stacklevel=4)


def cuda_is_used() -> bool:
    """Say whether this process has a CUDA context; without one no kernel was launched."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    current, count = ctypes.c_void_p(), ctypes.c_int()
    if cuda.cuCtxGetCurrent(ctypes.byref(current)) != 0:
        return False  # CUDA is not initialised
    if current or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return True
    for index in range(count.value):
        flags, active = ctypes.c_uint(), ctypes.c_int()
        cuda.cuDevicePrimaryCtxGetState(index, ctypes.byref(flags), ctypes.byref(active))
        if active.value:
            return True
    return False
