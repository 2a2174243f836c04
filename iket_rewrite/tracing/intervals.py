# SPDX-License-Identifier: Apache-2.0
"""Markers: how often each happens, and the time between one and the next on the same warp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import abi
from . import payloads
from .model import SourcePlace, Trace
from .statistics import Stats, grouped, sums


@dataclass(frozen=True, slots=True)
class MarkerRow:
    """One marker of one kernel.

    Attributes:
        kernel, name: which marker.
        count: how often it happened.
        warps: on how many warps.
        payload: name of the payload's type, or None.
        since_start: statistics of its distance from its warp's start, None where no lifetime was recorded.
        places: where it stands in the source.
    """

    kernel: str
    name: str
    count: int
    warps: int
    payload: str | None
    since_start: Stats | None
    places: tuple[SourcePlace, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    """The time from one event to a marker on the same warp.

    Attributes:
        first: name of the marker before it, or of the range.
        second: name of the marker.
        kind: "marker": from one marker to the next; "range": from the start of the innermost range that is open.
        duration: statistics.
    """

    first: str
    second: str
    kind: str
    duration: Stats


def marker_rows(trace: Trace, kernel: str, rows: Any) -> list[MarkerRow]:
    """Return a row for each marker among the given rows of `trace.markers`."""
    table = trace.markers
    name, warp = table.name[rows].astype(np.int64), table.warp[rows]
    known = trace.warps.recorded[warp]
    distinct, count = np.unique(name, return_counts=True)
    since = dict(zip(*_lists(grouped(name[known], (table.ns[rows] - trace.warps.start_ns[warp])[known])), strict=True))
    pairs = np.unique(name * max(1, len(trace.warps)) + warp) // max(1, len(trace.warps))
    warps = sums(pairs, np.ones(len(pairs), np.int64), distinct)
    found = []
    for key, times, users in zip(distinct.tolist(), count.tolist(), warps.tolist(), strict=True):
        codes = np.unique(table.type[rows][name == key])
        types = [payloads.type_name(code) for code in codes.tolist() if code != abi.PAYLOAD_NONE]
        text = trace.names[key]
        places = trace.places(abi.EventKind.MARK.value, text, kernel)
        found.append(MarkerRow(kernel, text, times, users, "|".join(map(str, types)) or None, since.get(key), places))
    return found


def intervals_of(trace: Trace, rows: Any) -> list[Interval]:
    """Return the intervals that end in the given markers."""
    table, names = trace.markers, max(1, len(trace.names))
    # In a tick of 32 ns several markers may fall: among those the order of the file decides.
    order = rows[np.lexsort((table.ns[rows], table.warp[rows]))]
    name, warp, stamp = table.name[order].astype(np.int64), table.warp[order], table.ns[order]
    same = warp[1:] == warp[:-1]
    between = grouped((name[:-1] * names + name[1:])[same], (stamp[1:] - stamp[:-1])[same])
    inside = table.inside[order]
    owned = inside >= 0
    ranges = inside[owned]
    within = grouped(
        trace.ranges.name[ranges].astype(np.int64) * names + name[owned], stamp[owned] - trace.ranges.start_ns[ranges]
    )
    return [*_intervals(trace, "range", within), *_intervals(trace, "marker", between)]


def _intervals(trace: Trace, kind: str, found: tuple[Any, Sequence[Stats]]) -> list[Interval]:
    return [
        Interval(trace.names[key // len(trace.names)], trace.names[key % len(trace.names)], kind, stats)
        for key, stats in zip(*_lists(found), strict=True)
    ]


def _lists(found: tuple[Any, Sequence[Stats]]) -> tuple[list[int], Sequence[Stats]]:
    return np.asarray(found[0]).tolist(), found[1]
