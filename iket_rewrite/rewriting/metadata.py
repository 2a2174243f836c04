# SPDX-License-Identifier: Apache-2.0
"""From the plan to the byte arrays that declare it to the runtime."""

from __future__ import annotations

from dataclasses import dataclass

from .. import abi, names
from ..abi import EventKind
from .event import Event
from .plan import Plan


@dataclass(frozen=True, slots=True)
class MetadataObject:
    """One array: the symbol under which the runtime looks for it, and its bytes."""

    symbol: str
    data: bytes


def metadata_objects(plan: Plan) -> tuple[MetadataObject, ...]:
    """Return every array that the module must hold, header first, then events and ranges by id, then long names."""
    long_names = plan.long_names
    objects = [MetadataObject(abi.META_SYMBOL, _header(plan))]
    strings: dict[str, bytes] = {}
    for event in plan.events:
        encoded = names.encode(event.name, long_names=long_names)
        word = names.symbol_word(event.name, long_names=long_names)
        objects.append(MetadataObject(abi.EVENT_SYMBOL.format(name=word, id=event.id), _event(plan, event, encoded)))
        if encoded.key is not None:
            strings[abi.EVENT_STRING_SYMBOL.format(key=encoded.key)] = encoded.text
    for event in plan.events:
        if event.kind is EventKind.MARK:
            continue
        encoded = names.encode(event.name, long_names=long_names)
        word = names.symbol_word(event.name, long_names=long_names)
        objects.append(MetadataObject(abi.RANGE_SYMBOL.format(name=word, id=event.range_id), _range(event, encoded)))
        if encoded.key is not None:
            strings[abi.RANGE_STRING_SYMBOL.format(key=encoded.key)] = encoded.text
    objects += [MetadataObject(symbol, text) for symbol, text in strings.items()]
    objects.append(MetadataObject(abi.PLAN_SYMBOL.format(digest=plan.digest), bytes.fromhex(plan.digest)))
    return tuple(objects)


def _header(plan: Plan) -> bytes:
    long_names = plan.long_names
    return abi.META.pack(
        abi.META.size,
        abi.META_MAJOR,
        abi.META_MINOR_LONG_NAMES if long_names else abi.META_MINOR_INLINE_NAMES,
        plan.method.facts.highest_id,
        abi.META_LONGEST_UNBOUNDED if long_names else abi.META_LONGEST_INLINE,
        abi.EVENT.size,
        abi.META_MAGIC,
        0,
        abi.META_FEATURES,
        0,
        0,
    )


def _event(plan: Plan, event: Event, name: names.EncodedName) -> bytes:
    return abi.EVENT.pack(
        abi.EVENT.size,
        event.id,
        plan.method.facts.code,
        event.payload.code if event.payload else abi.PAYLOAD_NONE,
        event.kind.facts.position,
        event.range_id,
        name.length,
        name.field,
    )


def _range(event: Event, name: names.EncodedName) -> bytes:
    facts = event.kind.facts
    return abi.RANGE.pack(
        abi.RANGE.size,
        abi.RANGE_SCOPE_WARP,
        event.range_id,
        abi.COLOR_AUTOMATIC if event.color is None else event.color,
        facts.range_type,
        facts.pairing,
        0,
        0,
        name.length,
        name.field,
        0,
    )
