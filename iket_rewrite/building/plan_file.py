# SPDX-License-Identifier: Apache-2.0
"""A plan in a file: events keep their ids from build to build, and what is built apart shares one plan.

The layout is that of the event table without its sites, so a table serves as a plan file too.
"""

from __future__ import annotations

import json
import os
from typing import Any

from .. import abi, names
from ..abi import EventKind, Method, PayloadType
from ..errors import OptionError
from ..rewriting.event import NOTHING_KEPT, Event, KeptPlan
from ..rewriting.plan import Plan
from ..rewriting.table import SCHEMA, event_table
from .reached import read


def load_plan(path: str, *, closed: bool = False) -> KeptPlan:
    """Read a plan file; one that is not there yet is an empty plan, unless it is closed.

    Args:
        path: the file.
        closed: no event may join the plan.

    Raises:
        OptionError: it can not be read, or is no plan.
    """
    if not closed and not os.path.exists(path):
        return KeptPlan(path, NOTHING_KEPT.method, ())
    data = read(path)[0]
    try:
        table = json.loads(data)
        if table["schema"] != SCHEMA:
            raise ValueError(f"its schema is {table['schema']!r}, and this release knows {SCHEMA}")
        method = Method(table["method"])
        events = sorted((_event(entry) for entry in table["events"]), key=lambda event: event.id)
        _check(method, events)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) and error.args else str(error)
        raise OptionError(
            f"{path}: is no plan file: {what}", remedy="remove it, and make it anew with iket-rewrite --plan"
        ) from None
    return KeptPlan(path, method, tuple(events), closed)


def plan_bytes(plan: Plan) -> bytes:
    """Return the content of a plan file."""
    table = event_table(plan)
    del table["sites"]
    return (json.dumps(table, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _event(entry: dict[str, Any]) -> Event:
    kind, name, number = EventKind(entry["kind"]), entry["name"], entry["id"]
    if type(number) is not int or not isinstance(name, str) or names.fault_of(name):
        raise ValueError(f"{entry!r} is no event")
    range_id = 0 if kind is EventKind.MARK else names.fnv1a32(name.encode("utf-8"))
    color = entry.get("color")
    return Event(
        number,
        kind,
        name,
        _payload(entry.get("payload")),
        _payload(entry.get("declared", entry.get("payload"))),
        range_id,
        None if color is None else int(color.removeprefix("#"), 16),
    )


def _payload(name: str | None) -> PayloadType | None:
    if name is None:
        return None
    if name not in abi.PAYLOADS:
        raise ValueError(f"{name!r} is no payload type")
    return abi.PAYLOADS[name]


def _check(method: Method, events: list[Event]) -> None:
    """See that the events can be one plan; a person may have edited the file."""
    ids: dict[int, Event] = {}
    keys: set[tuple[EventKind, str]] = set()
    ranges: dict[str, EventKind] = {}
    for event in events:
        if not method.facts.first_id <= event.id <= method.facts.last_id:
            raise ValueError(f"the id {event.id} of {event.name!r} is none of {method.facts.title}")
        if event.id in ids or event.key in keys:
            raise ValueError(f"{event.name!r} is there twice, or shares its id {event.id}")
        if event.kind is not EventKind.MARK and ranges.setdefault(event.name, event.kind) is not event.kind:
            raise ValueError(f"{event.name!r} is a push/pop range and a token range")
        if event.color is not None and not 0 <= event.color <= abi.COLOR_HIGHEST:
            raise ValueError(f"the colour of {event.name!r} is none")
        ids[event.id] = event
        keys.add(event.key)
