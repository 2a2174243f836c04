# SPDX-License-Identifier: Apache-2.0
"""Read metadata arrays back out of instrumented source, whoever wrote it: us, TileLang or TIRx.

The arrays are C.  pycparser parses each one, once the CUDA attributes around it are gone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .. import abi
from ..abi import EventKind, PayloadType
from ..errors import MetadataError
from ..metadata_records import RecordError, decode_module
from ..source import Source

#: No array of the contract comes near this size.
_LARGEST = 1 << 20
_DECLARATION = re.compile(rf"\bunsigned\s+char\s+({abi.SYMBOL_PREFIX}\w+)\s*\[\s*(\d*)\s*\]\s*=\s*(\{{[^{{}}]*\}})\s*;")


@dataclass(frozen=True, slots=True)
class DeclaredEvent:
    """One event that metadata declares.

    Attributes:
        id: its number.
        kind: mark, range or token range.
        name: its name.
        payload: the type of its payload, or None; a bool reads as u8.
        color: 0xRRGGBB, or None.
    """

    id: int
    kind: EventKind
    name: str
    payload: PayloadType | None
    color: int | None


def read_arrays(source: Source) -> dict[str, bytes]:
    """Return the bytes of every metadata array in the text, by symbol.

    Raises:
        MetadataError: an array is no list of bytes.
    """
    arrays = {}
    for match in _DECLARATION.finditer(source.logical):
        symbol, size, body = match.groups()
        arrays[symbol] = _bytes(source, match.start(1), symbol, size, body)
    return arrays


def read_events(source: Source) -> tuple[abi.Method, tuple[DeclaredEvent, ...]]:
    """Return the method and the events that the arrays in the text declare, by id.

    Raises:
        MetadataError: there are none, or they can not be decoded.
    """
    try:
        module = decode_module(read_arrays(source))
    except RecordError as error:
        raise MetadataError(f"{source.path}: {error}", remedy="instrument the source again") from None
    colors = {record.range_id: record.color for record in module.ranges}
    events = tuple(
        DeclaredEvent(record.id, record.kind, record.name, record.payload, colors.get(record.range_id))
        for record in sorted(module.events, key=lambda record: record.id)
    )
    return module.method, events


def _bytes(source: Source, at: int, symbol: str, size: str, body: str) -> bytes:
    values = _values(body)
    if values is None or not all(0 <= value <= 0xFF for value in values):
        raise MetadataError(f"{source.place(at)}: the array {symbol} is no list of bytes")
    length = int(size[:8]) if size else len(values)
    if length > _LARGEST:
        raise MetadataError(f"{source.place(at)}: the array {symbol} is larger than any that declares an event")
    if len(values) > length:
        raise MetadataError(f"{source.place(at)}: the array {symbol} holds more than its {length} bytes")
    return bytes(values) + bytes(length - len(values))


def _values(body: str) -> list[int] | None:
    from pycparser import CParser
    from pycparser.c_parser import ParseError

    try:
        unit = CParser().parse(f"unsigned char array[] = {body};")
        return [_constant(item) for item in unit.ext[0].init.exprs or []]
    except (ParseError, ValueError, AttributeError):
        return None


def _constant(node: Any) -> int:
    text: str = node.value
    if text.startswith("'"):
        raise ValueError(text)
    digits = text.rstrip("uUlL")
    return int(digits, 8 if digits.isdigit() and digits.startswith("0") else 0)
