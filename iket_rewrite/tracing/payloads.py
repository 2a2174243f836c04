# SPDX-License-Identifier: Apache-2.0
"""Payloads: from a type code and raw bits to a value.

The runtime writes every payload as an unsigned integer of the stored bits: -8 in an i8 reads 248.  The types, their
codes and widths are `abi`'s.  Unknown codes are kept as hexadecimal text, never guessed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import abi

#: A decoded payload: an integer or a float of exactly the recorded value; text for pointers and unknown types.
Value = int | float | str | None


def type_name(code: int) -> str | None:
    """Return the name of a payload type, None for "no payload"."""
    if code == abi.PAYLOAD_NONE:
        return None
    known = abi.PAYLOAD_BY_CODE.get(code)
    return known.name if known else f"type {code}"


def decode(code: int, bits: int) -> Value:
    """Return the value of one payload."""
    if code == abi.PAYLOAD_NONE:
        return None
    known = abi.PAYLOAD_BY_CODE.get(code)
    if known is None:
        return f"{bits:#x}"
    return _DECODERS[known.name](bits & ((1 << known.bits) - 1), known.bits)


def text(code: int, bits: int) -> str:
    """Return a payload as people read it: the shortest digits that give the same bits back; "" where there is none."""
    value = decode(code, bits)
    if value is None:
        return ""
    if isinstance(value, float):
        return _shortest(abi.PAYLOAD_BY_CODE[code].name, value)
    return str(value)


def decode_column(code: int, bits: NDArray[np.uint64]) -> NDArray[Any]:
    """Return payloads of one type as a typed array; bf16 as float32, pointers and unknown types as uint64."""
    known = abi.PAYLOAD_BY_CODE.get(code)
    if known is None or known.name == "pointer":
        return bits
    if known.name == "bf16":
        return np.asarray((bits.astype(np.uint32) << np.uint32(16)).view(np.float32))
    unsigned = bits.astype(f"u{known.bits // 8}")
    # The first letter of a name is numpy's too: i, u or f.
    kind = known.name[0]
    return np.asarray(unsigned.view(f"{kind}{known.bits // 8}"))


def decode_all(codes: NDArray[np.uint8], bits: NDArray[np.uint64]) -> NDArray[Any]:
    """Return payloads of any types as an array of objects; see `Value`."""
    values = np.empty(len(codes), dtype=object)
    for code in np.unique(codes):
        rows = np.nonzero(codes == code)[0]
        name = type_name(int(code))
        if name is not None:
            plain = name not in ("pointer",) and int(code) in abi.PAYLOAD_BY_CODE
            column = decode_column(int(code), bits[rows]).tolist()
            values[rows] = column if plain else [f"{value:#x}" for value in column]
    return values


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> (width - 1) else bits


def _unsigned(bits: int, width: int) -> int:
    return bits


def _bf16(bits: int, width: int) -> float:
    # A bf16 is the upper half of an f32.
    return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])


def _floating(layout: str) -> Callable[[int, int], float]:
    def decode_bits(bits: int, width: int) -> float:
        return float(struct.unpack(layout, bits.to_bytes(width // 8, "little"))[0])

    return decode_bits


_DECODERS: dict[str, Callable[[int, int], Value]] = {
    **dict.fromkeys(("i8", "i16", "i32", "i64"), _signed),
    **dict.fromkeys(("u8", "u16", "u32", "u64"), _unsigned),
    "f16": _floating("<e"),
    "bf16": _bf16,
    "f32": _floating("<f"),
    "f64": _floating("<d"),
    "pointer": lambda bits, width: f"{bits:#x}",
}


def _shortest(name: str, value: float) -> str:
    if name == "f64":
        return repr(value)
    if name == "f16":
        return str(np.float16(value))
    if name == "f32":
        return str(np.float32(value))
    for digits in range(1, 9):
        written = f"{value:.{digits}g}"
        # Half of the distance between two bf16 of this size: 8 bits of mantissa.
        if abs(float(written) - value) <= abs(value) * 2.0**-10:
            return written
    return repr(value)
