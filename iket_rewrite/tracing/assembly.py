# SPDX-License-Identifier: Apache-2.0
"""Several files' chunks of columns become one trace: one table of names, one of locations, one of warps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .columns import lifetime_columns, location_columns, marker_columns, range_columns
from .document import Document
from .events import EventInfo
from .model import Launches, Locations, Markers, Process, Ranges, Trace, Warps
from .nesting import find_nesting

#: Columns of empty tables.
_EMPTY = {
    "ranges": range_columns([], "", 0, 0, 0),
    "markers": marker_columns([], "", 0, 0, 0),
    "warpLifetimes": lifetime_columns([], "", 0, 0),
}


def assemble(documents: Sequence[Document], processes: Sequence[Process], events: tuple[EventInfo, ...]) -> Trace:
    """Put documents together; each is emptied as it is taken in."""
    names: dict[str, int] = {}
    renames = [np.array([names.setdefault(name, len(names)) for name in one.names], np.int32) for one in documents]
    locations = _locations(documents)
    tables = {key: _table(documents, key, renames) for key in _EMPTY}
    launch_of = {key: table.pop("launch") for key, table in tables.items()}
    count = sum(len(one.launches) for one in documents)
    warps, rows = _warps(tables, launch_of, locations, count)
    ranges = _ranges(tables["ranges"], rows, tables["markers"])
    launches = _launches(documents, tables, launch_of, warps)
    extras = _extras(documents)
    return Trace(
        tuple(processes),
        tuple(names),
        Launches(**launches, extra=extras["launches"]),
        Locations(**locations, extra=extras["locationTable"]),
        Warps(**warps, extra=_by_warp(extras["warpLifetimes"], rows["warpLifetimes"])),
        Ranges(**ranges, extra=extras["ranges"]),
        Markers(**tables["markers"], extra=extras["markers"]),
        events,
    )


def _locations(documents: Sequence[Document]) -> dict[str, Any]:
    keys = location_columns([], "")
    return {key: np.concatenate([empty, *(one.locations[key] for one in documents)]) for key, empty in keys.items()}


def _table(documents: Sequence[Document], key: str, renames: Sequence[Any]) -> dict[str, Any]:
    """Return a table's columns over all documents, with its column of launches; the chunks are given up."""
    parts: list[dict[str, Any]] = []
    launches, places = 0, 0
    for one, rename in zip(documents, renames, strict=True):
        for launch, chunk in one.chunks[key]:
            if "name" in chunk:
                chunk["name"] = rename[chunk["name"]]
            for column in ("location", "end_location"):
                if column in chunk:
                    chunk[column] += np.int32(places)
            chunk["launch"] = np.full(len(chunk["location"]), launches + launch, np.int32)
            parts.append(chunk)
        one.chunks[key] = []
        launches += len(one.launches)
        places += len(one.locations["warp"])
    table = {}
    for column, empty in {**_EMPTY[key], "launch": np.zeros(0, np.int32)}.items():
        table[column] = np.concatenate([empty, *(part.pop(column) for part in parts)])
    return table


