# SPDX-License-Identifier: Apache-2.0
"""The older layout: names and locations stand inside each record.  They are collected into tables of our own."""

from __future__ import annotations

from typing import Any

from .. import abi
from ..errors import TraceError
from .kinds import KIND_PUSH, KIND_TOKEN
from .layout import Location, convert


class Inline:
    """The tables of one document, growing while its records are read.

    Attributes:
        names: what indices of names mean.
        locations: what indices of locations mean.
    """

    def __init__(self, names: list[str] | None, locations: list[Location] | None) -> None:
        self.names = list(names or [])
        self.locations = list(locations or [])
        self._no_names, self._no_locations = names is None, locations is None
        self._name_rows: dict[str, int] = {name: row for row, name in enumerate(self.names)}
        self._location_rows: dict[Location, int] = {}

    def range(self, item: dict[str, Any], place: str) -> None:
        """Normalise a range."""
        self._name(item, "rangeName", place)
        if "warpLocs" in item:
            found = item.pop("warpLocs")
            if not isinstance(found, list):
                raise TraceError(f"{place}.warpLocs: expected array, got {type(found).__name__}")
            item["warpLocIdxs"] = [
                self._location(one, f"{place}.warpLocs[{number}]") for number, one in enumerate(found)
            ]
        elif self._no_locations:
            raise TraceError(f"{place}: the key warpLocs is missing, and the file has no locationTable")
        item.setdefault("internalEvents", [])
        if "rangeType" not in item:
            item["rangeType"] = _guessed_type(item["internalEvents"])

    def marker(self, item: dict[str, Any], place: str) -> None:
        """Normalise a marker."""
        self._name(item, "markerName", place)
        self._one_location(item, "location", place)

    def lifetime(self, item: dict[str, Any], place: str) -> None:
        """Normalise a warp's lifetime."""
        self._one_location(item, "warpLocation" if "warpLocation" in item else "location", place)

    def _name(self, item: dict[str, Any], key: str, place: str) -> None:
        if key in item:
            name = item.pop(key)
            if not isinstance(name, str):
                raise TraceError(f"{place}.{key}: expected str, got {type(name).__name__}")
            if name not in self._name_rows:
                self._name_rows[name] = len(self.names)
                self.names.append(name)
            item[f"{key}Idx"] = self._name_rows[name]
        elif self._no_names:
            raise TraceError(f"{place}: the key {key} is missing, and the file has no stringTable")

    def _one_location(self, item: dict[str, Any], key: str, place: str) -> None:
        if key in item:
            item["locIdx"] = self._location(item.pop(key), f"{place}.{key}")
        elif self._no_locations:
            raise TraceError(f"{place}: the key {key} is missing, and the file has no locationTable")

    def _location(self, value: Any, place: str) -> int:
        if isinstance(value, dict):
            value = {key: one for key, one in value.items() if key in Location.__struct_fields__}
        location = convert(value, Location, place)
        row = self._location_rows.get(location)
        if row is None:
            row = self._location_rows[location] = len(self.locations)
            self.locations.append(location)
        return row


def _guessed_type(events: Any) -> int:
    """Return the type of a range that does not say it: a pop at its end tells, and so does one id at both ends."""
    ids = [event.get("eventId") for event in events if isinstance(event, dict)] if isinstance(events, list) else []
    if not ids or ids[-1] == abi.ID_POP:
        return KIND_PUSH
    return KIND_TOKEN if len(ids) > 1 and ids[0] == ids[-1] else KIND_PUSH
