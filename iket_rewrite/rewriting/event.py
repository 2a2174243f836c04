# SPDX-License-Identifier: Apache-2.0
"""One event of a module, and the events that an earlier plan has fixed."""

from __future__ import annotations

from dataclasses import dataclass

from .. import abi
from ..abi import EventKind, Method, PayloadType


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the module.

    Attributes:
        id: the number in its record and trigger.
        kind: mark, range, or token range.
        name: its name.
        payload: the type that its records carry, or None.
        declared: the type that its annotations declare, captured or not.
        range_id: FNV-1a of the name for a range, 0 for a mark.
        color: 0xRRGGBB, or None for the viewer's choice.
    """

    id: int
    kind: EventKind
    name: str
    payload: PayloadType | None
    declared: PayloadType | None
    range_id: int
    color: int | None

    @property
    def key(self) -> tuple[EventKind, str]:
        """Return what tells the event from every other."""
        return self.kind, self.name


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """What a plan file has fixed: its events keep their ids, used or not.

    Attributes:
        path: the file, for messages.
        method: the method.
        events: the events, by their ids.
        closed: no event may join them.
    """

    path: str
    method: Method
    events: tuple[Event, ...]
    closed: bool = False

    def next_id(self) -> int:
        """Return the first id behind those in use."""
        return max((event.id + 1 for event in self.events), default=self.method.facts.first_id)

    def has_room_for(self, more: int) -> bool:
        """Say whether so many events can join them in this method."""
        return self.next_id() + more <= self.method.facts.first_id + self.method.facts.capacity

    def of_method(self, method: Method) -> KeptPlan:
        """Return the same events in another method, under new ids, in the same order."""
        if method is self.method:
            return self
        first = method.facts.first_id
        events = tuple(
            Event(first + index, one.kind, one.name, one.payload, one.declared, one.range_id, one.color)
            for index, one in enumerate(self.events)
        )
        return KeptPlan(self.path, method, events, self.closed)


NOTHING_KEPT = KeptPlan("", abi.Method.NATIVE, ())
