# SPDX-License-Identifier: Apache-2.0
"""What was annotated while kernels were built: for inspection, and to refuse contradictions where they are written.

It is not what events are made of: a token says all about its event, and the rewriter numbers them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from .. import abi, names
from ..abi import EventKind
from ..rewriting.annotation import SourcePosition
from .faults import EventError
from .payloads import PayloadSpec

#: How TileLang calls an event that has no payload.
NO_PAYLOAD = "NoPayload"
#: Kernels that were built before count as well, also those that an edited notebook cell has left.
_FORGET = "reset() forgets kernels that were built before"


@dataclass(slots=True)
class _Registered:
    """One event.

    Attributes:
        id: its number in this table, which counts as TileLang's does; a module numbers its events by itself.
        kind, name: which event it is.
        dtype: TileLang's name of its payload's type, or `NO_PAYLOAD`.
        code: number of that type in IKET's metadata.
        color: 0xRRGGBB, or None.
        places: where it was written, each once.
    """

    id: int
    kind: EventKind
    name: str
    dtype: str
    code: int
    color: int | None
    places: dict[SourcePosition, None] = field(default_factory=dict)

    @property
    def first(self) -> str:
        """Where it was written first, in words."""
        return next((f" at {place.file}:{place.line}" for place in self.places), " before")


class Registry:
    """Events by kind and name.  Threads may share one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: dict[tuple[EventKind, str], _Registered] = {}
        self._next = 1

    def clear(self) -> None:
        """Forget every event."""
        with self._lock:
            self._events.clear()
            self._next = 1

    def add(
        self, kind: EventKind, name: str, spec: PayloadSpec | None, color: int | None, place: SourcePosition | None
    ) -> None:
        """Note a use of an event.

        Raises:
            EventError: the same event was used with another payload type or colour, or the name as another kind of
                range.
        """
        dtype, code = (spec.dtype, spec.iket_id) if spec else (NO_PAYLOAD, abi.PAYLOAD_NONE)
        with self._lock:
            self._check_kind(kind, name)
            event = self._events.get((kind, name))
            if event is None:
                event = self._events[kind, name] = _Registered(self._take_id(), kind, name, dtype, code, color)
            elif event.dtype != dtype:
                raise EventError(
                    f"the event {name!r} has the payload type {dtype} here and {event.dtype}{event.first}",
                    remedy=f"use one type at every place, or another name; {_FORGET}",
                )
            elif color is not None and event.color not in (None, color):
                raise EventError(
                    f"{name!r} has the colour {color:#08x} here and {event.color:#08x}{event.first}",
                    remedy=f"give one colour, at one place or at all; {_FORGET}",
                )
            event.color = color if color is not None else event.color
            if place is not None:
                event.places[place] = None

    def _check_kind(self, kind: EventKind, name: str) -> None:
        other = {EventKind.RANGE: EventKind.TOKEN_RANGE, EventKind.TOKEN_RANGE: EventKind.RANGE}.get(kind)
        clash = self._events.get((other, name)) if other else None
        if clash is not None:
            raise EventError(
                f"{name!r} is used as a push/pop range and as a token range, the other way{clash.first}",
                remedy=f"give one of the two another name: they would share one range id; {_FORGET}",
            )

    def _take_id(self) -> int:
        number = self._next
        self._next += 2 if number + 1 == abi.ID_POP else 1
        return number

    def rows(self, *, runtime_payloads: bool) -> list[dict[str, Any]]:
        """Return the events in the order of their first use, one dictionary for each (see `event_table`)."""
        with self._lock:
            return [
                {
                    "name": event.name,
                    "event_id": event.id,
                    "kind": event.kind.value,
                    "range_id": 0 if event.kind is EventKind.MARK else names.fnv1a32(event.name.encode("utf-8")),
                    "payload_type": event.dtype,
                    "payload_iket_id": event.code,
                    "runtime_payload_iket_id": event.code if runtime_payloads else abi.PAYLOAD_NONE,
                    "color": event.color,
                    "places": [(place.file, place.line) for place in event.places],
                }
                for event in self._events.values()
            ]
