# SPDX-License-Identifier: Apache-2.0
"""How evenly a launch is spread over CTAs and SMs, and its tail: the time when some SMs have nothing left to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .model import Trace
from .statistics import covered, starts_of


@dataclass(frozen=True, slots=True)
class Balance:
    """One launch, from the lifetimes of its warps.

    Attributes:
        launch: row of `Trace.launches`.
        duration_ns: from the first warp's start to the last one's end.
        ctas, sms: how many there are.
        cta_mean_ns, cta_max_ns: time from a CTA's first start to its last end.
        slowest_cta: blockIdx of the slowest one.
        sm_mean_ns, sm_max_ns: time in which an SM has at least one warp.
        busiest_sm: number of the SM of the longest time.
        tail_ns: from the end of the first SM that has nothing left to the end of the launch.
        tail_idle: share of all SMs' time that is lost in the tail, 0 to 1.
    """

    launch: int
    duration_ns: int
    ctas: int
    cta_mean_ns: float
    cta_max_ns: int
    slowest_cta: tuple[int, int, int]
    sms: int
    sm_mean_ns: float
    sm_max_ns: int
    busiest_sm: int
    tail_ns: int
    tail_idle: float

    @property
    def cta_imbalance(self) -> float:
        """Return the slowest CTA's time over the mean; 1 is even."""
        return self.cta_max_ns / self.cta_mean_ns if self.cta_mean_ns else 1.0

    @property
    def sm_imbalance(self) -> float:
        """Return the busiest SM's time over the mean; 1 is even."""
        return self.sm_max_ns / self.sm_mean_ns if self.sm_mean_ns else 1.0


def balance_of(trace: Trace, launches: Sequence[int]) -> list[Balance]:
    """Return the balance of each launch that recorded lifetimes."""
    return [found for launch in launches if (found := _balance(trace, launch)) is not None]


def _balance(trace: Trace, launch: int) -> Balance | None:
    bounds = trace.launches.warps_of(launch)
    rows = np.arange(bounds.start, bounds.stop)
    rows = rows[trace.warps.recorded[rows]]
    if not len(rows):
        return None
    # Lifetimes whose end lies before their start are reported elsewhere; here they last nothing.
    start = trace.warps.start_ns[rows]
    end = np.maximum(start, trace.warps.end_ns[rows])
    place = trace.warps.location[rows]
    ctas, of_cta = np.unique(trace.locations.cta[place], axis=0, return_inverse=True)
    cta_time = _spans(of_cta.reshape(-1), start, end)
    sm = trace.locations.sm[place].astype(np.int64)
    sms, sm_time = covered(sm, start, end)
    last = _last(sm, end)
    duration = int(end.max() - start.min())
    lost = int((end.max() - last).sum())
    slowest = ctas[int(np.argmax(cta_time))].tolist()
    return Balance(
        launch=launch,
        duration_ns=duration,
        ctas=len(ctas),
        cta_mean_ns=float(cta_time.mean()),
        cta_max_ns=int(cta_time.max()),
        slowest_cta=(slowest[0], slowest[1], slowest[2]),
        sms=len(sms),
        sm_mean_ns=float(sm_time.mean()),
        sm_max_ns=int(sm_time.max()),
        busiest_sm=int(sms[int(np.argmax(sm_time))]),
        tail_ns=int(end.max() - last.min()),
        tail_idle=lost / (len(sms) * duration) if duration else 0.0,
    )


def _spans(of: Any, start: Any, end: Any) -> Any:
    """Return for each group the time from its first start to its last end."""
    order = np.argsort(of, kind="stable")
    first = starts_of(of[order])
    return np.maximum.reduceat(end[order], first) - np.minimum.reduceat(start[order], first)


def _last(of: Any, end: Any) -> Any:
    order = np.argsort(of, kind="stable")
    return np.maximum.reduceat(end[order], starts_of(of[order]))
