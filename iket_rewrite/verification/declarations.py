# SPDX-License-Identifier: Apache-2.0
"""Judge what a module declares: its header, its events, its ranges."""

from __future__ import annotations

from typing import Any

from .. import abi
from .. import metadata_records as records_of
from ..abi import EventKind, Method
from .cubin import Cubin
from .report import EventInfo, Find

_KNOWN_MINORS = (abi.META_MINOR_INLINE_NAMES, abi.META_MINOR_LONG_NAMES)


class Declarations:
    """What a module declares, judged when it is made.

    Attributes:
        present: there are declarations to go by.
        events: the declared events by id.
        damaged: ids whose declarations are there and can not be decoded.
        method: the module's method; NativeDump where nothing tells.

    Args:
        cubin: the module.
        find: takes the findings.
    """

    def __init__(self, cubin: Cubin, find: Find) -> None:
        self.cubin, self.find = cubin, find
        self.present = abi.META_SYMBOL in cubin.arrays
        self.with_triggers = any(function.triggers for function in cubin.functions)
        self.events: dict[int, records_of.EventRecord] = {}
        self.damaged: set[int] = set()
        self.method = Method.NATIVE
        self._check()

    def infos(self, image: str) -> list[EventInfo]:
        """Return the events for a report, by id."""
        return [
            EventInfo(
                image,
                event.id,
                event.kind.value,
                event.name,
                event.payload.name if event.payload else None,
                event.method.value,
            )
            for event in sorted(self.events.values(), key=lambda event: event.id)
        ]

    def _check(self) -> None:
        if not self.present:
            if self.with_triggers:
                self.find("no-metadata")
            return
        self._check_copies()
        if not self.present:
            return
        events = self._decode(records_of.EVENT_PREFIX, records_of.decode_event)
        ranges = self._decode(records_of.RANGE_PREFIX, records_of.decode_range)
        self._check_header(len(events) + len(ranges), max((event.id for event in events), default=0))
        self._check_events(events)
        self._check_ranges(events, ranges)
        if not self.with_triggers and not self.cubin.partial and events and self.cubin.arch * 10 >= abi.FIRST_CUDA_ARCH:
            self.find("no-trigger")
        if self.with_triggers and self.method is Method.EXTENDED and self.cubin.unoptimised:
            self.find("unoptimised-extended")

    def _decode(self, prefix: str, decode: Any) -> list[Any]:
        decoded = []
        for symbol, data in self.cubin.arrays.items():
            if not symbol.startswith(prefix):
                continue
            try:
                decoded.append(decode(symbol, data, self.cubin.arrays))
            except records_of.RecordError as error:
                badly_named = isinstance(error, records_of.NameEncodingError)
                self.find("name-not-utf8" if badly_named else "bad-metadata", str(error))
                if prefix == records_of.EVENT_PREFIX:
                    self.damaged.add(int.from_bytes(data[4:8], "little"))
        return decoded

    def _check_copies(self) -> None:
        """Two sets of metadata in one image: the same twice is what linking two units of one plan gives."""
        plans = self.cubin.plans
        differ = [symbol for symbol, copies in self.cubin.copies.items() if len(set(copies)) > 1]
        if len(plans) > 1:
            self.find("two-plans", f"{len(plans)} plans in one image: {', '.join(plans)}")
        elif differ:
            self.find("two-plans", f"two sets of metadata in one image: {differ[0]} differs between them")
        # What one of them declares contradicts what the other one does: nothing else can be said.
        self.present = self.present and len(plans) <= 1 and not differ

    def _check_header(self, declarations: int, highest: int) -> None:
        try:
            header = records_of.decode_header(self.cubin.arrays[abi.META_SYMBOL])
        except records_of.RecordError as error:
            self.find("bad-metadata", str(error))
            return
        if header.size != abi.META.size or header.event_size != abi.EVENT.size:
            self.find("bad-metadata", f"the header gives {header.size} and {header.event_size} as sizes of records")
        if (header.minor, header.features) == (declarations, highest) and header.features != abi.META_FEATURES:
            self.find("tilelang-header")
        elif header.major != abi.META_MAJOR or header.minor not in _KNOWN_MINORS:
            if header.minor == declarations:
                self.find("tilelang-header")
            else:
                self.find("unknown-version", f"the metadata is of version {header.major}.{header.minor}")

    def _check_events(self, events: list[records_of.EventRecord]) -> None:
        methods = {event.method for event in events}
        if len(methods) > 1:
            self.find("mixed-methods")
        self.method = Method.EXTENDED if methods == {Method.EXTENDED} else Method.NATIVE
        for event in events:
            facts = event.method.facts
            # One other port goes up to the trigger's own limit; the id that pops is nobody's in either method.
            if not facts.first_id <= event.id <= facts.highest_id or event.id == abi.ID_POP:
                self.find(
                    "id-range",
                    f"the event {event.name!r} has the id {event.id}, outside "
                    f"{facts.first_id} to {facts.last_id} of {facts.title}",
                )
            other = self.events.setdefault(event.id, event)
            if other is not event and (other.name, other.kind) != (event.name, event.kind):
                self.find("bad-metadata", f"{other.name!r} and {event.name!r} have one id, {event.id}")

    def _check_ranges(self, events: list[records_of.EventRecord], ranges: list[records_of.RangeRecord]) -> None:
        by_id: dict[int, str] = {}
        for one in ranges:
            if by_id.setdefault(one.range_id, one.name) != one.name:
                self.find(
                    "range-collision",
                    f"the ranges {by_id[one.range_id]!r} and {one.name!r} have one range id, {one.range_id:#010x}",
                )
        for event in events:
            if event.kind is not EventKind.MARK and event.range_id not in by_id:
                self.find("bad-metadata", f"the range {event.name!r} has no declaration of its own")
            elif event.kind is not EventKind.MARK and by_id[event.range_id] != event.name:
                self.find(
                    "range-collision",
                    f"the ranges {by_id[event.range_id]!r} and {event.name!r} have one range "
                    f"id, {event.range_id:#010x}",
                )
