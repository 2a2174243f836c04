# SPDX-License-Identifier: Apache-2.0
"""The event table of `iket-rewrite --events`, as far as readers of traces need it: where each event stands."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import abi
from ..errors import TraceError

#: One or several event tables: files, or what `json.load` gives for them.
Tables = str | os.PathLike[str] | Mapping[str, Any] | Sequence["str | os.PathLike[str] | Mapping[str, Any]"]
#: The version of the table's layout that is read here.
SCHEMA = 1
_ENDS = ("range_pop", "range_end")


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in a source file, as the event table says it.

    Attributes:
        file: path as the rewriter was told it.
        line, column: 1-based.
        kernel: the enclosing kernel's name in the source, or None.
    """

    file: str
    line: int
    column: int
    kernel: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class EventInfo:
    """What an event table says about one event.

    Attributes:
        kind: "mark", "range" or "token_range".
        name: its name.
        payload: payload type that is captured, or None.
        declared: payload type that the source gives; not captured where `payload` is None.
        places: where it stands in the source; the starts of a range.
    """

    kind: str
    name: str
    payload: str | None
    declared: str | None
    places: tuple[SourcePlace, ...]


def load_events(tables: Tables | None) -> tuple[EventInfo, ...]:
    """Read event tables; events of several tables are put together.

    Raises:
        TraceError: one can not be read, or is no event table.
    """
    if tables is None:
        return ()
    if isinstance(tables, (str, os.PathLike, Mapping)):
        tables = [tables]
    found: list[EventInfo] = []
    for number, table in enumerate(tables):
        if isinstance(table, Mapping):
            found += _events(table, f"event table {number}")
        else:
            found += _events(_read(os.fspath(table)), os.fspath(table))
    return tuple(dict.fromkeys(found))


def _read(path: str) -> Any:
    try:
        with open(path, "rb") as file:
            return json.load(file)
    except OSError as error:
        raise TraceError(f"{path}: can not be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise TraceError(
            f"{path}: is no JSON: {error}", remedy="give the file that iket-rewrite --events wrote"
        ) from None


def _events(table: Any, path: str) -> list[EventInfo]:
    try:
        if table["schema"] != SCHEMA:
            raise TraceError(
                f"{path}: is an event table of layout {table['schema']!r}; {SCHEMA} can be read",
                remedy="write it with the same version of iket-rewrite",
            )
        sites = [_site(site) for site in table["sites"] if site["event"] is not None and site["kind"] not in _ENDS]
        return [_event(event, sites) for event in table["events"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"the key {error.args[0]} is missing" if isinstance(error, KeyError) else "a value is of another type"
        raise TraceError(
            f"{path}: is no event table: {why}",
            remedy="give the file that iket-rewrite --events wrote",
        ) from None


def _event(event: Any, sites: Iterable[tuple[int, SourcePlace]]) -> EventInfo:
    kind = abi.EventKind(event["kind"]).value
    places = tuple(place for number, place in sites if number == event["id"])
    return EventInfo(kind, str(event["name"]), event["payload"], event["declared"], places)


def _site(site: Any) -> tuple[int, SourcePlace]:
    kernel = site["kernel"]
    place = SourcePlace(str(site["file"]), int(site["line"]), int(site["column"]), str(kernel) if kernel else None)
    return int(site["event"]), place
