# SPDX-License-Identifier: Apache-2.0
"""From records to columns, with every number checked: a negative or huge one is an error that names its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TraceError
from .layout import ANOTHER, NO_VALUE, InternalEvent, Lifetime, Location, Marker, Range

_NO_EVENT = InternalEvent(timestamp=0)
#: The highest stamp: columns are signed.
_HIGHEST = np.iinfo(np.int64).max


def range_columns(items: Sequence[Range], place: str, first: int, names: int, locations: int) -> dict[str, Any]:
    """Return the columns of a chunk of ranges.

    Args:
        items: the ranges.
        place, first: the place of their list, and the first one's index in it.
        names, locations: how many rows the tables have.

    Raises:
        TraceError: a number is impossible.
    """
    check = _Check(place, first)
    for number, item in enumerate(items):
        if not item.warpLocIdxs:
            raise TraceError(f"{place}[{first + number}].warpLocIdxs: is empty: the range has no warp")
        if len(item.warpLocIdxs) > 2:
            check.indices(item.warpLocIdxs, f"[{first + number}].warpLocIdxs", locations)
    starts = [item.internalEvents[0] if item.internalEvents else _NO_EVENT for item in items]
    ends = [item.internalEvents[-1] if len(item.internalEvents) > 1 else _NO_EVENT for item in items]
    start_type, start_bits = check.payload(starts, "internalEvents[0]")
    end_type, end_bits = check.payload(ends, "internalEvents[-1]")
    return {
        "name": check.index([item.rangeNameIdx for item in items], "rangeNameIdx", names),
        "kind": check.numbers([item.rangeType for item in items], np.uint8, "rangeType"),
        "location": check.index([item.warpLocIdxs[0] for item in items], "warpLocIdxs[0]", locations),
        "end_location": check.index([item.warpLocIdxs[-1] for item in items], "warpLocIdxs[-1]", locations),
        "start_ns": check.stamps([item.startTs for item in items], "startTs"),
        "end_ns": check.stamps([item.endTs for item in items], "endTs"),
        "start_type": start_type,
        "end_type": end_type,
        "start_bits": start_bits,
        "end_bits": end_bits,
        "start_event": check.numbers([one.eventId for one in starts], np.int32, "internalEvents[0].eventId"),
        "end_event": check.numbers([one.eventId for one in ends], np.int32, "internalEvents[-1].eventId"),
        "events": np.array([len(item.internalEvents) for item in items], np.int32),
        "color": check.numbers([item.rangeColor for item in items], np.uint32, "rangeColor"),
    }


def marker_columns(items: Sequence[Marker], place: str, first: int, names: int, locations: int) -> dict[str, Any]:
    """Return the columns of a chunk of markers; arguments and errors as for ranges."""
    check = _Check(place, first)
    codes, bits = check.payload(items, "")
    return {
        "name": check.index([item.markerNameIdx for item in items], "markerNameIdx", names),
        "location": check.index([item.locIdx for item in items], "locIdx", locations),
        "ns": check.stamps([item.timestamp for item in items], "timestamp"),
        "type": codes,
        "bits": bits,
        "color": check.numbers([item.color for item in items], np.uint32, "color"),
    }


def lifetime_columns(items: Sequence[Lifetime], place: str, first: int, locations: int) -> dict[str, Any]:
    """Return the columns of a chunk of lifetimes."""
    check = _Check(place, first)
    return {
        "location": check.index([item.locIdx for item in items], "locIdx", locations),
        "start_ns": check.stamps([item.startTs for item in items], "startTs"),
        "end_ns": check.stamps([item.endTs for item in items], "endTs"),
    }


def location_columns(items: Sequence[Location], place: str) -> dict[str, Any]:
    """Return the columns of the table of locations."""
    check = _Check(place, 0)

    def triples(key: str) -> Any:
        axes = [check.numbers([getattr(item, key)[axis] for item in items], np.int32, key) for axis in range(3)]
        return np.stack(axes, axis=1)

    def singles(key: str) -> Any:
        return check.numbers([getattr(item, key) for item in items], np.int32, key)

    return {
        "cta": triples("ctaId"),
        "warp": singles("warpId"),
        "sm": singles("smId"),
        "tpc": singles("tpcId"),
        "gpc": singles("gpcId"),
        "cluster": triples("clusterId"),
    }


class _Check:
    def __init__(self, place: str, first: int) -> None:
        self.place, self.first = place, first

    def numbers(self, values: list[int], kind: Any, key: str) -> Any:
        """Return values as an array of an integer type that they all fit."""
        try:
            return np.array(values, dtype=kind)
        except OverflowError:
            bounds = np.iinfo(kind)
            row = next(row for row, value in enumerate(values) if not bounds.min <= value <= bounds.max)
            raise self._wrong(row, key, f"{values[row]} is out of range ({bounds.min} to {bounds.max})") from None

    def stamps(self, values: list[int], key: str) -> Any:
        """Return stamps, which are never negative."""
        found = self.numbers(values, np.int64, key)
        if len(found) and found.min() < 0:
            row = int(np.argmax(found < 0))
            raise self._wrong(row, key, f"{found[row]} is out of range (0 to {_HIGHEST})")
        return found

    def index(self, values: list[int], key: str, rows: int) -> Any:
        """Return indices into a table of that many rows."""
        found = self.numbers(values, np.int64, key)
        wrong = (found < 0) | (found >= rows)
        if wrong.any():
            row = int(np.argmax(wrong))
            table = "stringTable" if "Name" in key else "locationTable"
            raise self._wrong(row, key, f"{found[row]} is not in the {table}, which has {rows} entries")
        return found.astype(np.int32)

    def indices(self, values: list[int], key: str, rows: int) -> None:
        for value in values:
            if not 0 <= value < rows:
                raise TraceError(
                    f"{self.place}{key}: {value} is not in the locationTable, which has {rows} entries", remedy=ANOTHER
                )

    def payload(self, items: Sequence[Any], key: str) -> tuple[Any, Any]:
        prefix = f"{key}." if key else ""
        codes = self.numbers([item.payloadType for item in items], np.uint8, f"{prefix}payloadType")
        # Older files write a zero where there is no payload.
        values = [item.payloadVal if item.payloadType else 0 for item in items]
        if NO_VALUE in values:
            raise self._wrong(values.index(NO_VALUE), key, "the key payloadVal is missing")
        return codes, self.numbers(values, np.uint64, f"{prefix}payloadVal")

    def _wrong(self, row: int, key: str, what: str) -> TraceError:
        place = f"{self.place}[{self.first + row}]" + (f".{key}" if key else "")
        return TraceError(f"{place}: {what}", remedy=ANOTHER)
