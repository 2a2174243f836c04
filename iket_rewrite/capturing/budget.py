# SPDX-License-Identifier: Apache-2.0
"""The budget of events per warp: whether it was enough, and what to ask for where it was not.

The runtime drops the whole record of a warp that has more events than its budget, so a warp is in the trace whole or
not at all.  What tells is the runtime's own words, and warps that a launch had and the trace has not.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import CaptureWarning
from . import failures
from .contents import Contents
from .messages import Dropped, dropped_warps

if TYPE_CHECKING:
    from ..tracing.model import Trace

#: How much larger a budget is proposed where nothing tells how many events there were.
STEP = 4
_WARP = 32
#: How a larger one is given around a command.
HOW_TO_A_COMMAND = "max_events_per_warp (--max-events-per-warp) "


def dropped(messages: Sequence[str]) -> list[Dropped]:
    """Return the warps that the runtime says it dropped."""
    return dropped_warps(messages)


def refuse_all_dropped(contents: Contents, messages: Sequence[str], *, how: str = "max_events_per_warp=") -> None:
    """Refuse a trace of launches whose every warp was dropped.

    Raises:
        CaptureError: it is one.
    """
    said = dropped_warps(messages)
    if not contents.events and contents.kernels and (said or not contents.lifetimes):
        kernels = [one.kernel for one in said] or list(contents.kernels)
        raise failures.too_many_events(kernels, max((one.budget for one in said), default=None), how, STEP)


def warn_of_dropped(messages: Sequence[str], *, how: str = "max_events_per_warp=", stacklevel: int = 4) -> None:
    """Warn of every kernel whose warps had more events than the budget allows."""
    for one in dropped_warps(messages):
        warnings.warn(
            f"{one.warps} warps of {one.kernel} are missing from the trace: each had more than {one.budget} events; "
            f"capture again with {how}{STEP * one.budget}, or more: each event is one, a range is two",
            CaptureWarning,
            stacklevel=stacklevel,
        )


def warn_of_missing_warps(trace: Trace, *, already: bool = False) -> None:
    """Warn of launches of which some warps are in the trace and some are not; `already`: the runtime said so."""
    for launch, kernel in [] if already else enumerate(trace.launches.kernel):
        missing, there = _missing(trace, launch)
        if missing > 0 and there > 0:
            warnings.warn(
                f"{missing} of {missing + there} warps of {kernel} are missing from the trace: they may have had more "
                f"events than the budget allows; capture again with a larger max_events_per_warp",
                CaptureWarning,
                stacklevel=4,
            )


def _missing(trace: Trace, launch: int) -> tuple[int, int]:
    """Return how many warps of a launch are not in the trace, and how many are."""
    tables = trace.launches
    grid, block = tables.grid[launch], tables.block[launch]
    there = trace.launches.warps_of(launch)
    recorded = int(trace.warps.recorded[there].sum())
    if tables.single_cluster[launch] or not grid.all() or not block.all():
        # One cluster only, or an older file that does not say.
        return 0, recorded
    blocks, threads = int(grid.prod()), int(block.prod())
    return blocks * (-(-threads // _WARP)) - recorded, recorded