def _warps(
    tables: dict[str, dict[str, Any]], launch_of: dict[str, Any], locations: dict[str, Any], launches: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the table of warps, and for each table the rows in it of its records."""
    size = np.int64(max(1, len(locations["warp"])))
    keys = {name: launch_of[name] * size + table.pop("location") for name, table in tables.items()}
    keys["ends"] = launch_of["ranges"] * size + tables["ranges"].pop("end_location")
    known = np.unique(np.concatenate([np.unique(key) for key in keys.values()]))
    launch, place = known // size, (known % size).astype(np.int32)
    cta = locations["cta"][place]
    order = np.lexsort((locations["warp"][place], cta[:, 0], cta[:, 1], cta[:, 2], locations["sm"][place], launch))
    row_of = np.empty(len(known), np.int32)
    row_of[order] = np.arange(len(known), dtype=np.int32)
    rows = {name: row_of[np.searchsorted(known, key)] for name, key in keys.items()}
    lives = tables["warpLifetimes"]
    start = np.full(len(known), np.iinfo(np.int64).max)
    end = np.full(len(known), -1)
    np.minimum.at(start, rows["warpLifetimes"], lives["start_ns"])
    np.maximum.at(end, rows["warpLifetimes"], lives["end_ns"])
    recorded = end >= 0
    start[~recorded] = -1
    table = {
        "launch": launch[order].astype(np.int32),
        "location": place[order],
        "start_ns": start,
        "end_ns": end,
        "recorded": recorded,
    }
    return table, rows


def _ranges(table: dict[str, Any], rows: dict[str, Any], markers: dict[str, Any]) -> dict[str, Any]:
    table["warp"], table["end_warp"] = rows["ranges"], rows["ends"]
    markers["warp"] = rows["markers"]
    found = find_nesting(
        table["warp"], table["kind"], table["start_ns"], table["end_ns"], markers["warp"], markers["ns"]
    )
    markers["inside"] = found.inside
    return {**table, "depth": found.depth, "own_ns": found.own_ns, "crossing": found.crossing}


def _launches(
    documents: Sequence[Document], tables: dict[str, dict[str, Any]], launch_of: dict[str, Any], warps: dict[str, Any]
) -> dict[str, Any]:
    heads = [(number, launch, graph) for number, one in enumerate(documents) for launch, graph in one.launches]
    count = len(heads)
    start, end = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    for key, table in tables.items():
        for column in ("start_ns", "end_ns", "ns"):
            if column in table:
                np.minimum.at(start, launch_of[key], table[column])
                np.maximum.at(end, launch_of[key], table[column])
    start[end < 0] = end[end < 0] = 0
    launches = [launch for _, launch, _ in heads]
    return {
        "process": np.array([number for number, _, _ in heads], np.int32),
        "kernel": tuple(launch.kernelName for launch in launches),
        "context": np.array([launch.contextId for launch in launches], np.int64),
        "grid_id": np.array([launch.gridId for launch in launches], np.int64),
        "graph": tuple(graph for _, _, graph in heads),
        "grid": _triples([(one.gridDimX, one.gridDimY, one.gridDimZ) for one in launches]),
        "block": _triples([(one.blockDimX, one.blockDimY, one.blockDimZ) for one in launches]),
        "cluster": _triples([(one.enabledCluster.x, one.enabledCluster.y, one.enabledCluster.z) for one in launches]),
        "single_cluster": np.array([bool(launch.singleClusterActive) for launch in launches], np.bool_),
        "start_ns": start,
        "end_ns": end,
        "range_rows": _rows(launch_of["ranges"], count),
        "marker_rows": _rows(launch_of["markers"], count),
        "warp_rows": _rows(warps["launch"], count),
    }


def _triples(values: list[tuple[int, int, int]]) -> Any:
    return np.array(values, np.int64).reshape(-1, 3)


def _rows(launch: Any, count: int) -> Any:
    return np.concatenate([[0], np.cumsum(np.bincount(launch, minlength=count))]).astype(np.int64)


def _extras(documents: Sequence[Document]) -> dict[str, dict[str, dict[int, Any]]]:
    """Return unknown keys by table, key and row of the whole trace."""
    found: dict[str, dict[str, dict[int, Any]]] = {}
    for table in ("launches", "locationTable", *_EMPTY):
        keys: dict[str, dict[int, Any]] = found.setdefault(table, {})
        base = 0
        for one in documents:
            for key, values in one.extra.get(table, {}).items():
                keys.setdefault(key, {}).update({base + row: value for row, value in values.items()})
            base += one.counts[table]
    return found


def _by_warp(extra: dict[str, dict[int, Any]], rows: Any) -> dict[str, dict[int, Any]]:
    return {key: {int(rows[row]): value for row, value in values.items()} for key, values in extra.items()}
