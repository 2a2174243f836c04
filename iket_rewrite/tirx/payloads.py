# SPDX-License-Identifier: Apache-2.0
"""Payloads of TIRx events: a TIRx expression or a Python number becomes an expression with a payload type."""

from __future__ import annotations

import math
import numbers
from typing import Any

from .compat import T
from .faults import TirxEventError

#: TIRx's names of the types, with ours.
TYPES = {
    "bool": "bool",
    **{f"{word}{bits}": f"{word[0]}{bits}" for word in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
}
_F32_MAX = (2 - 2**-23) * 2.0**127
_POINTERS = ("T.Ptr(", "handle")


def typed(value: Any) -> tuple[Any, str]:
    """Return a payload's expression and the name of its type.

    A Python bool is a bool, an int the first of i32, i64 and u64 that holds it, a float an f32.

    Raises:
        TirxEventError: it is no scalar, or of a type that events can not record.
    """
    if isinstance(value, bool):
        return T.bool(value), "bool"
    # Those of numpy are such numbers too.
    if isinstance(value, numbers.Integral):
        return _integer(int(value))
    if isinstance(value, numbers.Real):
        return _real(float(value))
    name = str(getattr(value, "ty", ""))
    if name.startswith(_POINTERS):
        return value, "pointer"
    if name not in TYPES:
        raise TirxEventError(
            f"a payload is one number or pointer, not {name or type(value).__name__}",
            remedy=f"index the tensor, or convert it with T.cast to one of {', '.join(TYPES)}",
        )
    return value, TYPES[name]


def named(dtype: str) -> str:
    """Return our name of a type of TIRx.

    Raises:
        TirxEventError: events can not record it.
    """
    if dtype not in TYPES:
        raise TirxEventError(f"there is no payload type {dtype!r}", remedy=f"choose one of {', '.join(TYPES)}")
    return TYPES[dtype]


def _integer(value: int) -> tuple[Any, str]:
    for make, name, low, high in (
        (T.int32, "i32", -(1 << 31), 1 << 31),
        (T.int64, "i64", -(1 << 63), 1 << 63),
        (T.uint64, "u64", 0, 1 << 64),
    ):
        if low <= value < high:
            return make(value), name
    raise TirxEventError(f"the payload {value} does not fit 64 bits")


def _real(value: float) -> tuple[Any, str]:
    if math.isfinite(value) and abs(value) > _F32_MAX:
        raise TirxEventError(f"the payload {value} does not fit a float32", remedy=f"give T.float64({value})")
    return T.float32(value), "f32"
