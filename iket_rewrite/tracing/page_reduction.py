# SPDX-License-Identifier: Apache-2.0
"""What of a large trace goes into a page, and what is left out.

A browser draws some hundred thousand ranges without stutter, not millions.  Whole things are kept: whole launches,
and in a launch whole CTAs, so that what is drawn is as it was recorded.  Only where a single CTA is too large are its
shortest ranges left out.  Whatever is missing is counted, for the page says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .model import Trace

#: Ranges, markers and warps that a page takes.
LIMIT = 300_000
#: A launch that is shown gets room for this many before another one is added.
_WORTHWHILE = 2_000


@dataclass(frozen=True, slots=True)
class Kept:
    """What of one launch is shown.

    Attributes:
        launch: its row.
        warps, ranges, markers: rows of the trace's tables, ascending.
        ctas: how many CTAs are shown, and how many there are.
        longest: whether only the longest ranges of the CTA are shown.
    """

    launch: int
    warps: Any
    ranges: Any
    markers: Any
    ctas: tuple[int, int]
    longest: bool


def choose(trace: Trace, launches: Sequence[int], limit: int = LIMIT) -> list[Kept]:
    """Return what is shown of the launches: everything where that is at most `limit` ranges, markers and warps."""
    table = trace.launches
    sizes = np.diff(table.range_rows) + np.diff(table.marker_rows) + np.diff(table.warp_rows)
    if sum(int(sizes[row]) for row in launches) > limit:
        launches = _some_launches(trace, launches, sizes, max(1, limit // _WORTHWHILE))
    shares = _shares([int(sizes[row]) for row in launches], limit)
    return [_cut(trace, row, share) for row, share in zip(launches, shares, strict=True)]


def _some_launches(trace: Trace, launches: Sequence[int], sizes: Any, room: int) -> Sequence[int]:
    """Return the launches to show: of every kernel the first, the last and some between them."""
    if len(launches) <= room:
        return launches
    by_kernel: dict[str, list[int]] = {}
    for row in launches:
        by_kernel.setdefault(trace.launches.kernel[row], []).append(row)
    each = max(1, room // len(by_kernel))
    rows: list[int] = []
    for group in list(by_kernel.values())[:room]:
        # A launch without events is no example of its kernel.
        full = [row for row in group if sizes[row]] or group
        rows += [full[place] for place in _spread(len(full), each)]
    return sorted(rows)


def _spread(count: int, wanted: int) -> list[int]:
    """Return `wanted` numbers below `count`, evenly spread, the first and the last among them."""
    if wanted >= count:
        return list(range(count))
    return sorted({int(place) for place in np.linspace(0, count - 1, wanted).round()})


def _shares(sizes: Sequence[int], limit: int) -> list[int]:
    """Divide the limit: small launches are whole, large ones share what is left equally."""
    shares = [0] * len(sizes)
    left, waiting = limit, len(sizes)
    for place in np.argsort(sizes, kind="stable").tolist():
        shares[place] = min(sizes[place], left // waiting)
        left, waiting = left - shares[place], waiting - 1
    return shares


def _cut(trace: Trace, launch: int, room: int) -> Kept:
    table = trace.launches
    warps, ranges, markers = (
        np.arange(rows.start, rows.stop)
        for rows in (table.warps_of(launch), table.ranges_of(launch), table.markers_of(launch))
    )
    ctas = _ctas(trace, warps)
    count = int(ctas.max()) + 1 if len(ctas) else 0
    if len(warps) + len(ranges) + len(markers) <= room or not count:
        return Kept(launch, warps, ranges, markers, (count, count), False)
    first = int(warps[0])
    sizes = np.bincount(ctas, minlength=count)
    sizes += np.bincount(ctas[trace.ranges.warp[ranges] - first], minlength=count)
    sizes += np.bincount(ctas[trace.markers.warp[markers] - first], minlength=count)
    chosen = _some_ctas(sizes, _last_cta(trace, warps, ctas), room)
    keep = np.isin(ctas, chosen)
    warps = warps[keep]
    ranges = ranges[keep[trace.ranges.warp[ranges] - first]]
    markers = markers[keep[trace.markers.warp[markers] - first]]
    longest = len(warps) + len(ranges) + len(markers) > room
    if longest:
        markers = markers[: room // 4]
        spare = max(0, room - len(warps) - len(markers))
        order = np.argsort(-trace.ranges.duration_ns[ranges], kind="stable")
        ranges = np.sort(ranges[order[:spare]])
    return Kept(launch, warps, ranges, markers, (len(chosen), count), longest)


def _ctas(trace: Trace, warps: Any) -> Any:
    """Return a number for each warp: that of its CTA, in the order of the table."""
    where = trace.warps.location[warps]
    places = np.column_stack([trace.locations.sm[where], trace.locations.cta[where]])
    changes = np.any(places[1:] != places[:-1], axis=1)
    return np.concatenate([[0], np.cumsum(changes)]) if len(warps) else np.zeros(0, np.int64)


def _last_cta(trace: Trace, warps: Any, ctas: Any) -> int:
    """Return the CTA that ends last: the tail of a launch must be in the picture."""
    return int(ctas[np.argmax(trace.warps.end_ns[warps])])


def _some_ctas(sizes: Any, last: int, room: int) -> list[int]:
    """Return as many CTAs as there is room for, evenly spread, with the one that ends last."""
    wanted = len(sizes)
    while True:
        chosen = sorted({*_spread(len(sizes), wanted)[: max(0, wanted - 1)], last})
        total = int(sizes[chosen].sum())
        if total <= room or len(chosen) == 1:
            return chosen
        wanted = max(1, min(wanted - 1, wanted * room // total))
