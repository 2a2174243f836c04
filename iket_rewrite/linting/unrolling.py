# SPDX-License-Identifier: Apache-2.0
"""How often `#pragma unroll` repeats the body of a loop, where constants tell."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from ..rewriting.tokens import skip_blank, without_comments
from .constants import Constants
from .masking import Masked
from .parsing import Node

_UNROLL = re.compile(r"\s*(?:unroll|nv_unroll|GCC\s+unroll)\b\s*\(?([^()]*)\)?")
_BOUND = re.compile(r"(\w+)\s*(<=|>=|!=|<|>)\s*(.+)\Z", re.DOTALL)
_STEP = re.compile(r"(\w+)\s*(\+|-|\*|/|<<|>>)=\s*(.+)\Z", re.DOTALL)
_COUNT = re.compile(r"(?:(\w+)\s*(\+\+|--)|(\+\+|--)\s*(\w+))\Z")
_ASSIGNED = re.compile(r"(\w+)\s*=\s*(\w+)\s*(\+|-|\*|/|<<|>>)\s*(.+)\Z", re.DOTALL)
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}
_COMPARED = re.compile(r"([^<>=!&|]+)(==|!=|<=|>=|<|>)([^<>=!&|]+)\Z")
_HOLDS: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
}
_STEPS: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
#: Turns are counted one by one; no compiler unrolls so many.
_MOST_TURNS, _LARGEST, _WIDEST = 1 << 16, 1 << 40, 32
#: For so many turns a condition is asked.
_MOST_ASKED = 1 << 10


class Unrolling:
    """The loops with `#pragma unroll` in one text.

    Args:
        text: the masked text.
        original: the text itself.
        masked: what masking told.
    """

    def __init__(self, text: str, original: str, masked: Masked) -> None:
        self.original = original
        self.constants = Constants(text, masked.directives)
        self.pragmas: dict[int, str] = {}
        self.told: dict[int, tuple[str, list[int]] | None] = {}
        pragmas = [(one.end, one.rest) for one in masked.directives if one.word == "pragma"]
        for end, pragma in [*pragmas, *masked.pragmas.items()]:
            found = _UNROLL.match(without_comments(pragma))
            if found is not None:
                self.pragmas[skip_blank(text, end)] = found.group(1).strip()

    def value(self, text: str) -> int | None:
        """Return the value of a constant expression of integers, or None."""
        return self.constants.value(text)

    def copies(self, loop: Node) -> int:
        """Return how often the body is repeated; 1 where that is not known."""
        asked = self.pragmas.get(loop.start_byte)
        if asked is None or loop.type != "for_statement":
            return 1
        limit, told = self.constants.value(asked, loop) if asked else None, self._values(loop)
        counts = [count for count in (limit, len(told[1]) if told is not None else None) if count is not None]
        if not counts or (asked and limit is None):
            return 1
        return max(1, min(counts))

    def share(self, loop: Node, key: str, truth: bool) -> Fraction:
        """Return the share of a loop's turns in which a condition holds; 1 where its variable alone does not tell."""
        told = self._values(loop) if loop.start_byte in self.pragmas else None
        if told is None or not 0 < len(told[1]) <= _MOST_ASKED or "||" in key or ("&&" in key and not truth):
            return Fraction(1)
        variable, values = told
        held = values
        for part in key.split("&&"):
            asked = [self._holds(part, variable, value, loop) for value in values]
            if None not in asked and re.search(rf"\b{variable}\b", part):
                held = [value for value, holds in zip(values, asked, strict=True) if holds is truth and value in held]
        return Fraction(len(held), len(values))

    def _holds(self, text: str, variable: str, value: int, loop: Node) -> bool | None:
        text = re.sub(rf"\b{variable}\b", f"({value})", text)
        found = _COMPARED.match(text)
        sides = [self.constants.value(side, loop) for side in (found.group(1, 3) if found is not None else (text,))]
        known = [side for side in sides if side is not None]
        if len(known) < len(sides):
            return None
        return _HOLDS[found.group(2)](*known) if found is not None else known[0] != 0

    def _values(self, loop: Node) -> tuple[str, list[int]] | None:
        """Return the variable of a loop and its value at each turn, or None where constants do not tell."""
        if loop.start_byte not in self.told:
            self.told[loop.start_byte] = self._counted(loop)
        return self.told[loop.start_byte]

    def _counted(self, loop: Node) -> tuple[str, list[int]] | None:
        fields = [loop.child_by_field_name(name) for name in ("initializer", "condition", "update")]
        if any(field is None for field in fields):
            return None
        initializer, condition, update = (
            without_comments(self.original[field.start_byte : field.end_byte]).strip() for field in fields if field
        )
        bound = _BOUND.match(condition)
        for variable, compared, limit in _bounds(bound) if bound is not None else ():
            begin, end = self._first(initializer, variable, loop), self.constants.value(limit, loop)
            step = self._step(update, variable, loop)
            values = _turns(begin, compared, end, *step) if begin is not None and end is not None and step else None
            if values is not None:
                return variable, values
        return None

    def _first(self, initializer: str, variable: str, loop: Node) -> int | None:
        found = re.search(rf"\b{variable}\s*(?:=\s*([^,;{{}}]+)|\{{([^{{}}]*)\}}|\(([^()]*)\))", initializer)
        if found is None:
            return None
        return self.constants.value(found.group(1) or found.group(2) or found.group(3) or "0", loop)

    def _step(self, update: str, variable: str, loop: Node) -> tuple[str, int] | None:
        """Return what one turn does to the variable."""
        for part in map(str.strip, update.split(",")):
            if (count := _COUNT.match(part)) is not None and variable in count.group(1, 4):
                return ("+" if "++" in count.group(2, 3) else "-"), 1
            found, assigned = _STEP.match(part), _ASSIGNED.match(part)
            name, how, text = found.groups() if found is not None else ("", "", "")
            if assigned is not None and assigned.group(1) == assigned.group(2):
                name, how, text = assigned.group(1, 3, 4)
            amount = self.constants.value(text, loop) if name == variable else None
            if amount is not None:
                return how, amount
        return None


def _bounds(bound: re.Match[str]) -> list[tuple[str, str, str]]:
    left, compared, right = bound.groups()
    other = [(right, _MIRRORED[compared], left)] if re.fullmatch(r"[A-Za-z_]\w*", right) else []
    return [(left, compared, right), *other]


def _turns(value: int, compared: str, end: int, how: str, amount: int) -> list[int] | None:
    """Return the values that a loop counts through, or None where it goes on for ever."""
    holds, step, values = _HOLDS[compared], _STEPS[how], list[int]()
    if (how == "/" and not amount) or (how in ("<<", ">>") and not 0 <= amount < _WIDEST):
        return None
    while holds(value, end):
        values.append(value)
        value = step(value, amount)
        if value == values[-1] or len(values) > _MOST_TURNS or abs(value) > _LARGEST:
            return None
    return values
