# SPDX-License-Identifier: Apache-2.0
"""Conditions in one spelling, and what a path knows of them.

A path that has taken `if (warp == 0)` takes it again, as long as nothing assigns to `warp`; a variable that was given
a constant decides `if (open)` and `switch (state)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..rewriting.tokens import without_comments

#: Blanks that part no words.
_BLANK = re.compile(r"(?<!\w)\s+|\s+(?!\w)")
_COMPARED = re.compile(r"([^<>=!&|]+)(==|!=|<=|>=|<|>)([^<>=!&|]+)\Z")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\Z")
_CONSTANT = re.compile(r"(?:[\w:]*::\w+|k[A-Z]\w*|[A-Z][A-Z0-9_]*)\Z")
_LESS_ONE, _MORE_ONE = re.compile(r"([A-Za-z_][\w.]*)-1\Z"), re.compile(r"([A-Za-z_][\w.]*)\+1\Z")
_VARIABLE = re.compile(r"[A-Za-z_][\w.]*\Z")
_MEMBER = re.compile(r"\.|->")
_WORD = re.compile(r"[A-Za-z_]\w*")
_TRUTHS = {"true": 1, "false": 0, "nullptr": 0, "NULL": 0}
#: By operator: its opposite.
_OPPOSITE = {"!=": "==", ">=": "<", "<=": ">"}

#: How the value of a variable begins that was counted up, or down, from the number behind.
UP, DOWN = ">", "<"

#: Operators that have a second spelling.
SPELLINGS = {"and": "&&", "or": "||", "not": "!", "not_eq": "!="}
_ALTERNATIVE = re.compile(r"\b(?:and|or|not|not_eq)\b")

Value = int | str
#: What a path knows: by variable its constant, by condition (behind a question mark) its outcome.
Facts = frozenset[tuple[str, Value]]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition without its negation.

    Attributes:
        key: its one spelling.
        left: what is compared, or the whole of it.
        operator: ==, < or >, or "" for a value that is true or false by itself.
        right: the constant that it is compared with, or None.
    """

    key: str
    left: str
    operator: str = ""
    right: Value | None = None

    @property
    def other(self) -> str:
        """Return the text that the left side is compared with."""
        return self.key[len(self.left) + len(self.operator) :]


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition with the outcome that an edge needs; of several constants, one of which is taken, `among`.

    Attributes:
        condition: what is asked.
        truth: the outcome.
        among: for the default of a switch: the constants that are not it.
    """

    condition: Condition
    truth: bool
    among: tuple[Value, ...] = ()


def constant(text: str, enumerators: frozenset[str]) -> Value | None:
    """Return the value of a constant's text; an enumerator is told by its last name."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    if _INTEGER.match(text):
        digits = text.rstrip("uUlL")
        # A leading zero makes it octal in C++, and an error in Python.
        return int(digits, 0) if not digits.lstrip("-").startswith("0") or "x" in digits.lower() else int(digits, 8)
    if text in _TRUTHS:
        return _TRUTHS[text]
    if _CONSTANT.match(text) or text in enumerators:
        return text.rpartition("::")[2]
    return None


def read(text: str, enumerators: frozenset[str]) -> tuple[Condition, bool]:
    """Return the condition that a text spells, and whether the text means it or its opposite."""
    text = _unwrapped(_BLANK.sub("", _ALTERNATIVE.sub(_spelled, without_comments(text)))).replace("this->", "")
    truth = True
    while text.startswith("!") and not text.startswith("!="):
        text, truth = _unwrapped(text[1:]), not truth
    found = _COMPARED.match(text)
    if found is None or not _is_closed(found.group(1)):
        return Condition(text, text), truth
    left, operator, right = map(_unwrapped, found.groups())
    if operator in _OPPOSITE:
        operator, truth = _OPPOSITE[operator], not truth
    value = constant(right, enumerators)
    if value is None and (value := constant(left, enumerators)) is not None:
        left, right = right, left
        operator = {"<": ">", ">": "<"}.get(operator, operator)
    if value is None and operator == ">":
        left, operator, right = right, "<", left
    if value is None and operator == "==" and right < left:
        left, right = right, left
    return Condition(f"{left}{operator}{right if value is None else value}", left, operator, value), truth


def _is_closed(text: str) -> bool:
    """Say whether no bracket is open behind the text, so that a comparison there is of the whole."""
    return all(text.count(opened) == text.count(closed) for opened, closed in ("()", "[]"))


def _spelled(match: re.Match[str]) -> str:
    return SPELLINGS[match.group()]


def _unwrapped(text: str) -> str:
    """Take off parentheses around the whole."""
    while text.startswith("(") and text.endswith(")"):
        depth = 0
        for index, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if not depth and index < len(text) - 1:
                return text
        text = text[1:-1].strip()
    return text


_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    "==": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    ">": lambda left, right: left > right,
}


