# SPDX-License-Identifier: Apache-2.0
"""Statistics of many groups at once: count, total, mean, quantiles, covered time.  Columns in, columns out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import abi


@dataclass(frozen=True, slots=True)
class Stats:
    """Durations of one group, in nanoseconds; quantiles between two values are interpolated."""

    count: int
    total_ns: int
    mean_ns: float
    min_ns: int
    median_ns: float
    p95_ns: float
    max_ns: int


#: Sums below this are kept in 64 bits; their size is estimated in floating point, so there is room above.
_ROOM = 2.0**62


def exact(values: Any) -> Any:
    """Return integers whose sums are right: Python's own where 64 bits may not hold them, as with a stamp of 0."""
    return values.astype(object) if float(np.abs(values.astype(np.float64)).sum()) > _ROOM else values


def grouped(keys: Any, values: Any) -> tuple[Any, list[Stats]]:
    """Return the distinct keys in order, and for each the statistics of its values.

    Args:
        keys: (n,) integers.
        values: (n,) integers.
    """
    if not len(keys):
        return keys, []
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    first = starts_of(keys)
    count = np.diff(np.append(first, len(keys)))
    total = np.add.reduceat(exact(values), first)
    columns = (
        count,
        total,
        total / count,
        values[first],
        _quantile(values, first, count, 0.5),
        _quantile(values, first, count, 0.95),
        values[first + count - 1],
    )
    return keys[first], [Stats(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def short(duration: Any) -> Any:
    """Return 1 for each duration of at most one tick, else 0; what ends before it starts is not short but wrong."""
    return ((duration >= 0) & (duration <= abi.TIMER_TICK_NS)).astype(np.int64)


def starts_of(keys: Any) -> Any:
    """Return where each run of equal values begins."""
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))


def sums(keys: Any, values: Any, distinct: Any) -> Any:
    """Return the sum of values for each of the distinct keys, which are sorted."""
    values = exact(values)
    result = np.zeros(len(distinct), values.dtype)
    np.add.at(result, np.searchsorted(distinct, keys), values)
    return result


def covered(keys: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Return the distinct keys, and for each how much time its intervals cover: overlaps count once.

    Args:
        keys: (n,) integers; what overlaps within one key counts once.
        start, end: (n,) stamps.
    """
    if not len(keys):
        return keys, np.zeros(0, np.int64)
    order = np.lexsort((start, keys))
    keys, start, end = keys[order], start[order], np.maximum(start, end)[order]
    first = starts_of(keys)
    group = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(keys))))
    # One running maximum for all groups: each is moved behind the one before it, so that it starts afresh.
    base = np.minimum.reduceat(start, first)
    length = np.maximum.reduceat(end, first) - base
    if exact(length).dtype == object:
        start, end, base, length = (one.astype(object) for one in (start, end, base, length))
    offset = (np.cumsum(length) - length)[group] - base[group]
    start, end = start + offset, end + offset
    before = np.append(0, np.maximum.accumulate(end)[:-1])
    before[first] = start[first]
    time = np.add.reduceat(np.maximum(0, end - np.maximum(start, before)), first)
    return keys[first], time.astype(np.int64)


def _quantile(values: Any, first: Any, count: Any, share: float) -> Any:
    """Return a quantile of each group of sorted values."""
    position = (count - 1) * share
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, count - 1)
    below = values[first + low]
    return below + (values[first + high] - below) * (position - low)
