# SPDX-License-Identifier: Apache-2.0
"""What is drawn where: each warp has a track of stacked ranges, and tracks of their own for what does not nest.

Slices of one track must nest: viewers drop those that overlap (Perfetto does so silently).  Push/pop ranges nest by
their nature and share the warp's track.  Token ranges may overlap anything, so those of one name get a track, and as
many as it takes to keep them apart.  Push/pop ranges that cross others (see `Ranges.crossing`) are treated like them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .model import KIND_PUSH, Trace


@dataclass(frozen=True, slots=True)
class ExtraTrack:
    """A further track of a warp.

    Attributes:
        name: its name: the range's, with a number from the second track of that name on.
        rows: rows of `Trace.ranges` in the order of time; they do not overlap.
    """

    name: str
    rows: list[int]


@dataclass(frozen=True, slots=True)
class WarpTracks:
    """What one warp of one launch draws.

    Attributes:
        warp: row of `Trace.warps`.
        stacked: rows of `Trace.ranges` that nest, outer before inner, in the order of time.
        extra: further tracks.
        markers: rows of `Trace.markers` in the order of time.
    """

    warp: int
    stacked: list[int]
    extra: list[ExtraTrack]
    markers: list[int]


def draw_launch(trace: Trace, launch: int) -> Iterator[WarpTracks]:
    """Yield the tracks of a launch's warps in the order of `Trace.warps`."""
    ranges, markers = trace.ranges, trace.markers
    rows = _rows(trace.launches.ranges_of(launch))
    nests = (ranges.kind[rows] == KIND_PUSH) & ~ranges.crossing[rows]
    stacked = rows[nests]
    stacked = stacked[np.lexsort((ranges.depth[stacked], ranges.start_ns[stacked], ranges.warp[stacked]))]
    others = rows[~nests]
    others = others[
        np.lexsort((ranges.end_ns[others], ranges.start_ns[others], ranges.name[others], ranges.warp[others]))
    ]
    marks = _rows(trace.launches.markers_of(launch))
    marks = marks[np.lexsort((markers.ns[marks], markers.warp[marks]))]
    warps = range(len(trace.warps))[trace.launches.warps_of(launch)]
    bounds = np.arange(warps.start, warps.stop + 1)
    split = [
        np.searchsorted(owner[chosen], bounds).tolist()
        for owner, chosen in ((ranges.warp, stacked), (ranges.warp, others), (markers.warp, marks))
    ]
    for number, warp in enumerate(warps):
        pieces = [slice(places[number], places[number + 1]) for places in split]
        yield WarpTracks(
            warp,
            stacked[pieces[0]].tolist(),
            _separate(trace, others[pieces[1]]),
            marks[pieces[2]].tolist(),
        )


def _rows(bounds: slice) -> Any:
    return np.arange(bounds.start, bounds.stop)


def nested(rows: Sequence[int], start: Any, end: Any) -> Iterator[tuple[bool, int]]:
    """Yield each row twice, where it begins (True) and where it ends (False), as a stack would do it.

    Args:
        rows: nested intervals, outer before inner, in the order of time.
        start, end: stamps by row; an end before its start counts as equal to it.
    """
    stack: list[tuple[int, int]] = []
    for row in rows:
        now = int(start[row])
        while stack and stack[-1][0] <= now:
            yield False, stack.pop()[1]
        yield True, row
        stack.append((max(now, int(end[row])), row))
    while stack:
        yield False, stack.pop()[1]


def _separate(trace: Trace, rows: Any) -> list[ExtraTrack]:
    """Put ranges on as few tracks as keep those of one track apart."""
    ranges = trace.ranges
    found: list[ExtraTrack] = []
    for name, group in itertools.groupby(rows.tolist(), key=lambda row: int(ranges.name[row])):
        tracks: list[ExtraTrack] = []
        ends: list[int] = []
        for row in group:
            start, end = int(ranges.start_ns[row]), int(ranges.end_ns[row])
            free = next((track for track, last in enumerate(ends) if last <= start), None)
            if free is None:
                free = len(tracks)
                tracks.append(ExtraTrack(trace.names[name] + (f" #{free + 1}" if free else ""), []))
                ends.append(0)
            tracks[free].rows.append(row)
            ends[free] = max(start, end)
        found += tracks
    return found


def clock_offsets(trace: Trace) -> Any:
    """Return what to subtract from the stamps of each process, so that drawing starts at 0 (P,).

    Processes have clocks of their own: unless they are aligned, each is drawn after the one before it, so that nobody
    takes two stamps of different processes for simultaneous.
    """
    launches = trace.launches
    count = len(trace.processes)
    offsets = np.zeros(count, np.int64)
    used = launches.recorded
    if not used.any():
        return offsets
    if count == 1 or trace.alignment is not None:
        return offsets + launches.start_ns[used].min()
    place = 0
    for process in range(count):
        own = used & (launches.process == process)
        if own.any():
            first, last = int(launches.start_ns[own].min()), int(launches.end_ns[own].max())
            offsets[process] = first - place
            # A gap that shows: a twentieth, but never less than a microsecond.
            place += last - first + max(1000, (last - first) // 20)
    return offsets


def launch_title(trace: Trace, launch: int) -> str:
    """Return how to call a launch in a viewer."""
    launches = trace.launches
    title = f"{launches.kernel[launch]} (launch {launch}"
    if launches.graph[launch]:
        title += f", {launches.graph[launch]}"
    title += ")"
    if len(trace.processes) > 1:
        own = "" if trace.alignment is not None else ", own clock"
        title += f" [{trace.processes[launches.process[launch]].label}{own}]"
    return title
