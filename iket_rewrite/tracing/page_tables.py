# SPDX-License-Identifier: Apache-2.0
"""The tables of a page: rows of the summary with what the page must know to sort, write and highlight them.

A table is plain data: `columns` say key, title and kind of each value (times of one `scale` share their unit), `rows`
hold the values by key and, under `pick`, which ranges or markers a row stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import grouping
from .intervals import Interval, MarkerRow
from .model import Trace
from .statistics import Stats
from .summary import KernelSummary, RangeRow, Summary

Table = dict[str, Any]
#: Rows that a table takes; payloads can be as many as ranges.
_MOST_ROWS = 500


def column(key: str, title: str, kind: str, help: str = "", *, scale: str = "", whole: bool = False) -> dict[str, Any]:
    """Return a column: key, title and kind of its values."""
    return {"key": key, "title": title, "kind": kind, "help": help, "scale": scale, "whole": whole}


_COUNT = column("count", "count", "count", "how often")
_TOTAL = column("total", "total", "time", "the sum of the durations", scale="sum", whole=True)
_OWN = column("own", "own", "time", "the sum without the ranges inside", scale="sum", whole=True)
_SHARE = column("share", "share", "share", "of the lifetimes of the warps that record it; overlaps count once")
_ONE = [
    column("mean", "mean", "time", "", scale="one"),
    column("median", "median", "time", "", scale="one"),
    column("p95", "p95", "time", "95 of 100 are not longer", scale="one"),
    column("max", "max", "time", "", scale="one", whole=True),
    column("min", "min", "time", "", scale="one", whole=True),
]
_WARPS = column("warps", "warps", "count", "on how many warps")
_RANGE = [column("name", "range", "text"), _COUNT, _TOTAL, _SHARE, *_ONE, _OWN, _WARPS]


def kernel_tables(kernel: KernelSummary, roles: Summary | None, payloads: Summary | None) -> list[Table]:
    """Return the tables of a kernel over all its launches."""
    several = len(kernel.launches) > 1
    over = f"over all {len(kernel.launches):,} launches" if several else ""
    tables = [_ranges("all", f"All {len(kernel.launches):,} launches", kernel.ranges, over)] if several else []
    if len(kernel.roles) > 1 and (found := _groups(roles, kernel.kernel)):
        numbers = {role.label: number for number, role in enumerate(kernel.roles)}
        rows = [_range(row, "role", role=numbers[row.group]) for row in found]
        tables.append(_divided("role", "By role", "role", rows, f"by the ranges that a warp records {over}".strip()))
    found = [row for row in _groups(payloads, kernel.kernel) if row.group]
    if any(row.group != "no payload" for row in found):
        rows = [_range(row, "payload", payload=row.group) for row in found]
        tables.append(_divided("payload", "By payload", "payload", rows, f"by the payload at the start {over}".strip()))
    if kernel.markers:
        tables.append(_markers(kernel.markers, over))
    if kernel.intervals:
        tables.append(_intervals(kernel.intervals, over))
    return tables


def launch_tables(
    trace: Trace, summary: Summary, by_launch: Summary | None, launches: Iterable[int]
) -> list[list[Table]]:
    """Return the tables of each of the launches alone.

    Args:
        trace: the trace.
        summary: of the trace.
        by_launch: the same divided by launch; None where no kernel has several.
        launches: rows of `trace.launches`.
    """
    rows: dict[int, Sequence[RangeRow]] = {kernel.launches[0]: kernel.ranges for kernel in summary.kernels}
    if by_launch is not None:
        # The division labels launches in the order of the table.
        labels = grouping.divide(trace, slice(0), "launch", [], []).labels
        numbers = {label: number for number, label in enumerate(labels)}
        divided: dict[int, list[RangeRow]] = {number: [] for number in range(len(labels))}
        for kernel in by_launch.kernels:
            for row in sorted(kernel.groups, key=lambda row: -row.duration.total_ns):
                divided[numbers[row.group]].append(row)
        rows = dict(divided)
    return [[_ranges("ranges", "Ranges", rows.get(launch, ()), "of this launch")] for launch in launches]


def _groups(summary: Summary | None, kernel: str) -> Sequence[RangeRow]:
    found = [one.groups for one in summary.kernels if one.kernel == kernel] if summary else []
    return found[0] if found else ()


def _ranges(key: str, title: str, rows: Iterable[RangeRow], help: str) -> Table:
    return table(key, title, _RANGE, [_range(row, key) for row in rows], "No ranges were recorded.", help)


def _divided(key: str, title: str, group: str, rows: list[dict[str, Any]], help: str) -> Table:
    columns = [_RANGE[0], column("group", group, "text"), *_RANGE[1:]]
    rows = sorted(rows, key=lambda row: -row["total"])
    return table(key, title, columns, rows, "", help)


def _markers(rows: Sequence[MarkerRow], help: str) -> Table:
    columns = [column("name", "marker", "text"), _COUNT, _WARPS, column("type", "payload", "text"), *_ONE]
    found = [
        {
            "name": row.name,
            "count": row.count,
            "warps": row.warps,
            "type": row.payload or "",
            **_stats(row.since_start),
            "pick": {"key": f"markers mark {row.name}", "kind": "mark", "name": row.name},
        }
        for row in rows
    ]
    return table("markers", "Markers", columns, found, "", f"times since the start of the warp {help}".strip())


def _intervals(rows: Sequence[Interval], help: str) -> Table:
    columns = [column("first", "from", "text"), column("second", "to marker", "text"), _COUNT, *_ONE]
    found = [
        {
            "first": f"start of {row.first}" if row.kind == "range" else row.first,
            "second": row.second,
            **_stats(row.duration),
        }
        for row in sorted(rows, key=lambda row: -row.duration.total_ns)
    ]
    return table("intervals", "Intervals", columns, found, "", f"time to a marker on the same warp {help}".strip())


def table(
    key: str, title: str, columns: Sequence[dict[str, Any]], rows: list[dict[str, Any]], none: str, help: str
) -> Table:
    """Return a table; of very many rows those with the longest total."""
    more = f"{len(rows) - _MOST_ROWS:,} more rows are left out." if len(rows) > _MOST_ROWS else ""
    rows = sorted(rows, key=lambda row: -row.get("total", 0))[:_MOST_ROWS] if more else rows
    return {"id": key, "title": title, "columns": columns, "rows": rows, "none": none, "help": help, "more": more}


def _range(row: RangeRow, table: str, **part: Any) -> dict[str, Any]:
    pick = {"key": f"{table} {row.kind} {row.name} {row.group}", "kind": row.kind, "name": row.name, **part}
    if part:
        pick["label"] = row.group
    return {
        "name": row.name,
        "group": row.group,
        **_stats(row.duration),
        "own": row.own_ns,
        "share": row.share,
        "warps": row.warps,
        "pick": pick,
    }


def _stats(stats: Stats | None) -> dict[str, Any]:
    if stats is None:
        return dict.fromkeys(("total", "mean", "min", "median", "p95", "max"))
    return {
        "count": stats.count,
        "total": stats.total_ns,
        "mean": stats.mean_ns,
        "min": stats.min_ns,
        "median": stats.median_ns,
        "p95": stats.p95_ns,
        "max": stats.max_ns,
    }
