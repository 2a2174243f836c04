# SPDX-License-Identifier: Apache-2.0
"""What one should know before trusting a trace's numbers: findings as data, with their wording.

A warning says that something is missing or measured wrongly; a note says how to read what is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import abi
from . import payloads
from .grouping import Role, kind_and_name, range_keys
from .model import KIND_PUSH, KIND_TOKEN, Trace
from .statistics import grouped, short, sums

#: Share of a range's instances from which on it counts as empty, or as too short to read one by one.
_EMPTY, _SHORT = 0.8, 0.5
_WARP = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know.

    Attributes:
        code: stable id.
        severity: "warning" or "note".
        message: what it is.
        remedy: the way out, or "".
        kernel: the kernel's name, or "" for the whole trace.
        name: the event's name, or "".
        count: how many records it concerns.
    """

    code: str
    severity: str
    message: str
    remedy: str = ""
    kernel: str = ""
    name: str = ""
    count: int = 0

    @property
    def fails(self) -> bool:
        """Say whether a command returns 1 for it."""
        return self.severity == "warning"


@dataclass(frozen=True, slots=True)
class Scope:
    """One kernel's records: rows of the tables, its roles, and the role of every warp of the trace (-1: another's)."""

    kernel: str
    launches: Sequence[int]
    ranges: Any
    markers: Any
    warps: Any
    roles: Sequence[Role]
    role_of: Any


def kernel_findings(trace: Trace, scope: Scope) -> list[Finding]:
    """Return what is to be known about one kernel."""
    judges: list[Callable[[Trace, Scope], Iterator[Finding]]] = [
        _lost,
        _no_events,
        _unmatched,
        _backwards,
        _outside,
        _other_warp,
        _crossing,
        _short,
        _payload_types,
        _single_cluster,
    ]
    return [finding for judge in judges for finding in judge(trace, scope)]


def trace_findings(trace: Trace) -> list[Finding]:
    """Return what is to be known about the whole trace."""
    return [*_nothing(trace), *_clocks(trace), *_uncaptured(trace), *_unseen(trace), *_versions(trace)]


def _nothing(trace: Trace) -> Iterator[Finding]:
    if not len(trace.launches):
        message, remedy = (
            "the trace holds no launch",
            "see that the program launches a kernel, and what run-iket printed",
        )
        yield Finding("no-launches", "warning", message, remedy)


