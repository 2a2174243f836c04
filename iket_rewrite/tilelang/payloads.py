# SPDX-License-Identifier: Apache-2.0
"""Payloads of TileLang events: which types there are, how one is told from a value, and how a value gets it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .. import abi
from . import compat
from .faults import EventError, PayloadError

#: TileLang's names of the types, with ours.
TYPES = {
    "bool": "bool",
    **{f"{word}{bits}": f"{word[0]}{bits}" for word in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "handle": "pointer",
}
_ALIASES = {ours: theirs for theirs, ours in TYPES.items()} | {
    "int": "int32",
    "uint": "uint32",
    "float": "float32",
    "half": "float16",
    "double": "float64",
}

_WIDE = ("int64", "uint64")
_NARROW = ("float16", "bfloat16")


@dataclass(frozen=True)
class PayloadSpec:
    """A value that an event records.

    Attributes:
        expr: the value: a TileLang expression, or a Python number.
        dtype: its type by TileLang's name, for example "int32"; a pointer is "handle".
        iket_id: number of the type in IKET's metadata; it follows from `dtype`.
    """

    expr: Any
    dtype: str
    iket_id: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", _type_name(self.dtype))
        code = abi.PAYLOADS[self.type].code
        if self.iket_id not in (-1, code):
            raise EventError(f"the payload type {self.dtype} has the number {code} in IKET, not {self.iket_id}")
        object.__setattr__(self, "iket_id", code)

    @property
    def type(self) -> str:
        """The type's name in tokens and tables, for example "i32"."""
        return TYPES[self.dtype]

    def expression(self) -> Any:
        """Return the value as an expression of the declared type.

        Raises:
            PayloadError: it is no scalar, or can not be converted.
        """
        value = _plain(self.expr)
        if isinstance(value, bool | int | float):
            return self._constant(value)
        if not isinstance(value, compat.PrimExpr):
            raise PayloadError(
                f"a payload is one value, not {type(value).__name__}",
                remedy="index the buffer: payload(A[i])" if isinstance(value, compat.Buffer) else "",
            )
        found = str(value.dtype)
        if found == self.dtype:
            return value
        if "handle" in (found, self.dtype):
            raise PayloadError(
                f"a payload of type {found} can not be recorded as {self.dtype}",
                remedy="leave the type out, or name 'handle'" if found == "handle" else "use T.address_of(A[i])",
            )
        if found not in TYPES:
            raise PayloadError(
                f"a payload of type {found} can not be recorded as {self.dtype}",
                remedy="convert it: payload(T.cast(value, 'float32'))",
            )
        if found in _WIDE and self.dtype in _NARROW:
            # TileLang prints this conversion, and no compiler takes it: it has two ways to go.
            value = compat.cast(value, "float64")
        return compat.cast(value, self.dtype)

    def _constant(self, value: bool | int | float) -> Any:
        if self.dtype == "handle":
            raise PayloadError("a Python number is no pointer", remedy="use T.address_of(A[i]), or dtype='uint64'")
        kind = abi.PAYLOADS[self.type]
        if self.type[0] in "iu":
            if isinstance(value, float) and not math.isfinite(value):
                raise EventError(f"the payload {value} does not fit {self.dtype}")
            value = int(value)
            low, high = (-(1 << kind.bits - 1), 1 << kind.bits - 1) if self.type[0] == "i" else (0, 1 << kind.bits)
            if not low <= value < high:
                raise EventError(f"the payload {value} does not fit {self.dtype}")
        try:
            return compat.const(bool(value) if self.dtype == "bool" else value, self.dtype)
        except (ValueError, OverflowError) as error:
            raise EventError(f"the payload {value} does not fit {self.dtype}") from error


def payload(expr: Any, dtype: Any = None) -> PayloadSpec:
    """Describe a value for an event to record.

    Args:
        expr: a TileLang expression, or a Python number.
        dtype: its type: bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, or handle for a
            pointer; the value is converted.  None takes the expression's own type; for a Python bool uint32, for an
            int the first of int32, int64 and uint64 that holds it, for a float float32.

    Raises:
        EventError: there is no such type, or the value does not fit it.
        PayloadError: the type can not be told.
    """
    return PayloadSpec(expr, str(dtype) if dtype is not None else _infer(expr))


def as_spec(value: Any) -> PayloadSpec | None:
    """Return what the argument `payload=` of an event stands for."""
    return value if value is None or isinstance(value, PayloadSpec) else payload(value)


def _type_name(dtype: str) -> str:
    name = str(dtype).lower()
    name = _ALIASES.get(name, name)
    if name not in TYPES:
        raise EventError(f"there is no payload type {dtype!r}", remedy=f"choose one of {', '.join(TYPES)}")
    return name


def _infer(expr: Any) -> str:
    dtype = getattr(expr, "dtype", None)
    if dtype is not None:
        return str(dtype)
    if isinstance(expr, bool):
        return "uint32"
    if isinstance(expr, int):
        for name, low, high in (("int32", -(1 << 31), 1 << 31), ("int64", -(1 << 63), 1 << 63), ("uint64", 0, 1 << 64)):
            if low <= expr < high:
                return name
        raise EventError(f"the payload {expr} does not fit 64 bits")
    if isinstance(expr, float):
        return "float32"
    raise PayloadError(
        f"the payload's type can not be told from {type(expr).__name__}",
        remedy="name it: payload(value, dtype='int32')",
    )


def _plain(value: Any) -> Any:
    """Return a number of NumPy as one of Python; anything else as it is."""
    item = getattr(value, "item", None)
    return item() if callable(item) and not isinstance(value, compat.PrimExpr) else value
