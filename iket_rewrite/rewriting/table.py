# SPDX-License-Identifier: Apache-2.0
"""The event table: a plan as JSON values, for people and for readers of traces."""

from __future__ import annotations

from typing import Any

from .event import Event
from .plan import Plan, Site

#: Version of the table's layout; it changes when a key changes its meaning or goes.
SCHEMA = 1


def event_table(plan: Plan) -> dict[str, Any]:
    """Return the table of a plan's events and sites.

    Keys: `schema`, `method`, `plan` (the digest), `events` (id, kind, name, payload, declared, range_id, color) and
    `sites` (event id, kind, name, file, line, column, kernel, payload expression).  A site that a code generator
    printed gives its author's position; `generated` is then the place in the rewritten source.
    """
    return {
        "schema": SCHEMA,
        "method": plan.method.value,
        "plan": plan.digest,
        "events": [_event(event) for event in plan.events],
        "sites": [_site(site) for site in plan.sites],
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "kind": event.kind.value,
        "name": event.name,
        "payload": event.payload.name if event.payload else None,
        "declared": event.declared.name if event.declared else None,
        "range_id": event.range_id or None,
        "color": None if event.color is None else f"#{event.color:06x}",
    }


def _site(site: Site) -> dict[str, Any]:
    place = {"file": site.place.path, "line": site.place.line, "column": site.place.column}
    where: dict[str, Any] = place
    if site.position is not None:
        where = {
            "file": site.position.file,
            "line": site.position.line,
            "column": site.position.column,
            "generated": place,
        }
    return {
        "event": site.event.id if site.event else None,
        "kind": site.kind.value,
        "name": site.event.name if site.event else None,
        "kernel": site.kernel,
        "expression": site.expression,
        "form": site.form.value if site.form else None,
        **where,
    }
