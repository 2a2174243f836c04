# SPDX-License-Identifier: Apache-2.0
"""The tables of a trace; `model` says how they hang together, and what is true of all times and payloads.

Tables are compared by identity: two arrays have no one answer to whether they are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import abi
from . import payloads

Ints = NDArray[np.int64]
Indices = NDArray[np.int32]
Bits = NDArray[np.uint64]
Codes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
#: Keys that this version does not know: key -> row -> value.
Extra = Mapping[str, Mapping[int, Any]]

#: Value of `Ranges.color` and `Markers.color`: the viewer chooses.
COLOR_AUTOMATIC = abi.COLOR_AUTOMATIC


@dataclass(frozen=True, slots=True, eq=False)
class Launches:
    """Kernel launches, process by process in the order of the file; those of graphs come after the others.

    Attributes:
        process: (n,) row of `Trace.processes`.
        kernel: n kernel names as the driver knows them, mangled.
        context: (n,) number of the CUDA context.
        grid_id: (n,) number of the launch in its context; in a graph, of the node in its replay.
        graph: n keys of the replay, for example "graph_exec_2:0"; "" outside graphs.
        grid, block: (n, 3) dimensions; 0 where an older file does not say.
        cluster: (n, 3) `enabledCluster`; the cluster to which the capture was limited where `single_cluster` is set.
        single_cluster: (n,) whether only that one cluster was recorded.
        start_ns, end_ns: (n,) first and last stamp of anything in it; both 0 where nothing was recorded.
        range_rows, marker_rows, warp_rows: (n + 1,) rows of launch i are `table[x[i]:x[i + 1]]`.
        extra: unknown keys.
    """

    process: Indices
    kernel: tuple[str, ...]
    context: Ints
    grid_id: Ints
    graph: tuple[str, ...]
    grid: Ints
    block: Ints
    cluster: Ints
    single_cluster: Flags
    start_ns: Ints
    end_ns: Ints
    range_rows: Ints
    marker_rows: Ints
    warp_rows: Ints
    extra: Extra = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.kernel)

    @property
    def recorded(self) -> Flags:
        """Return whether anything was recorded in each launch (n,)."""
        return np.asarray(np.diff(self.warp_rows) > 0)

    def ranges_of(self, launch: int) -> slice:
        """Return the rows of `Trace.ranges` that belong to a launch."""
        return slice(int(self.range_rows[launch]), int(self.range_rows[launch + 1]))

    def markers_of(self, launch: int) -> slice:
        """Return the rows of `Trace.markers` that belong to a launch."""
        return slice(int(self.marker_rows[launch]), int(self.marker_rows[launch + 1]))

    def warps_of(self, launch: int) -> slice:
        """Return the rows of `Trace.warps` that belong to a launch."""
        return slice(int(self.warp_rows[launch]), int(self.warp_rows[launch + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class Locations:
    """Where a warp ran.  Several launches may use one row.

    Attributes:
        cta: (n, 3) blockIdx.
        warp: (n,) number of the warp in its CTA.
        sm, tpc, gpc: (n,) numbers of the hardware units; -1 where the machine does not tell.
        cluster: (n, 3) index of the cluster; -1 where the file does not say.
        extra: unknown keys.
    """

    cta: Indices
    warp: Indices
    sm: Indices
    tpc: Indices
    gpc: Indices
    cluster: Indices
    extra: Extra = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.warp)


@dataclass(frozen=True, slots=True, eq=False)
class Warps:
    """The warps of every launch with their lifetimes, sorted by launch, SM, CTA (z, y, x) and warp.

    Attributes:
        launch, location: (n,) rows.
        start_ns, end_ns: (n,) lifetime; both -1 where none was recorded (then only events tell of the warp).
        recorded: (n,) whether the lifetime was recorded.
        extra: unknown keys.
    """

    launch: Indices
    location: Indices
    start_ns: Ints
    end_ns: Ints
    recorded: Flags
    extra: Extra = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.launch)


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Ranges, launch by launch in the order of the file.

    Attributes:
        name: (n,) index into `Trace.names`.
        kind: (n,) `KIND_PUSH`, `KIND_TOKEN` or another number of the runtime; see `kind_name`.
        warp: (n,) the warp in which it starts.
        end_warp: (n,) the warp in which it ends; the same but for scopes wider than a warp.
        start_ns, end_ns: (n,) stamps.  A negative duration is kept as it was recorded.
        own_ns: (n,) time in which no range opened later on the same warp is open: the duration without nested ranges.
            The own times of a warp add up to the time that its ranges cover.
        depth: (n,) how many push/pop ranges of the same warp are open when it starts.
        crossing: (n,) a push/pop range that overlaps another one without nesting, which no stack can produce; draw it
            on a track of its own.
        start_type, end_type: (n,) payload type code at each end, 0 where there is none.
        start_bits, end_bits: (n,) raw bits of the payloads, 0 where there is none.
        start_event, end_event: (n,) ids of the events at the ends, -1 where the file does not say.
        events: (n,) how many events make the range: 2, unless it is truncated or of the multi-event type.
        color: (n,) 0x00RRGGBB or `COLOR_AUTOMATIC`.
        extra: unknown keys.
    """

    name: Indices
    kind: Codes
    warp: Indices
    end_warp: Indices
    start_ns: Ints
    end_ns: Ints
    own_ns: Ints
    depth: Indices
    crossing: Flags
    start_type: Codes
    end_type: Codes
    start_bits: Bits
    end_bits: Bits
    start_event: Indices
    end_event: Indices
    events: Indices
    color: NDArray[np.uint32]
    extra: Extra = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.name)

    @property
    def duration_ns(self) -> Ints:
        """Return the durations (n,)."""
        return self.end_ns - self.start_ns

    def start_payload(self, row: int) -> payloads.Value:
        """Return the decoded payload at the start, None where there is none; a pointer is text such as "0x7f00"."""
        return payloads.decode(int(self.start_type[row]), int(self.start_bits[row]))

    def end_payload(self, row: int) -> payloads.Value:
        """Return the decoded payload at the end, None where there is none."""
        return payloads.decode(int(self.end_type[row]), int(self.end_bits[row]))


@dataclass(frozen=True, slots=True, eq=False)
class Markers:
    """Markers, launch by launch in the order of the file.

    Attributes:
        name: (n,) index into `Trace.names`.
        warp: (n,) the warp.
        ns: (n,) stamp.
        inside: (n,) row of the innermost range of the warp that is open then (start <= ns < end); where there is none,
            of a range that ends in the same tick; else -1.
        type, bits: (n,) payload type code and raw bits, 0 where there is none.
        color: (n,) 0x00RRGGBB or `COLOR_AUTOMATIC`.
        extra: unknown keys.
    """

    name: Indices
    warp: Indices
    ns: Ints
    inside: Indices
    type: Codes
    bits: Bits
    color: NDArray[np.uint32]
    extra: Extra = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.name)

    def payload(self, row: int) -> payloads.Value:
        """Return the decoded payload, None where there is none; a pointer is text such as "0x7f00"."""
        return payloads.decode(int(self.type[row]), int(self.bits[row]))
