# SPDX-License-Identifier: Apache-2.0
"""Bring the clocks of several processes together by a marker that all of them pass, such as a barrier.

Each process passes the marker once or several times; one passing is an epoch.  A process's time of an epoch is that of
its first warp, for the first to leave a barrier is nearest to the moment that opens it.  Its clock is shifted by the
median difference to the first process; what is left in the worst epoch is the remaining error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import OptionError
from .model import Alignment, Trace


def align(trace: Trace, marker: str) -> Trace:
    """Return the trace with the stamps of all processes on the first one's clock.

    Raises:
        OptionError: there is one process only, or one of them does not pass the marker.
    """
    if len(trace.processes) < 2:
        raise OptionError("there is one process only: nothing to align", remedy="name the files of all processes")
    known = _markers(trace)
    if marker not in known:
        said = ", ".join(known)
        raise OptionError(
            f"no marker is named {marker!r}", remedy=f"choose from {said}" if said else "the traces have no marker"
        )
    epochs = [_epochs(trace, process, marker) for process in range(len(trace.processes))]
    for process, found in zip(trace.processes, epochs, strict=True):
        if not found:
            raise OptionError(
                f"{process.label} does not pass the marker {marker!r}", remedy="align on a marker that all of them pass"
            )
    common = [key for key in epochs[0] if all(key in found for found in epochs)]
    if not common:
        raise OptionError(f"no passing of {marker!r} is common to all processes")
    first = np.array([[found[key][0] for key in common] for found in epochs])
    shifts = np.array([int(np.median(first[0] - own)) for own in first])
    left = first + shifts[:, None]
    alignment = Alignment(
        marker=marker,
        epochs=len(common),
        error_ns=int((left.max(axis=0) - left.min(axis=0)).max()) if len(common) > 1 else None,
        spread_ns=max(last - first for found in epochs for first, last in (found[key] for key in common)),
    )
    return replace(_shifted(trace, shifts), alignment=alignment)


def _epochs(trace: Trace, process: int, marker: str) -> dict[tuple[int, int], tuple[int, int]]:
    """Return for each epoch, that is (launch, passing within the warp), its first and last stamp over the warps."""
    table = trace.markers
    rows = np.flatnonzero(table.name == trace.names.index(marker))
    launch = trace.warps.launch[table.warp[rows]]
    rows = rows[trace.launches.process[launch] == process]
    rows = rows[np.lexsort((table.ns[rows], table.warp[rows]))]
    # Launches are told apart by their order in time among those that pass the marker.
    launch = trace.warps.launch[table.warp[rows]]
    order = sorted(set(launch.tolist()), key=lambda one: (int(trace.launches.start_ns[one]), one))
    place = {one: number for number, one in enumerate(order)}
    found: dict[tuple[int, int], tuple[int, int]] = {}
    warp, passing = -1, 0
    for owner, number, stamp in zip(table.warp[rows].tolist(), launch.tolist(), table.ns[rows].tolist(), strict=True):
        passing = passing + 1 if owner == warp else 0
        warp = owner
        key = (place[number], passing)
        first, last = found.get(key, (stamp, stamp))
        found[key] = (min(first, stamp), max(last, stamp))
    return found


def _shifted(trace: Trace, shifts: Any) -> Trace:
    launches, warps, ranges, markers = trace.launches, trace.warps, trace.ranges, trace.markers
    of_launch = shifts[launches.process]
    of_warp = of_launch[warps.launch]
    used, recorded = launches.recorded, warps.recorded
    return replace(
        trace,
        processes=tuple(
            replace(process, shift_ns=process.shift_ns + int(shift))
            for process, shift in zip(trace.processes, shifts, strict=True)
        ),
        launches=replace(
            launches,
            start_ns=launches.start_ns + np.where(used, of_launch, 0),
            end_ns=launches.end_ns + np.where(used, of_launch, 0),
        ),
        warps=replace(
            warps,
            start_ns=warps.start_ns + np.where(recorded, of_warp, 0),
            end_ns=warps.end_ns + np.where(recorded, of_warp, 0),
        ),
        ranges=replace(
            ranges, start_ns=ranges.start_ns + of_warp[ranges.warp], end_ns=ranges.end_ns + of_warp[ranges.end_warp]
        ),
        markers=replace(markers, ns=markers.ns + of_warp[markers.warp]),
    )


def _markers(trace: Trace) -> Sequence[str]:
    return [trace.names[name] for name in np.unique(trace.markers.name).tolist()]
