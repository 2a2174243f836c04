# SPDX-License-Identifier: Apache-2.0
"""Summaries, comparisons and lists as JSON values and as rows of a table, for programs that read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from . import compare, payloads, summary
from .model import Trace, kind_name

#: Version of the layout of `listing`; it changes when a key changes its meaning or goes.
LIST_SCHEMA = 1


def summary_values(found: summary.Summary, trace: Trace) -> dict[str, Any]:
    """Return a summary as JSON values."""
    values = asdict(found)
    for kernel, values_of in zip(found.kernels, values["kernels"], strict=True):
        for balance, one in zip(kernel.balance, values_of["balance"], strict=True):
            one |= {"cta_imbalance": balance.cta_imbalance, "sm_imbalance": balance.sm_imbalance}
    return {"schema": summary.SCHEMA, "ok": found.ok, "processes": _processes(trace), **values}


def summary_rows(found: summary.Summary) -> Iterator[dict[str, Any]]:
    """Yield the ranges of a summary, divided where it is, as flat rows."""
    for kernel in found.kernels:
        for row in kernel.groups if found.by else kernel.ranges:
            values = asdict(row)
            places = "; ".join(map(str, row.places))
            del values["places"]
            yield {**_flat(values), "source": places}


def comparison_values(found: compare.Comparison) -> dict[str, Any]:
    """Return a comparison as JSON values."""
    return {"schema": compare.SCHEMA, **asdict(found)}


def comparison_rows(found: compare.Comparison) -> Iterator[dict[str, Any]]:
    """Yield a comparison as flat rows."""
    empty = dict.fromkeys(("count", "mean_ns", "error_ns", "repetitions", "unit"))
    for row in found.rows:
        values = asdict(row)
        for side in ("before", "after"):
            part = values.pop(side) or empty
            values |= {f"{side}_{key}": value for key, value in part.items()}
        yield values


def listing(trace: Trace) -> dict[str, Any]:
    """Return what a trace holds, as JSON values: processes, launches and events."""
    return {
        "schema": LIST_SCHEMA,
        "processes": _processes(trace),
        "launches": list(launch_rows(trace)),
        "events": list(event_rows(trace)),
    }


def launch_rows(trace: Trace) -> Iterator[dict[str, Any]]:
    """Yield the launches."""
    launches = trace.launches
    for row in range(len(launches)):
        recorded = bool(launches.recorded[row])
        yield {
            "launch": row,
            "process": trace.processes[launches.process[row]].label,
            "kernel": launches.kernel[row],
            "grid_id": int(launches.grid_id[row]),
            "graph": launches.graph[row],
            "grid": launches.grid[row].tolist(),
            "block": launches.block[row].tolist(),
            "start_ns": int(launches.start_ns[row]) if recorded else None,
            "duration_ns": int(launches.end_ns[row] - launches.start_ns[row]) if recorded else None,
            "warps": int(launches.warp_rows[row + 1] - launches.warp_rows[row]),
            "ranges": int(launches.range_rows[row + 1] - launches.range_rows[row]),
            "markers": int(launches.marker_rows[row + 1] - launches.marker_rows[row]),
        }


def event_rows(trace: Trace) -> Iterator[dict[str, Any]]:
    """Yield the events that occur, and those that an event table declares."""
    ranges, markers = trace.ranges, trace.markers
    found: dict[tuple[str, str], tuple[int, set[str]]] = {}
    keys = ranges.name.astype(np.int64) * 256 + ranges.kind
    for key, count in zip(*(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True):
        chosen = keys == key
        types = set(np.unique(ranges.start_type[chosen]).tolist()) | set(np.unique(ranges.end_type[chosen]).tolist())
        found[kind_name(key % 256), trace.names[key // 256]] = (count, _types(types))
    for name, count in zip(*(part.tolist() for part in np.unique(markers.name, return_counts=True)), strict=True):
        found["mark", trace.names[name]] = (count, _types(set(np.unique(markers.type[markers.name == name]).tolist())))
    for event in trace.events:
        found.setdefault((event.kind, event.name), (0, {event.payload} if event.payload else set()))
    places = {(event.kind, event.name): event.places for event in trace.events}
    for (kind, name), (count, names) in found.items():
        source = [asdict(place) for place in places.get((kind, name), ())]
        yield {"kind": kind, "name": name, "count": count, "payload": "|".join(sorted(names)), "places": source}


def _types(codes: set[int]) -> set[str]:
    return {name for code in codes if (name := payloads.type_name(code)) is not None}


def _processes(trace: Trace) -> list[dict[str, Any]]:
    return [
        {"label": one.label, "path": one.path, "pid": one.pid, "shift_ns": one.shift_ns, "extra": dict(one.extra)}
        for one in trace.processes
    ]


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= value if isinstance(value, dict) else {key: value}
    return flat
