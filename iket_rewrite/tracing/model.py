# SPDX-License-Identifier: Apache-2.0
"""A trace as columns: what a file of raw bits means, ready for numpy.

One `Trace` holds everything as tables.  A table is a frozen dataclass whose fields are numpy arrays of one length;
row `i` of every array belongs together, and `len(table)` is the number of rows; `tables` describes each.  Rows refer to
rows of other tables by number:

    ranges.warp -> warps      warps.launch -> launches      launches.process -> processes
    markers.warp -> warps     warps.location -> locations

All times are integers, nanoseconds of the GPU's global timer (int64).  They are of one clock within a process only:
never compare stamps of two processes unless `Trace.alignment` is set.  They are about 1.8e18, more than a float64
holds: subtract `launches.start_ns` before converting.

Payloads are kept as they were recorded, as a type code and 64 raw bits; `payloads` decodes them.

Kinds of ranges are numbers of the runtime; `kinds.kind_name` says their names, which are those of event tables.

Nothing here reads files or judges: `load` makes traces, `summary` and `compare` draw conclusions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import frames
from .events import EventInfo, SourcePlace
from .kinds import KIND_PUSH, KIND_TOKEN, kind_name
from .tables import COLOR_AUTOMATIC, Launches, Locations, Markers, Ranges, Warps

__all__ = [
    "COLOR_AUTOMATIC",
    "KIND_PUSH",
    "KIND_TOKEN",
    "Alignment",
    "EventInfo",
    "Launches",
    "Locations",
    "Markers",
    "Process",
    "Ranges",
    "SourcePlace",
    "Trace",
    "Warps",
    "kind_name",
]


@dataclass(frozen=True, slots=True)
class Process:
    """One process, that is one file.

    Attributes:
        path: the file that it was read from.
        pid: what the file's name says, for example "0x1a2b", or "" where it says nothing.
        label: how to call it in output; unique within a trace.
        shift_ns: what alignment added to its stamps; 0 where they are as recorded.
        version: the layout's version (`meta.version`), or None.
        extra: keys of the document that this version does not know.
    """

    path: str
    pid: str
    label: str
    shift_ns: int = 0
    version: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alignment:
    """How the clocks of several processes were brought together.

    Attributes:
        marker: name of the marker that all passed.
        epochs: how often all passed it; each passing is one epoch.
        error_ns: the largest remaining difference between two processes in any epoch; None after one epoch, which fits
            by construction and tells nothing.
        spread_ns: the largest difference between the warps of one process in one epoch: no alignment is better.
    """

    marker: str
    epochs: int
    error_ns: int | None
    spread_ns: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace:
    """Everything that one or several trace files hold.

    Attributes:
        processes: one per file.
        names: names of ranges and markers; `ranges.name` and `markers.name` are indices into it.
        launches, locations, warps, ranges, markers: the tables.
        events: what the event tables say, empty without one.
        alignment: how the clocks of the processes were aligned, or None.
    """

    processes: tuple[Process, ...]
    names: tuple[str, ...]
    launches: Launches
    locations: Locations
    warps: Warps
    ranges: Ranges
    markers: Markers
    events: tuple[EventInfo, ...] = ()
    alignment: Alignment | None = None

    def __repr__(self) -> str:
        counts = {name: len(getattr(self, name)) for name in ("processes", "launches", "warps", "ranges", "markers")}
        return f"Trace({', '.join(f'{count} {name}' for name, count in counts.items())})"

    def places(self, kind: str, name: str, kernel: str) -> tuple[SourcePlace, ...]:
        """Return where an event stands in the source, in the named kernel and in helpers where the table knows that."""
        found = [place for event in self.events if (event.kind, event.name) == (kind, name) for place in event.places]
        near = [place for place in found if place.kernel is None or _is_named(kernel, place.kernel)]
        return tuple(near or found)

    def kernels(self) -> Iterator[tuple[str, list[int]]]:
        """Yield each kernel's name with its launches, in the order of first appearance."""
        rows: dict[str, list[int]] = {}
        for launch, kernel in enumerate(self.launches.kernel):
            rows.setdefault(kernel, []).append(launch)
        yield from rows.items()

    def to_pandas(self, table: str = "ranges") -> Any:
        """Return a table ("ranges", "markers", "warps", "launches") as a pandas frame, joined with what it refers to.

        Raises:
            ToolError: pandas is not installed.
        """
        return frames.to_pandas(frames.columns(self, table))

    def to_polars(self, table: str = "ranges") -> Any:
        """Return the same as a polars frame; payloads, which may be of any type, are text there.

        Raises:
            ToolError: polars is not installed.
        """
        return frames.to_polars(frames.columns(self, table))


def _is_named(kernel: str, name: str) -> bool:
    """Say whether a kernel, perhaps mangled, has this name in the source."""
    name = name.rpartition("::")[2]
    return kernel == name or (kernel.startswith("_Z") and f"{len(name)}{name}" in kernel)