def _lost(trace: Trace, scope: Scope) -> Iterator[Finding]:
    launches = trace.launches
    missing, where = 0, 0
    for launch in scope.launches:
        grid, block = launches.grid[launch], launches.block[launch]
        expected = int(np.prod(grid)) * -(-int(np.prod(block)) // _WARP)
        found = launches.warps_of(launch)
        found = found.stop - found.start
        if not launches.single_cluster[launch] and found < expected:
            missing, where = missing + expected - found, where + 1
    if missing:
        yield Finding(
            "lost-warps",
            "warning",
            f"{missing} warps of {where} launches left no record: their events are lost",
            "capture again with a larger --max-ts-cnt-per-warp, and see what the capture printed",
            scope.kernel,
            count=missing,
        )
    silent = int((~trace.warps.recorded[scope.warps]).sum())
    if silent:
        message = f"{silent} warps have events but no lifetime: shares and balance leave them out"
        yield Finding("no-lifetime", "note", message, "", scope.kernel, count=silent)


def _no_events(trace: Trace, scope: Scope) -> Iterator[Finding]:
    launches = trace.launches
    empty = [
        launch
        for launch in scope.launches
        if launches.range_rows[launch] == launches.range_rows[launch + 1]
        and launches.marker_rows[launch] == launches.marker_rows[launch + 1]
    ]
    if empty:
        yield Finding(
            "no-events",
            "warning",
            f"{len(empty)} of {len(scope.launches)} launches recorded no event",
            "check that this kernel was rewritten, that no cached binary was run, and that the marked code is reached",
            scope.kernel,
            count=len(empty),
        )


def _by_name(trace: Trace, rows: Any) -> Iterator[tuple[str, int]]:
    """Yield names with how many of the rows have them."""
    keys, counts = np.unique(trace.ranges.name[rows], return_counts=True)
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        yield trace.names[key], count


def _unmatched(trace: Trace, scope: Scope) -> Iterator[Finding]:
    table, rows = trace.ranges, scope.ranges
    kind, first, last = table.kind[rows], table.start_event[rows], table.end_event[rows]
    known = (first >= 0) & (last >= 0)
    # No events at all is a file that does not list them.
    wrong = table.events[rows] == 1
    wrong |= known & (kind == KIND_PUSH) & (last != abi.ID_POP)
    wrong |= known & (kind == KIND_TOKEN) & (first != last)
    for name, count in _by_name(trace, rows[wrong]):
        yield Finding(
            "unmatched",
            "warning",
            f"{count} ranges {name!r} lack an end or have another one's: their durations are not to be trusted",
            "see that every path through the kernel closes what it opens (iket-verify --strict tells where)",
            scope.kernel,
            name,
            count,
        )


def _backwards(trace: Trace, scope: Scope) -> Iterator[Finding]:
    table, rows = trace.ranges, scope.ranges
    for name, count in _by_name(trace, rows[table.end_ns[rows] < table.start_ns[rows]]):
        yield Finding(
            "backwards", "warning", f"{count} ranges {name!r} end before they start", "", scope.kernel, name, count
        )
    warps = trace.warps
    count = int((warps.recorded & (warps.end_ns < warps.start_ns))[scope.warps].sum())
    if count:
        yield Finding("backwards", "warning", f"{count} warps end before they start", "", scope.kernel, count=count)


def _outside(trace: Trace, scope: Scope) -> Iterator[Finding]:
    warps = trace.warps

    def outside(warp: Any, first: Any, last: Any) -> int:
        return int((warps.recorded[warp] & ((first < warps.start_ns[warp]) | (last > warps.end_ns[warp]))).sum())

    table, marks = trace.ranges, trace.markers
    same = scope.ranges[table.warp[scope.ranges] == table.end_warp[scope.ranges]]
    count = outside(table.warp[same], table.start_ns[same], table.end_ns[same])
    count += outside(marks.warp[scope.markers], marks.ns[scope.markers], marks.ns[scope.markers])
    if count:
        message = f"{count} events lie outside the lifetime of their warp"
        yield Finding("outside-lifetime", "warning", message, "", scope.kernel, count=count)


def _other_warp(trace: Trace, scope: Scope) -> Iterator[Finding]:
    table, rows = trace.ranges, scope.ranges
    for name, count in _by_name(trace, rows[table.warp[rows] != table.end_warp[rows]]):
        message = f"{count} ranges {name!r} end on another warp: they are counted and drawn where they start"
        yield Finding("other-warp", "note", message, "", scope.kernel, name, count)


def _crossing(trace: Trace, scope: Scope) -> Iterator[Finding]:
    for name, count in _by_name(trace, scope.ranges[trace.ranges.crossing[scope.ranges]]):
        yield Finding(
            "crossing",
            "warning",
            f"{count} push/pop ranges {name!r} overlap others without nesting, which a stack can not produce",
            "look for a pop that a diverged warp ran twice or not at all",
            scope.kernel,
            name,
            count,
        )


def _short(trace: Trace, scope: Scope) -> Iterator[Finding]:
    """Judge each range role by role: the same range can be empty in some warps and full in others."""
    rows, tick, size = scope.ranges, abi.TIMER_TICK_NS, max(1, len(scope.roles))
    duration = trace.ranges.duration_ns[rows]
    keys = range_keys(trace, rows) * size + scope.role_of[trace.ranges.warp[rows]]
    distinct, stats = grouped(keys, duration)
    shorts = sums(keys, short(duration), distinct)
    for key, one, few in zip(np.asarray(distinct).tolist(), stats, shorts.tolist(), strict=True):
        number, role = divmod(key, size)
        _, name = kind_and_name(trace, number)
        where = f" in {scope.roles[role].label}" if len(scope.roles) > 1 else ""
        said = f"range {name!r} takes at most one tick ({tick} ns) {few} times of {one.count}{where}"
        if few >= _EMPTY * one.count:
            message, remedy = f"{said}: it encloses next to nothing", _elsewhere(scope)
            yield Finding("empty-range", "warning", message, remedy, scope.kernel, name, few)
        elif few >= _SHORT * one.count:
            message = f"{said}: single values mean nothing, the mean ({one.mean_ns:.1f} ns) does"
            yield Finding("tick", "note", message, "", scope.kernel, name, few)


def _elsewhere(scope: Scope) -> str:
    idle = [role.label for role in scope.roles if not role.ranges]
    said = "put the range around the code that does the work"
    if idle and len(idle) < len(scope.roles):
        said += f"; {' and '.join(idle)} record no range: a compiler that specialises warps may have moved it there"
    return said


def _payload_types(trace: Trace, scope: Scope) -> Iterator[Finding]:
    table, marks = trace.ranges, trace.markers
    codes = [table.start_type[scope.ranges], table.end_type[scope.ranges], marks.type[scope.markers]]
    found, counts = np.unique(np.concatenate(codes), return_counts=True)
    for code, count in zip(found.tolist(), counts.tolist(), strict=True):
        if code != abi.PAYLOAD_NONE and code not in abi.PAYLOAD_BY_CODE:
            message = (
                f"{count} payloads are of {payloads.type_name(code)}, which nobody has tried: they are shown as bits"
            )
            yield Finding("payload-type", "note", message, "", scope.kernel, count=count)


def _single_cluster(trace: Trace, scope: Scope) -> Iterator[Finding]:
    launches = [launch for launch in scope.launches if trace.launches.single_cluster[launch]]
    if launches:
        place = ", ".join(map(str, trace.launches.cluster[launches[0]].tolist()))
        message = f"{len(launches)} launches recorded one cluster only ({place}): totals and balance are that cluster's"
        yield Finding("single-cluster", "note", message, "", scope.kernel, count=len(launches))


def _clocks(trace: Trace) -> Iterator[Finding]:
    if len(trace.processes) > 1 and trace.alignment is None:
        message = f"{len(trace.processes)} processes, each with a clock of its own: their stamps can not be compared"
        remedy = "name a marker that all of them pass with --align marker:NAME"
        yield Finding("clocks", "note", message, remedy, count=len(trace.processes))


def _uncaptured(trace: Trace) -> Iterator[Finding]:
    for event in trace.events:
        if event.declared and not event.payload and event.name in trace.names:
            yield Finding(
                "payload-not-captured",
                "note",
                f"the payload ({event.declared}) of {event.name!r} was not captured",
                "rewrite with --runtime-payloads (runtime_payloads=True)",
                name=event.name,
            )


def _unseen(trace: Trace) -> Iterator[Finding]:
    seen = set(trace.names)
    known = {event.name for event in trace.events}
    for name in sorted(known - seen):
        yield Finding("never-seen", "note", f"the event table declares {name!r}, which never happened", name=name)
    if known and seen - known:
        message = f"the event table does not know {', '.join(map(repr, sorted(seen - known)))}"
        remedy = "give the table of the source that was run"
        yield Finding("not-in-table", "note", message, remedy, count=len(seen - known))


def _versions(trace: Trace) -> Iterator[Finding]:
    for process in trace.processes:
        if process.version not in (None, 1):
            message = f"{process.path} is of layout {process.version}; it was read as layout 1, the one that is known"
            yield Finding("layout-version", "note", message)
