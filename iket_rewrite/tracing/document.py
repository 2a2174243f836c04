# SPDX-License-Identifier: Apache-2.0
"""One trace file: its text becomes chunks of columns, which `assembly` puts together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import TraceError
from . import columns, layout
from .inline import Inline
from .layout import RECORD_LISTS, Launch, Lifetime, Location, Marker, Range, Raw

#: Called with the share of the file that has been read, 0 to 1.
Progress = Callable[[float], None]
_KNOWN = ("launches", "graphLaunches", "stringTable", "locationTable", "meta")


@dataclass(slots=True)
class Document:
    """What one file holds.

    Attributes:
        path: the file.
        version: its layout's version, or None.
        names, locations: the tables that the columns' indices refer to; locations as columns.
        launches: each launch with the key of its graph's replay, or "".
        chunks: by table, (launch, columns) in the order of the file.
        counts: how many records each table has.
        extra: unknown keys: of the document under "", of a table by key and row.
    """

    path: str
    version: int | None = None
    names: list[str] = field(default_factory=list)
    locations: dict[str, Any] = field(default_factory=dict)
    launches: list[tuple[Launch, str]] = field(default_factory=list)
    chunks: dict[str, list[tuple[int, dict[str, Any]]]] = field(
        default_factory=lambda: {name: [] for name in RECORD_LISTS}
    )
    counts: dict[str, int] = field(default_factory=dict)
    extra: dict[str, dict[str, Any]] = field(default_factory=dict)


def read_document(path: str, data: bytes | bytearray, progress: Progress | None = None) -> Document:
    """Read a trace's JSON text.

    Raises:
        TraceError: it is damaged, or something is missing or wrong in it.
    """
    return _Reader(path, data, progress).read()


class _Reader:
    def __init__(self, path: str, data: bytes | bytearray, progress: Progress | None) -> None:
        self.result = Document(path)
        self.place = f"{path}: "
        self.progress, self.done, self.size = progress, 0, max(1, len(data))
        self.top = layout.decode(data, dict[str, Raw], path)
        if "launches" not in self.top:
            raise TraceError(
                f"{path}: is no trace: the key launches is missing",
                remedy="name a .trace.json file that run-iket --postprocess json or a capture in the process wrote",
            )
        names = self._table("stringTable", list[str])
        places = self._records("locationTable", Location) if "locationTable" in self.top else None
        self.inline = Inline(names, places)
        self.older = names is None or places is None
        self.counts = dict.fromkeys(RECORD_LISTS, 0)

    def read(self) -> Document:
        result = self.result
        result.extra[""] = {
            key: layout.decode(raw, object, self.place + key) for key, raw in self.top.items() if key not in _KNOWN
        }
        result.version = self._version()
        for place, launch, graph in self._launches():
            self._launch(place, launch, graph)
        result.names = self.inline.names
        result.counts = {**self.counts, "launches": len(result.launches), "locationTable": len(self.inline.locations)}
        result.locations = columns.location_columns(self.inline.locations, f"{self.place}locationTable")
        return result

    def _table(self, key: str, form: Any) -> Any:
        return layout.decode(self.top[key], form, self.place + key) if key in self.top else None

    def _version(self) -> int | None:
        meta = self._table("meta", dict[str, object]) or {}
        version = meta.pop("version", None)
        if meta:
            self.result.extra[""]["meta"] = meta
        return version if isinstance(version, int) else None

    def _launches(self) -> Iterable[tuple[str, dict[str, Any], str]]:
        place = f"{self.place}launches"
        for number, launch in enumerate(layout.decode(self.top["launches"], list[dict[str, Raw]], place)):
            yield f"{place}[{number}]", launch, ""
        place = f"{self.place}graphLaunches"
        for key, nodes in (self._table("graphLaunches", dict[str, list[dict[str, Raw]]]) or {}).items():
            for number, launch in enumerate(nodes):
                yield f"{place}[{key!r}][{number}]", launch, key

    def _launch(self, place: str, launch: dict[str, Any], graph: str) -> None:
        number = len(self.result.launches)
        head = {
            key: layout.decode(raw, object, f"{place}.{key}") for key, raw in launch.items() if key not in RECORD_LISTS
        }
        if self.older:
            # The older documentation shows launches without dimensions.
            head = dict.fromkeys((f"{what}Dim{axis}" for what in ("grid", "block") for axis in "XYZ"), 0) | head
        for key in [key for key in head if key not in Launch.__struct_fields__]:
            self._keep("launches", key, number, head.pop(key))
        self.result.launches.append((layout.convert(head, Launch, place), graph))
        for key, form, normalise, build in (
            ("ranges", Range, self.inline.range, columns.range_columns),
            ("markers", Marker, self.inline.marker, columns.marker_columns),
            ("warpLifetimes", Lifetime, self.inline.lifetime, columns.lifetime_columns),
        ):
            if key not in launch:
                raise TraceError(f"{place}: the key {key} is missing")
            self._list(f"{place}.{key}", key, launch.pop(key), form, normalise, build, number)

    def _list(self, place: str, key: str, raw: Any, form: Any, normalise: Any, build: Any, launch: int) -> None:
        raws = layout.decode(raw, list[Raw], place)
        base = self.counts[key]
        tables = self.inline
        share = len(memoryview(raw)) / max(1, len(raws))
        for first, items in layout.records(
            raws,
            form,
            place,
            normalise if self.older else None,
            lambda name, row, value: self._keep(key, name, base + row, value),
        ):
            sizes = (len(tables.locations),) if form is Lifetime else (len(tables.names), len(tables.locations))
            self.result.chunks[key].append((launch, build(items, place, first, *sizes)))
            self.counts[key] += len(items)
            self._advance(share * len(items))

    def _records(self, key: str, form: Any) -> list[Any]:
        place = self.place + key
        raws = layout.decode(self.top[key], list[Raw], place)
        chunks = layout.records(raws, form, place, None, lambda name, row, value: self._keep(key, name, row, value))
        return [item for _, items in chunks for item in items]

    def _keep(self, table: str, key: str, row: int, value: Any) -> None:
        self.result.extra.setdefault(table, {}).setdefault(key, {})[row] = value

    def _advance(self, size: float) -> None:
        self.done += int(size)
        if self.progress is not None:
            self.progress(min(1.0, self.done / self.size))
