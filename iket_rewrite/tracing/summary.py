# SPDX-License-Identifier: Apache-2.0
"""A trace in numbers: per kernel its ranges, markers, roles and balance, and what one should know about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import OptionError
from . import grouping
from .balance import Balance, balance_of
from .choosing import matching
from .findings import Finding, Scope, kernel_findings, trace_findings
from .grouping import Role
from .intervals import Interval, MarkerRow, intervals_of, marker_rows
from .model import SourcePlace, Trace
from .statistics import Stats, covered, exact, grouped, short, sums

#: Version of the JSON layout; it changes when a key changes its meaning or goes.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RangeRow:
    """One range of one kernel, or one group of it.

    Attributes:
        kernel, name, kind: which range.
        group: which part of it, "" for the whole.
        duration: statistics of its instances.
        own_ns: total time in which no range opened later on the same warp is open.
        share: covered time over the lifetime of the warps that record it; overlaps count once.  None without lifetimes.
        warps: how many warps record it.
        at_tick: how many instances last at most one tick of the clock: their single values mean nothing.
        places: where it stands in the source.
    """

    kernel: str
    name: str
    kind: str
    group: str
    duration: Stats
    own_ns: int
    share: float | None
    warps: int
    at_tick: int
    places: tuple[SourcePlace, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """One kernel over all its launches.

    Attributes:
        kernel: its name.
        launches: rows of `Trace.launches`.
        graph_launches: how many of them are nodes of CUDA graphs.
        duration: statistics of the launches' durations, None where nothing was recorded.
        warps: how many warps recorded something.
        lifetime_ns: the sum of their lifetimes.
        roles: groups of warps with the same set of ranges.
        ranges: one row per range, the longest total first.
        groups: the same divided, empty where no division was asked for.
        markers, intervals: see there.
        balance: one per launch.
    """

    kernel: str
    launches: tuple[int, ...]
    graph_launches: int
    duration: Stats | None
    warps: int
    lifetime_ns: int
    roles: tuple[Role, ...]
    ranges: tuple[RangeRow, ...]
    groups: tuple[RangeRow, ...]
    markers: tuple[MarkerRow, ...]
    intervals: tuple[Interval, ...]
    balance: tuple[Balance, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a trace says.

    Attributes:
        by: what `groups` are divided by, or None.
        kernels: in the order of first appearance.
        findings: what to know before trusting the numbers.
    """

    by: str | None = None
    kernels: tuple[KernelSummary, ...] = ()
    findings: tuple[Finding, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """Say whether there is no warning."""
        return not any(finding.fails for finding in self.findings)


def summarize(trace: Trace, *, kernel: str | None = None, by: str | None = None) -> Summary:
    """Return a trace in numbers.

    Args:
        trace: the trace.
        kernel: only kernels whose name matches this pattern (`*`, `?`).
        by: divide each range by "payload", "warp" (its role), "cta", "sm", "launch" or "process" as well.

    Raises:
        OptionError: no kernel matches, or there is no such division.
    """
    if by is not None and by not in grouping.BY:
        raise OptionError(f"a summary can not be divided by {by!r}", remedy=f"choose from {', '.join(grouping.BY)}")
    every = dict(trace.kernels())
    chosen = [(name, every[name]) for name in matching(every, kernel)]
    kernels, findings = [], trace_findings(trace)
    for name, launches in chosen:
        scope = _scope(trace, name, launches)
        kernels.append(_kernel(trace, scope, by))
        findings += kernel_findings(trace, scope)
    return Summary(by, tuple(kernels), tuple(findings))


def _scope(trace: Trace, kernel: str, launches: Sequence[int]) -> Scope:
    def rows(bounds: Any) -> Any:
        parts = [np.arange(bounds[launch], bounds[launch + 1]) for launch in launches]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    table = trace.launches
    ranges, warps = rows(table.range_rows), rows(table.warp_rows)
    roles, of = grouping.find_roles(trace, warps, ranges)
    role_of = np.full(len(trace.warps), -1, np.int64)
    role_of[warps] = of
    return Scope(kernel, launches, ranges, rows(table.marker_rows), warps, roles, role_of)


def _kernel(trace: Trace, scope: Scope, by: str | None) -> KernelSummary:
    launches = np.array(scope.launches)
    spent = (trace.launches.end_ns - trace.launches.start_ns)[launches[trace.launches.recorded[launches]]]
    _, duration = grouped(np.zeros(len(spent), np.int64), spent)
    groups: list[RangeRow] = []
    if by is not None:
        division = grouping.divide(trace, scope.ranges, by, scope.roles, scope.role_of)
        groups = _rows(trace, scope, division.of, division.labels)
    whole = _rows(trace, scope, np.zeros(len(scope.ranges), np.int64), [""])
    return KernelSummary(
        kernel=scope.kernel,
        launches=tuple(scope.launches),
        graph_launches=sum(bool(trace.launches.graph[launch]) for launch in scope.launches),
        duration=duration[0] if duration else None,
        warps=len(scope.warps),
        lifetime_ns=int(exact(grouping.lifetimes(trace)[scope.warps]).sum()),
        roles=tuple(scope.roles),
        ranges=tuple(sorted(whole, key=lambda row: -row.duration.total_ns)),
        groups=tuple(groups),
        markers=tuple(marker_rows(trace, scope.kernel, scope.markers)),
        intervals=tuple(intervals_of(trace, scope.markers)),
        balance=tuple(balance_of(trace, scope.launches)),
    )


def _rows(trace: Trace, scope: Scope, of: Any, labels: Sequence[str]) -> list[RangeRow]:
    """Return a row for each range and group that occur together."""
    table, rows = trace.ranges, scope.ranges
    if not len(rows):
        return []
    size = len(labels)
    keys = grouping.range_keys(trace, rows) * size + of
    duration, warp = table.duration_ns[rows], table.warp[rows]
    distinct, stats = grouped(keys, duration)
    own = sums(keys, table.own_ns[rows], distinct)
    at_tick = sums(keys, short(duration), distinct)
    # One key per range, group and warp: what overlaps within it counts once.
    place = np.searchsorted(distinct, keys)
    pairs, time = covered(place * len(trace.warps) + warp, table.start_ns[rows], table.end_ns[rows])
    owner, warps = np.divmod(pairs, len(trace.warps))
    index = np.arange(len(distinct))
    life = sums(owner, grouping.lifetimes(trace)[warps], index)
    cover = sums(owner, np.where(trace.warps.recorded[warps], time, 0), index)
    count = np.bincount(owner, minlength=len(distinct))
    columns = (distinct, stats, own, at_tick, life, cover, count)
    found = []
    for key, one, own_ns, ticks, lives, covers, users in zip(*(_plain(column) for column in columns), strict=True):
        number, group = divmod(key, size)
        kind, name = grouping.kind_and_name(trace, number)
        share = covers / lives if lives else None
        found.append(RangeRow(scope.kernel, name, kind, labels[group], one, own_ns, share, users, ticks))
    places = {(row.kind, row.name): trace.places(row.kind, row.name, scope.kernel) for row in found}
    return [replace(row, places=places[row.kind, row.name]) for row in found] if trace.events else found


def _plain(column: Any) -> list[Any]:
    return column if isinstance(column, list) else list(column.tolist())
