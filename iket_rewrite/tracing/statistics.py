# SPDX-License-Identifier: Apache-2.0
"""Statistics of many groups at once: count, total, mean, quantiles, covered time.  Columns in, columns out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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
    total = np.add.reduceat(values, first)
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


def starts_of(keys: Any) -> Any:
    """Return where each run of equal values begins."""
    if not len(keys):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))


def sums(keys: Any, values: Any, distinct: Any) -> Any:
    """Return the sum of values for each of the distinct keys, which are sorted."""
    result = np.zeros(len(distinct), np.int64)
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
    offset = (np.cumsum(length) - length)[group] - base[group]
    start, end = start + offset, end + offset
    before = np.append(0, np.maximum.accumulate(end)[:-1])
    before[first] = start[first]
    return keys[first], np.add.reduceat(np.maximum(0, end - np.maximum(start, before)), first)


def _quantile(values: Any, first: Any, count: Any, share: float) -> Any:
    """Return a quantile of each group of sorted values."""
    position = (count - 1) * share
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, count - 1)
    below = values[first + low]
    return below + (values[first + high] - below) * (position - low)
