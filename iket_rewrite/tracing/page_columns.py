# SPDX-License-Identifier: Apache-2.0
"""The columns of one launch as the page draws them: short lists of integers, relative and in drawing order.

Ranges are put on lanes: those of one lane of a warp never overlap, so the page finds what is visible by bisection.
Push/pop ranges lie on the lane of their depth; token ranges and those that cross others lie below, on the first lane
that is free.

Times are nanoseconds from the launch's start.  Starts are differences to the one before in the same lane, which are
short; a column that says nothing is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import payloads
from .kinds import KIND_PUSH
from .model import Trace
from .page_reduction import Kept

#: Key of a style: index of the name, kind of range (-1: a marker), colour.
Style = tuple[int, int, int]
MARKER = -1


class Styles:
    """How ranges and markers of one name, kind and colour look; numbered in the order of first use."""

    def __init__(self) -> None:
        self.rows: dict[Style, int] = {}

    def of(self, name: Any, kind: Any, color: Any) -> Any:
        """Return the number of the style of each row."""
        keys = np.column_stack([name.astype(np.int64), kind.astype(np.int64), color.astype(np.int64)])
        distinct, first, of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        numbers = np.zeros(len(distinct), np.int64)
        for row in np.argsort(first, kind="stable").tolist():
            one, two, three = distinct[row].tolist()
            numbers[row] = self.rows.setdefault((one, two, three), len(self.rows))
        return numbers[of.reshape(-1)]


def columns(trace: Trace, kept: Kept, styles: Styles) -> dict[str, Any]:
    """Return what the page needs to draw one launch.

    Args:
        trace: the trace.
        kept: what of the launch is shown.
        styles: all styles of the page; grows.
    """
    zero = int(trace.launches.start_ns[kept.launch])
    position = np.zeros(len(trace.warps), np.int64)
    position[kept.warps] = np.arange(len(kept.warps))
    table: dict[tuple[int, int], int] = {}
    return {
        "warps": _warps(trace, kept.warps, zero),
        **_ranges(trace, kept.ranges, zero, position, styles, table),
        **_markers(trace, kept.markers, zero, position, styles, table),
        "payloads": [[payloads.type_name(code), payloads.text(code, bits), f"{bits:#x}"] for code, bits in table],
    }


def _warps(trace: Trace, rows: Any, zero: int) -> dict[str, Any]:
    warps, where = trace.warps, trace.locations
    place = warps.location[rows]
    recorded = warps.recorded[rows]
    return {
        "sm": where.sm[place].tolist(),
        "tpc": where.tpc[place].tolist(),
        "gpc": where.gpc[place].tolist(),
        "cta": where.cta[place].reshape(-1).tolist(),
        "cluster": _unless(bool(np.all(where.cluster[place] < 0)), where.cluster[place].reshape(-1)),
        "id": where.warp[place].tolist(),
        "start": np.where(recorded, warps.start_ns[rows] - zero, -1).tolist(),
        "end": np.where(recorded, warps.end_ns[rows] - zero, -1).tolist(),
        "recorded": _unless(bool(np.all(recorded)), recorded.astype(np.int8)),
    }


def _ranges(
    trace: Trace, rows: Any, zero: int, position: Any, styles: Styles, table: dict[tuple[int, int], int]
) -> dict[str, Any]:
    ranges = trace.ranges
    lane = lanes(trace, rows)
    order = np.lexsort((ranges.end_ns[rows], ranges.start_ns[rows], lane, ranges.warp[rows]))
    rows, lane = rows[order], lane[order]
    warp = position[ranges.warp[rows]]
    segments, starts = _segments(warp, lane, ranges.start_ns[rows] - zero)
    duration, own = ranges.duration_ns[rows], ranges.own_ns[rows]
    elsewhere = np.flatnonzero(ranges.end_warp[rows] != ranges.warp[rows])
    return {
        "lanes": segments,
        "ranges": {
            "start": starts,
            "duration": duration.tolist(),
            "own": _unless(bool(np.all(own == duration)), own),
            "style": styles.of(ranges.name[rows], ranges.kind[rows], ranges.color[rows]).tolist(),
            "payload": _payload(ranges.start_type[rows], ranges.start_bits[rows], table),
            "endPayload": _payload(ranges.end_type[rows], ranges.end_bits[rows], table),
            # Rare, so by row: the place where a range ends that does not end in its own warp; ranges that cross others;
            # ranges that are not made of two events.
            "endPlace": {int(row): _place(trace, int(ranges.end_warp[rows[row]])) for row in elsewhere},
            "crossing": np.flatnonzero(ranges.crossing[rows]).tolist(),
            "events": _sparse(ranges.events[rows], 2),
        },
    }


def _markers(
    trace: Trace, rows: Any, zero: int, position: Any, styles: Styles, table: dict[tuple[int, int], int]
) -> dict[str, Any]:
    markers = trace.markers
    rows = rows[np.lexsort((markers.ns[rows], markers.warp[rows]))]
    warp = position[markers.warp[rows]]
    segments, times = _segments(warp, np.zeros(len(rows), np.int64), markers.ns[rows] - zero)
    kind = np.full(len(rows), MARKER, np.int64)
    return {
        "markerLanes": segments,
        "markers": {
            "time": times,
            "style": styles.of(markers.name[rows], kind, markers.color[rows]).tolist(),
            "payload": _payload(markers.type[rows], markers.bits[rows], table),
        },
    }


def lanes(trace: Trace, rows: Any) -> Any:
    """Return the lane of each range: none of the same warp and lane overlap."""
    ranges = trace.ranges
    start, end = ranges.start_ns[rows], np.maximum(ranges.start_ns[rows], ranges.end_ns[rows])
    warp, lane = ranges.warp[rows], ranges.depth[rows].astype(np.int64)
    stacked = (ranges.kind[rows] == KIND_PUSH) & ~ranges.crossing[rows]
    loose = np.flatnonzero(~stacked)
    if not len(loose):
        return lane
    # The first lane below the stack of each warp.
    below = np.zeros(len(trace.warps), np.int64)
    np.maximum.at(below, warp[stacked], lane[stacked] + 1)
    # Of those that start in one tick the name decides, so that warps look alike.
    loose = loose[np.lexsort((ranges.name[rows[loose]], start[loose], warp[loose]))]
    busy: list[int] = []
    current = -1
    for row, one, first, last in zip(
        loose.tolist(), warp[loose].tolist(), start[loose].tolist(), end[loose].tolist(), strict=True
    ):
        if one != current:
            current, busy = one, []
        free = next((number for number, until in enumerate(busy) if until <= first), len(busy))
        busy[free : free + 1] = [last]
        lane[row] = below[one] + free
    return lane


def _segments(warp: Any, lane: Any, times: Any) -> tuple[list[int], list[int]]:
    """Return (warp, lane, count) of every lane, flat, and the times as differences within each lane."""
    if not len(warp):
        return [], []
    change = np.flatnonzero(np.append(True, (warp[1:] != warp[:-1]) | (lane[1:] != lane[:-1])))
    count = np.diff(np.append(change, len(warp)))
    steps = np.diff(times, prepend=0)
    steps[change] = times[change]
    return np.column_stack([warp[change], lane[change], count]).reshape(-1).tolist(), steps.tolist()


def _payload(codes: Any, bits: Any, table: dict[tuple[int, int], int]) -> list[int] | None:
    """Return for each row 0 where there is no payload, else 1 + the place in the table of payloads; the table grows."""
    if not np.any(codes):
        return None
    distinct, value = np.unique(bits, return_inverse=True)
    keys, of = np.unique(value.reshape(-1).astype(np.int64) * 256 + codes, return_inverse=True)
    numbers = np.zeros(len(keys), np.int64)
    for row, key in enumerate(keys.tolist()):
        if key % 256:
            numbers[row] = 1 + table.setdefault((key % 256, int(distinct[key // 256])), len(table))
    return numbers[of.reshape(-1)].tolist()  # type: ignore[no-any-return]


def _place(trace: Trace, warp: int) -> str:
    row = int(trace.warps.location[warp])
    cta = ",".join(map(str, trace.locations.cta[row].tolist()))
    return f"SM {trace.locations.sm[row]}, CTA {cta}, warp {trace.locations.warp[row]}"


def _sparse(values: Any, usual: int) -> Mapping[int, int]:
    rows = np.flatnonzero(values != usual)
    return dict(zip(rows.tolist(), values[rows].tolist(), strict=True))


def _unless(trivial: bool, values: Any) -> list[int] | None:
    return None if trivial else values.tolist()
