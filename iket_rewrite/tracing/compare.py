# SPDX-License-Identifier: Apache-2.0
"""Two traces side by side: which ranges got faster or slower, and which differences are noise.

Ranges are matched by kernel, kind and name.  The ratio of the means comes with a spread from the repetitions inside
each trace: launches where there are several, else CTAs, else warps, else single instances.  Instances of one
repetition depend on each other (one slow CTA makes all its ranges slow), so repetitions are counted, not instances.
What varies from one run of the program to the next, clocks and temperature, is in no single trace: compare traces of
several launches, and repeat a comparison that matters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import abi
from .choosing import matching
from .grouping import kind_and_name, range_keys
from .model import Trace

#: Version of the JSON layout; it changes when a key changes its meaning or goes.
SCHEMA = 1
#: How many repetitions a level must have to be taken.
_ENOUGH = 5
#: Two-sided 95 % quantiles of Student's t by degrees of freedom; between two, the one below is taken.
_T95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 8: 2.31, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04, 60: 2.0}
#: Variance of a duration between two stamps that are each cut off to a tick.
_TICK_VARIANCE = abi.TIMER_TICK_NS**2 / 6
#: The kind of the rows that stand for whole launches.
WHOLE = "launch"


@dataclass(frozen=True, slots=True)
class Side:
    """One trace's measurement of one range.

    Attributes:
        count: instances.
        mean_ns: their mean.
        error_ns: standard error of the mean, None with fewer than two repetitions.
        repetitions: how many independent ones there are.
        unit: what a repetition is: "launch", "cta", "warp" or "range".
    """

    count: int
    mean_ns: float
    error_ns: float | None
    repetitions: int
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """One range of both traces, or of one.

    Attributes:
        kernel, name, kind: which range; kind "launch" with an empty name is the whole launch.
        before, after: the measurements; None where the trace has no such range.
        ratio: after's mean over before's, None where it can not be told.
        spread: half of its 95 % interval, None where there are too few repetitions.
        verdict: "faster", "slower", "noise", "unknown" (too few repetitions), "only before" or "only after".
    """

    kernel: str
    name: str
    kind: str
    before: Side | None
    after: Side | None
    ratio: float | None
    spread: float | None
    verdict: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two traces side by side.

    Attributes:
        rows: the launches of each kernel first, then its ranges, the longest total first.
        renamed: (before, after) where each trace has one kernel and their names differ; they were taken for the same.
    """

    rows: tuple[Row, ...]
    renamed: tuple[str, str] | None = None


def compare(before: Trace, after: Trace, *, kernel: str | None = None) -> Comparison:
    """Compare the ranges of two traces.

    Args:
        before, after: the traces.
        kernel: only kernels whose name matches this pattern (`*`, `?`).

    Raises:
        OptionError: no kernel matches.
    """
    first, second = dict(before.kernels()), dict(after.kernels())
    chosen = matching(dict.fromkeys([*first, *second]), kernel)
    first, second = ({name: one[name] for name in chosen if name in one} for one in (first, second))
    renamed: tuple[str, str] | None = None
    if len(first) == len(second) == 1 and first.keys() != second.keys():
        renamed = (next(iter(first)), next(iter(second)))
        second = {renamed[0]: second[renamed[1]]}
    rows: list[Row] = []
    for name in dict.fromkeys([*first, *second]):
        sides = [_measure(before, first.get(name, [])), _measure(after, second.get(name, []))]
        found = [_row(name, key, *(side.get(key) for side in sides)) for key in dict.fromkeys([*sides[0], *sides[1]])]
        rows += sorted(found, key=lambda row: (row.kind != WHOLE, -_total(row)))
    return Comparison(tuple(rows), renamed)


def _total(row: Row) -> float:
    return max((side.mean_ns * side.count for side in (row.before, row.after) if side is not None), default=0.0)


def _measure(trace: Trace, launches: Sequence[int]) -> dict[tuple[str, str], Side]:
    """Return the measurements of a kernel's launches and ranges by (kind, name)."""
    used = np.array([launch for launch in launches if trace.launches.recorded[launch]], np.int64)
    if not len(used):
        return {}
    spent = trace.launches.end_ns[used] - trace.launches.start_ns[used]
    found = {(WHOLE, ""): _side(spent, [("launch", used)])}
    bounds = trace.launches.range_rows
    rows = np.concatenate([np.arange(bounds[launch], bounds[launch + 1]) for launch in used])
    warp = trace.ranges.warp[rows].astype(np.int64)
    _, cta = np.unique(trace.locations.cta[trace.warps.location], axis=0, return_inverse=True)
    launch = trace.warps.launch[warp].astype(np.int64)
    units = {"launch": launch, "cta": launch * len(trace.warps) + cta.reshape(-1)[warp], "warp": warp, "range": rows}
    keys, duration = range_keys(trace, rows), trace.ranges.duration_ns[rows]
    order = np.argsort(keys, kind="stable")
    distinct, start = np.unique(keys[order], return_index=True)
    for key, part in zip(distinct.tolist(), np.split(order, start[1:]), strict=True):
        levels = [(name, unit[part]) for name, unit in units.items()]
        found[kind_and_name(trace, key)] = _side(duration[part], levels)
    return found


def _side(duration: Any, levels: Sequence[tuple[str, Any]]) -> Side:
    """Measure durations; `levels` are ways to group them into repetitions, the best one first."""
    counted = [(name, *np.unique(of, return_inverse=True)) for name, of in levels]
    unit, groups, of = next(
        (one for one in counted if len(one[1]) >= _ENOUGH), max(counted, key=lambda one: len(one[1]))
    )
    count, repetitions, mean = len(duration), len(groups), float(duration.mean())
    if repetitions < 2:
        return Side(count, mean, None, repetitions, unit)
    # The mean is a ratio, sum over count, and both vary by repetition.
    size = np.bincount(of.reshape(-1), minlength=repetitions)
    left = np.bincount(of.reshape(-1), duration, repetitions) - mean * size
    variance = repetitions / (repetitions - 1) * float((left**2).sum()) / count**2
    return Side(count, mean, math.sqrt(variance + _TICK_VARIANCE / count), repetitions, unit)


def _row(kernel: str, key: tuple[str, str], before: Side | None, after: Side | None) -> Row:
    kind, name = key
    if before is None or after is None:
        verdict = "only before" if after is None else "only after"
        return Row(kernel, name, kind, before, after, None, None, verdict)
    if before.mean_ns <= 0 or after.mean_ns <= 0:
        return Row(kernel, name, kind, before, after, None, None, "unknown")
    ratio = after.mean_ns / before.mean_ns
    if before.error_ns is None or after.error_ns is None:
        return Row(kernel, name, kind, before, after, ratio, None, "unknown")
    relative = math.hypot(before.error_ns / before.mean_ns, after.error_ns / after.mean_ns)
    freedom = min(before.repetitions, after.repetitions) - 1
    spread = ratio * relative * _T95[max(known for known in _T95 if known <= freedom)]
    verdict = "noise" if abs(ratio - 1) <= spread else ("slower" if ratio > 1 else "faster")
    return Row(kernel, name, kind, before, after, ratio, spread, verdict)
