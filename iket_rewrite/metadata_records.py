# SPDX-License-Identifier: Apache-2.0
"""From metadata arrays back to what they declare: the reading side of `rewriting.metadata`.

It shares the layouts of `abi` with the writing side and nothing else, so that each checks the other.  Source text
and binaries give the arrays; this module does not care which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import abi
from .abi import EventKind, Method, PayloadType

EVENT_PREFIX = abi.EVENT_SYMBOL.split("{", 1)[0]
RANGE_PREFIX = abi.RANGE_SYMBOL.split("{", 1)[0]
_METHOD_BY_CODE = {method.facts.code: method for method in Method}


class RecordError(ValueError):
    """An array that can not be decoded; whoever knows its file turns it into an `IketError`."""


class NameEncodingError(RecordError):
    """A name that is not UTF-8."""


@dataclass(frozen=True, slots=True)
class Header:
    """The module's header, word by word."""

    size: int
    major: int
    minor: int
    highest_id: int
    longest_name: int
    event_size: int
    magic: int
    features: int


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One declared event."""

    symbol: str
    id: int
    method: Method
    payload: PayloadType | None
    kind: EventKind
    range_id: int
    name: str


@dataclass(frozen=True, slots=True)
class RangeRecord:
    """One declared range; `color` is None where the viewer chooses."""

    symbol: str
    range_id: int
    color: int | None
    type: int
    pairing: int
    name: str


@dataclass(frozen=True, slots=True)
class Module:
    """Everything that one module declares."""

    header: Header
    method: Method
    events: tuple[EventRecord, ...]
    ranges: tuple[RangeRecord, ...]


def decode_module(arrays: Mapping[str, bytes]) -> Module:
    """Decode a module's arrays.

    Args:
        arrays: bytes by symbol.

    Raises:
        RecordError: the header is missing, or an array can not be decoded.
    """
    if abi.META_SYMBOL not in arrays:
        raise RecordError(f"there is no {abi.META_SYMBOL}")
    header = decode_header(arrays[abi.META_SYMBOL])
    events = tuple(
        decode_event(symbol, data, arrays) for symbol, data in arrays.items() if symbol.startswith(EVENT_PREFIX)
    )
    ranges = tuple(
        decode_range(symbol, data, arrays) for symbol, data in arrays.items() if symbol.startswith(RANGE_PREFIX)
    )
    methods = {event.method for event in events}
    if len(methods) > 1:
        raise RecordError("its events are of two methods")
    return Module(header, methods.pop() if methods else Method.NATIVE, events, ranges)


def decode_header(data: bytes) -> Header:
    """Decode the module's header.

    Raises:
        RecordError: it has another size or another magic number.
    """
    if len(data) != abi.META.size:
        raise RecordError(f"{abi.META_SYMBOL} has {len(data)} bytes, not {abi.META.size}")
    size, major, minor, highest, longest, event_size, magic, _, features, *_ = abi.META.unpack(data)
    if magic != abi.META_MAGIC:
        raise RecordError(f"{abi.META_SYMBOL} has the magic number {magic:#010x}, not {abi.META_MAGIC:#010x}")
    return Header(size, major, minor, highest, longest, event_size, magic, features)


def decode_event(symbol: str, data: bytes, arrays: Mapping[str, bytes]) -> EventRecord:
    """Decode one event declaration; `arrays` holds the texts of long names.

    Raises:
        RecordError: a word has a value that the contract does not know.
    """
    if len(data) != abi.EVENT.size:
        raise RecordError(f"{symbol} has {len(data)} bytes, not {abi.EVENT.size}")
    _, number, code, payload, position, range_id, length, field = abi.EVENT.unpack(data)
    if code not in _METHOD_BY_CODE:
        raise RecordError(f"{symbol} has the unknown method {code}")
    if position not in abi.KIND_BY_POSITION:
        raise RecordError(f"{symbol} has the unknown position {position}")
    if payload != abi.PAYLOAD_NONE and payload not in abi.PAYLOAD_BY_CODE:
        raise RecordError(f"{symbol} has the unknown payload type {payload}")
    name = _name(symbol, length, field, arrays, abi.EVENT_STRING_SYMBOL)
    return EventRecord(
        symbol,
        number,
        _METHOD_BY_CODE[code],
        abi.PAYLOAD_BY_CODE.get(payload),
        abi.KIND_BY_POSITION[position],
        range_id,
        name,
    )


def decode_range(symbol: str, data: bytes, arrays: Mapping[str, bytes]) -> RangeRecord:
    """Decode one range declaration; `arrays` holds the texts of long names.

    Raises:
        RecordError: it has another size, or a name that is not UTF-8.
    """
    if len(data) != abi.RANGE.size:
        raise RecordError(f"{symbol} has {len(data)} bytes, not {abi.RANGE.size}")
    _, _, range_id, color, kind, pairing, _, _, length, field, _ = abi.RANGE.unpack(data)
    name = _name(symbol, length, field, arrays, abi.RANGE_STRING_SYMBOL)
    return RangeRecord(symbol, range_id, None if color == abi.COLOR_AUTOMATIC else color, kind, pairing, name)


def _name(symbol: str, length: int, field: bytes, arrays: Mapping[str, bytes], strings: str) -> str:
    """Return the name: the field's text, or the long text that its key stands for."""
    text = field.rstrip(b"\0")
    if length > abi.NAME_FIELD:
        key = text.decode("ascii", "replace")
        full = arrays.get(strings.format(key=key))
        if full is None:
            raise RecordError(f"{symbol} has a long name, but its text is missing")
        text = full.rstrip(b"\0")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise NameEncodingError(f"{symbol} has a name that is not UTF-8") from None
