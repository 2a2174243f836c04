# SPDX-License-Identifier: Apache-2.0
"""Print what `iket-trace` finds, as tables for people."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TextIO

from ..tracing.compare import WHOLE, Comparison, Row, Side
from ..tracing.findings import Finding
from ..tracing.model import Trace
from ..tracing.summary import KernelSummary, RangeRow, Summary
from .tables import clean, duration, open_console, print_table, say


def print_findings(findings: Sequence[Finding], stream: TextIO | None = None) -> None:
    """Print findings, warnings first."""
    for finding in sorted(findings, key=lambda one: not one.fails):
        place = f"{finding.kernel}: " if finding.kernel else ""
        print(clean(f"{finding.severity} [{finding.code}]: {place}{finding.message}"), file=stream)
        if finding.remedy:
            print(clean(f"  fix: {finding.remedy}"), file=stream)


def print_summary(trace: Trace, found: Summary, *, every: bool) -> None:
    """Print a summary as tables."""
    console = open_console()
    for kernel in found.kernels:
        say(console, _headline(trace, kernel), "bold")
        _ranges(console, kernel.ranges, "", every)
        if found.by:
            _ranges(console, kernel.groups, found.by, every)
        _details(console, kernel, every)
    note_clocks(trace)
    print_findings(found.findings)


def print_list(trace: Trace, values: dict[str, Any], *, every: bool) -> None:
    """Print what a trace holds."""
    console = open_console()
    if len(trace.processes) > 1:
        files = [(one["label"], one["path"]) for one in values["processes"]]
        print_table(console, "processes", ("process", "file"), files, every)
    rows = [
        (
            *((row["process"],) if len(trace.processes) > 1 else ()),
            row["launch"],
            row["kernel"],
            row["graph"],
            _dimensions(row["grid"]),
            _dimensions(row["block"]),
            "" if row["duration_ns"] is None else duration(row["duration_ns"]),
            row["warps"],
            row["ranges"],
            row["markers"],
        )
        for row in values["launches"]
    ]
    names = ("launch", "kernel", "graph", "grid", "block", "duration", "warps", "ranges", "markers")
    if not rows:
        say(console, "the trace holds no launch")
    print_table(console, "launches", (*(("process",) if len(trace.processes) > 1 else ()), *names), rows, every)
    events = [
        (row["name"], row["kind"], row["payload"], row["count"], _places(row["places"])) for row in values["events"]
    ]
    print_table(console, "events", ("event", "kind", "payload", "count", "source"), events, every)


def print_comparison(found: Comparison, *, every: bool) -> None:
    """Print a comparison as a table, and what its spread does not cover."""
    console = open_console()
    rows = [
        (
            row.kernel,
            "(whole launch)" if row.kind == WHOLE else row.name,
            _side(row.before),
            _side(row.after),
            _ratio(row),
            row.verdict,
            _repetitions(row),
        )
        for row in found.rows
    ]
    names = ("kernel", "range", "mean before", "mean after", "after / before", "verdict", "repetitions")
    print_table(console, "", names, rows, every)
    if not rows:
        say(console, "nothing to compare: neither trace holds a launch that recorded anything")
        return
    if found.renamed:
        say(console, f"{found.renamed[1]} was compared with {found.renamed[0]}: each trace has this one kernel")
    say(
        console,
        "The spread is a 95 % interval from the repetitions inside each trace; what varies between runs of the "
        "program is not in it.",
    )


def print_slower(found: Comparison, percent: float) -> int:
    """Say on standard error what is slower by more than a percentage; return the exit code."""
    slower = [row for row in found.rows if row.verdict == "slower" and (row.ratio or 0) > 1 + percent / 100]
    for row in slower:
        name = "the whole launch" if row.kind == WHOLE else f"range {row.name!r}"
        print(clean(f"slower by more than {percent:g}%: {row.kernel}: {name}: {_ratio(row)} times"), file=sys.stderr)
    return int(bool(slower))


def note_clocks(trace: Trace) -> None:
    """Say how the clocks of several processes stand to each other."""
    if trace.alignment is None:
        return
    found = trace.alignment
    error = "unknown after one passing" if found.error_ns is None else f"{found.error_ns} ns"
    print(
        clean(
            f"aligned on marker {found.marker!r}, passed {found.epochs} times by all: remaining error {error}; "
            f"the warps of one process pass it within {found.spread_ns} ns"
        )
    )


def _headline(trace: Trace, kernel: KernelSummary) -> str:
    launches = trace.launches
    first = kernel.launches[0]
    shapes = {(*launches.grid[row].tolist(), *launches.block[row].tolist()) for row in kernel.launches}
    shape = f"grid {_dimensions(launches.grid[first].tolist())}, block {_dimensions(launches.block[first].tolist())}"
    if len(shapes) > 1:
        shape = f"{len(shapes)} shapes of grid and block"
    parts = [f"{len(kernel.launches)} launches" if len(kernel.launches) > 1 else "1 launch", shape]
    if kernel.graph_launches:
        parts.append(f"{kernel.graph_launches} in graphs")
    if kernel.duration:
        parts.append(f"mean {duration(kernel.duration.mean_ns)}")
    parts.append(f"{kernel.warps} warps, in sum {duration(kernel.lifetime_ns)}")
    return f"{kernel.kernel}: {', '.join(parts)}"


def _ranges(console: Any, rows: Sequence[RangeRow], by: str, every: bool) -> None:
    names = ("range", "kind", by, "count", "total", "share", "mean", "min", "median", "p95", "max", "own", "≤ tick")
    sources = any(row.places for row in rows)
    print_table(
        console,
        f"ranges by {by}" if by else "ranges",
        (*(name for name in names if name), *(("source",) if sources else ())),
        [
            (
                row.name,
                row.kind,
                *((row.group,) if by else ()),
                row.duration.count,
                duration(row.duration.total_ns),
                "" if row.share is None else f"{row.share:.1%}",
                *map(duration, (row.duration.mean_ns, row.duration.min_ns, row.duration.median_ns)),
                *map(duration, (row.duration.p95_ns, row.duration.max_ns, row.own_ns)),
                row.at_tick or "",
                *((", ".join(map(str, row.places)),) if sources else ()),
            )
            for row in rows
        ],
        every,
    )


def _details(console: Any, kernel: KernelSummary, every: bool) -> None:
    if len(kernel.roles) > 1:
        _roles(console, kernel, every)
    marks = [
        (
            row.name,
            row.payload or "",
            row.count,
            row.warps,
            duration(row.since_start.mean_ns) if row.since_start else "",
            *((", ".join(map(str, row.places)),) if any(one.places for one in kernel.markers) else ()),
        )
        for row in kernel.markers
    ]
    names: tuple[str, ...] = ("marker", "payload", "count", "warps", "mean after warp start", "source")
    print_table(console, "markers", names[: len(marks[0])] if marks else names, marks, every)
    times = [
        (
            f"start of {one.first}" if one.kind == "range" else one.first,
            one.second,
            one.duration.count,
            *map(duration, (one.duration.mean_ns, one.duration.min_ns, one.duration.median_ns)),
            *map(duration, (one.duration.p95_ns, one.duration.max_ns)),
        )
        for one in kernel.intervals
    ]
    print_table(console, "intervals", ("from", "to", "count", "mean", "min", "median", "p95", "max"), times, every)
    _balance(console, kernel, every)


def _roles(console: Any, kernel: KernelSummary, every: bool) -> None:
    rows = [
        (
            role.label,
            role.warps,
            ", ".join(role.ranges) or "none",
            duration(role.lifetime_ns),
            _share(role.covered_ns, role.lifetime_ns),
        )
        for role in kernel.roles
    ]
    print_table(console, "roles of warps", ("warps", "count", "ranges", "lifetime", "in ranges"), rows, every)


def _balance(console: Any, kernel: KernelSummary, every: bool) -> None:
    rows = [
        (
            str(one.launch),
            duration(one.duration_ns),
            one.ctas,
            f"{one.cta_imbalance:.2f}",
            ",".join(map(str, one.slowest_cta)),
            one.sms,
            f"{one.sm_imbalance:.2f}",
            str(one.busiest_sm),
            duration(one.tail_ns),
            f"{one.tail_idle:.1%}",
        )
        for one in kernel.balance
    ]
    ctas, sms = ("CTAs", "slowest / mean", "slowest"), ("SMs", "busiest / mean", "busiest")
    names = ("launch", "duration", *ctas, *sms, "tail", "idle in tail")
    print_table(console, "balance over CTAs and SMs", names, rows, every)


def _side(side: Side | None) -> str:
    return "" if side is None else f"{duration(side.mean_ns)} of {side.count:,}"


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    return f"{row.ratio:.3f}" + ("" if row.spread is None else f" ± {row.spread:.3f}")


def _repetitions(row: Row) -> str:
    said = []
    for side in (row.before, row.after):
        if side is not None:
            plural = "" if side.repetitions == 1 else ("es" if side.unit.endswith("h") else "s")
            said.append(f"{side.repetitions} {side.unit}{plural}")
    return " and ".join(said)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _dimensions(values: Sequence[int]) -> str:
    return "x".join(map(str, values))


def _places(places: Sequence[dict[str, Any]]) -> str:
    return ", ".join(f"{place['file']}:{place['line']}" for place in places)
