# SPDX-License-Identifier: Apache-2.0
"""Tables of a trace as data frames: each row joined with what it refers to."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import OptionError, ToolError
from . import payloads
from .kinds import kind_name

TABLES = ("ranges", "markers", "warps", "launches")


def columns(trace: Any, table: str) -> dict[str, Any]:
    """Return a table's columns by name, joined with names, launch and location.

    Raises:
        OptionError: there is no such table.
    """
    if table not in TABLES:
        raise OptionError(f"there is no table {table!r}", remedy=f"choose from {', '.join(TABLES)}")
    if table == "launches":
        return _launches(trace, np.arange(len(trace.launches)))
    if table == "warps":
        warps = trace.warps
        own = {"start_ns": warps.start_ns, "end_ns": warps.end_ns, "lifetime_recorded": warps.recorded}
        return _place(trace, np.arange(len(warps))) | own
    names = np.array([*trace.names, ""], dtype=object)
    if table == "markers":
        marks = trace.markers
        own = {"name": names[marks.name], "ns": marks.ns, "inside": marks.inside}
        return _place(trace, marks.warp) | own | _payload("", marks.type, marks.bits)
    return _ranges(trace, names)


def to_pandas(values: dict[str, Any]) -> Any:
    """Return columns as a pandas frame."""
    try:
        import pandas
    except ImportError:
        raise ToolError("pandas is not installed", remedy="pip install pandas") from None
    return pandas.DataFrame(values)


def to_polars(values: dict[str, Any]) -> Any:
    """Return columns as a polars frame; columns of objects become text."""
    try:
        import polars
    except ImportError:
        raise ToolError("polars is not installed", remedy="pip install polars") from None
    return polars.DataFrame(
        {
            name: [None if value is None else str(value) for value in column] if column.dtype == object else column
            for name, column in values.items()
        }
    )


def _ranges(trace: Any, names: Any) -> dict[str, Any]:
    ranges = trace.ranges
    kinds = np.array([kind_name(code) for code in range(256)], dtype=object)
    own = {
        "name": names[ranges.name],
        "kind": kinds[ranges.kind],
        "start_ns": ranges.start_ns,
        "end_ns": ranges.end_ns,
        "duration_ns": ranges.duration_ns,
        "own_ns": ranges.own_ns,
        "depth": ranges.depth,
        "crossing": ranges.crossing,
    }
    return (
        _place(trace, ranges.warp)
        | own
        | _payload("start_", ranges.start_type, ranges.start_bits)
        | _payload("end_", ranges.end_type, ranges.end_bits)
    )


def _payload(prefix: str, codes: Any, bits: Any) -> dict[str, Any]:
    types = np.array([payloads.type_name(code) for code in range(256)], dtype=object)
    return {
        f"{prefix}payload": payloads.decode_all(codes, bits),
        f"{prefix}payload_type": types[codes],
        f"{prefix}payload_bits": bits,
    }


def _place(trace: Any, warps: Any) -> dict[str, Any]:
    launch, row = trace.warps.launch[warps], trace.warps.location[warps]
    where = trace.locations
    return {
        "process": _labels(trace)[trace.launches.process[launch]],
        "launch": launch,
        "kernel": np.array(trace.launches.kernel, dtype=object)[launch],
        "sm": where.sm[row],
        **{f"cta_{axis}": where.cta[row, number] for number, axis in enumerate("xyz")},
        "warp": where.warp[row],
    }


def _launches(trace: Any, rows: Any) -> dict[str, Any]:
    launches = trace.launches
    return {
        "process": _labels(trace)[launches.process],
        "launch": rows,
        "kernel": np.array(launches.kernel, dtype=object),
        "grid_id": launches.grid_id,
        "graph": np.array(launches.graph, dtype=object),
        **{f"grid_{axis}": launches.grid[:, number] for number, axis in enumerate("xyz")},
        **{f"block_{axis}": launches.block[:, number] for number, axis in enumerate("xyz")},
        "start_ns": launches.start_ns,
        "end_ns": launches.end_ns,
        "ranges": np.diff(launches.range_rows),
        "markers": np.diff(launches.marker_rows),
        "warps": np.diff(launches.warp_rows),
    }


def _labels(trace: Any) -> Any:
    return np.array([process.label for process in trace.processes], dtype=object)
