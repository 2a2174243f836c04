# SPDX-License-Identifier: Apache-2.0
"""Names of events: what a name may be, how it is hashed, how it is written into records and symbols."""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import abi

_NOT_IN_SYMBOL = re.compile(rb"[^0-9A-Za-z_]")


def fault_of(name: str) -> str | None:
    """Say what keeps `name` from being the name of an event, or return None where nothing does."""
    if not name:
        return "the name is empty"
    if "\0" in name:
        return "the name holds a NUL"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return "the name is not valid UTF-8"
    return None


def fnv1a32(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash of `data`; of a range's name it is the range id."""
    value = abi.FNV32_OFFSET
    for byte in data:
        value = ((value ^ byte) * abi.FNV32_PRIME) & 0xFFFFFFFF
    return value


def fnv1a64(data: bytes) -> int:
    """Return the 64-bit FNV-1a hash of `data`; it stands in for a name that is too long for its record."""
    value = abi.FNV64_OFFSET
    for byte in data:
        value = ((value ^ byte) * abi.FNV64_PRIME) & 0xFFFFFFFFFFFFFFFF
    return value


def fits_inline(name: str) -> bool:
    """Say whether a record without a NUL holds the whole name."""
    return len(name.encode("utf-8")) <= abi.NAME_FIELD


@dataclass(frozen=True, slots=True)
class EncodedName:
    """A name as a record holds it.

    Attributes:
        field: the bytes of the 32-byte field, before padding.
        length: the length word.
        key: the stand-in under which the full text is kept in a symbol of its own, or None where the field has it.
        text: the full text with its NUL, empty where `key` is None.
    """

    field: bytes
    length: int
    key: str | None = None
    text: bytes = b""


def encode(name: str, *, long_names: bool) -> EncodedName:
    """Encode a name for its record; `long_names` is the module's choice, not the name's."""
    data = name.encode("utf-8")
    if not long_names:
        return EncodedName(data, len(data))
    if len(data) + 1 <= abi.NAME_FIELD:
        return EncodedName(data, len(data) + 1)
    key = abi.LONG_NAME_KEY.format(hash=fnv1a64(data))
    return EncodedName(key.encode("ascii"), len(data) + 1, key, data + b"\0")


def symbol_word(name: str, *, long_names: bool) -> str:
    """Return what stands for the name in the symbol of its declaration; the id beside it makes it unique."""
    if long_names:
        return abi.LONG_NAME_SYMBOL_WORD
    return _NOT_IN_SYMBOL.sub(b"_", name.encode("utf-8")).decode("ascii")