def outcome(condition: Condition, facts: Mapping[str, Value]) -> bool | None:
    """Return the outcome of a condition on a path, or None where the path does not know."""
    literal = constant(condition.left, frozenset()) if not condition.operator else None
    if isinstance(literal, int):
        return bool(literal)
    told = facts.get(f"?{condition.key}")
    if told is not None:
        return bool(told)
    value = facts.get(condition.left)
    if value is None:
        return None
    if not condition.operator and isinstance(value, int):
        return bool(value)
    if isinstance(value, str) and value[:1] in (UP, DOWN):
        return _beyond(condition, value[0], int(value[1:]))
    if condition.right is None:
        other = seen_from(condition, value)
        return outcome(other, facts) if other is not None else None
    if condition.operator == "==" and isinstance(value, str) == isinstance(condition.right, str):
        return value == condition.right
    if isinstance(value, int) and isinstance(condition.right, int):
        return _COMPARE[condition.operator](value, condition.right)
    return None


def last_turn(condition: Condition) -> tuple[str, str] | None:
    """Return the variable and the end of what `i==n-1` asks, or None."""
    if condition.operator != "==" or condition.right is not None:
        return None
    for side, other in ((condition.left, condition.other), (condition.other, condition.left)):
        if (found := _LESS_ONE.match(other)) is not None and _VARIABLE.match(side):
            return side, found.group(1)
        if (found := _MORE_ONE.match(side)) is not None and _VARIABLE.match(other):
            return found.group(1), other
    return None


def seen_from(condition: Condition, value: Value) -> Condition | None:
    """Return what `i<n` asks of n where the value of i is known."""
    right = condition.other
    mirrored = {"==": "==", "<": ">", ">": "<"}.get(condition.operator)
    if mirrored is None or not isinstance(value, int):
        return None
    return Condition(f"{right}{mirrored}{value}", right, mirrored, value)


def _beyond(condition: Condition, direction: str, bound: int) -> bool | None:
    """Return the outcome for a value that is greater than a bound, or less than it."""
    right = condition.right
    if not isinstance(right, int):
        # The value is no 0 where the bound keeps it from there.
        return True if not condition.operator and (bound >= 0 if direction == UP else bound <= 0) else None
    if condition.operator == "==":
        return False if (right <= bound if direction == UP else right >= bound) else None
    if condition.operator == ("<" if direction == UP else ">"):
        return False if (right <= bound + 1 if direction == UP else right >= bound - 1) else None
    return True if (right <= bound if direction == UP else right >= bound) else None


def moved(facts: Facts, name: str, direction: str) -> Facts:
    """Return what a path knows once a variable has been counted up or down."""
    before = dict(facts).get(name)
    kept = forget(facts, name)
    if isinstance(before, int):
        return kept | {(name, f"{direction}{before}")}
    return kept | {(name, before)} if isinstance(before, str) and before[:1] == direction else kept


def turned(before: Facts, facts: Facts, turns: Iterable[tuple[str, str]]) -> Facts:
    """Return what a path knows of a further turn, once the variable of a loop has been counted up by one."""
    known = dict(before)
    for last, further in turns:
        told = known.get(f"?{last}")
        if told or (told is not None and known.get(f"?{further}")):
            facts |= {(f"?{further}", 0 if told else 1)}
    return facts


def taken(guard: Guard, facts: Facts, tracked: frozenset[str]) -> Facts | None:
    """Return what a path knows once it has taken the edge of a guard, or None where it can not take it."""
    known = dict(facts)
    if guard.among:
        value = known.get(guard.condition.left)
        comparable = value is not None and any(type(one) is type(value) for one in guard.among)
        if comparable and value in guard.among:
            return None
        left = guard.condition.left
        return facts | {
            (key, 0) for one in guard.among if (key := f"?{left}=={one}")[1:] in tracked and key not in known
        }
    told = outcome(guard.condition, known)
    if told is not None:
        if told is guard.truth and guard.condition.right is None and guard.condition.key in tracked:
            return facts | {(f"?{guard.condition.key}", int(told))}
        return facts if told is guard.truth else None
    condition = guard.condition
    if condition.key in tracked:
        known[f"?{condition.key}"] = guard.truth
    if condition.right is None and condition.left in known:
        other = seen_from(condition, known[condition.left])
        if other is not None and other.key in tracked:
            known[f"?{other.key}"] = guard.truth
    if condition.left in tracked:
        if condition.operator == "==" and guard.truth and condition.right is not None:
            known[condition.left] = condition.right
        elif not condition.operator and not guard.truth:
            known[condition.left] = 0
    return frozenset(known.items())


def forget(facts: Facts, name: str) -> Facts:
    """Return what a path knows once a variable, or a member of one, has changed."""
    variable, *members = _MEMBER.split(name)
    if not members:
        return frozenset((key, value) for key, value in facts if name not in _WORD.findall(key))
    touched = re.compile(rf"\b{variable}\b(?!(?:\.|->)(?!{members[0]}\b)[A-Za-z_])")
    return frozenset((key, value) for key, value in facts if touched.search(key) is None)
