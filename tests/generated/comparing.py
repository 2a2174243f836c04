# SPDX-License-Identifier: Apache-2.0
"""Compare what a warp recorded with what the interpreter says: every event, in order, with its payload.

A trace holds markers in one list and ranges in another, with stamps of a clock that ticks every 32 ns.  So two events
may have one stamp, and the order across the lists is checked by looking for one assignment of the recorded ranges to
the expected ones under which no stamp goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from generated.interpreting import Either, Seen
from gpu.capture import Warp

from iket_rewrite import abi

_PUSHED, _TOKEN = 2, 1
_AUTOMATIC = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Key:
    """What tells ranges apart: type, name, colour and the payloads of both ends."""

    type: int
    name: str
    color: int
    first: int | None
    last: int | None


@dataclass
class Expected:
    """Steps of a warp: ("mark", (name, type, bits)), ("open", n), ("close", n), or `Either`; `ranges[n]` is n's key."""

    steps: list[Any] = field(default_factory=list)
    ranges: list[Key] = field(default_factory=list)


def _bits(seen: Seen, base: int) -> int | None:
    return seen.bits + base if seen.payload == "pointer" and seen.bits is not None else seen.bits


def _mark(seen: Seen, base: int) -> tuple[str, tuple]:
    kind = abi.PAYLOADS[seen.payload].code if seen.payload else None
    return "mark", (seen.name, kind, _bits(seen, base))


def expected(events: list[Any], base: int) -> Expected:
    """Pair the ends of ranges; `base` is the address that pointers are relative to."""
    out = Expected()
    stack: list[int] = []
    tokens: dict[str, int] = {}
    for one in events:
        if isinstance(one, Either):
            arms = (tuple(_mark(seen, base) for seen in arm) for arm in (one.first, one.second))
            out.steps.append(Either(*arms))
        elif one.action == "mark":
            out.steps.append(_mark(one, base))
        elif one.action in ("push", "start"):
            kind = _PUSHED if one.action == "push" else _TOKEN
            color = _AUTOMATIC if one.color is None else one.color
            number = len(out.ranges)
            out.ranges.append(Key(kind, one.name, color, _bits(one, base), None))
            out.steps.append(("open", number))
            if one.action == "push":
                stack.append(number)
            else:
                tokens[one.name] = number
        elif one.action == "pop":
            out.steps.append(("close", stack.pop()))
        else:
            number = tokens.pop(one.name)
            key = out.ranges[number]
            out.ranges[number] = Key(key.type, key.name, key.color, key.first, _bits(one, base))
            out.steps.append(("close", number))
    assert not stack
    assert not tokens
    return out


def difference(events: list[Any], warp: Warp, base: int = 0) -> str:
    """Say how a recorded warp differs from the interpreted one, or return an empty string."""
    wanted = expected(events, base)
    keys = sorted((Key(one.type, one.name, one.color, one.first, one.last) for one in warp.ranges), key=repr)
    if keys != sorted(wanted.ranges, key=repr):
        return f"ranges: recorded {keys}, expected {sorted(wanted.ranges, key=repr)}"
    matcher = _Matcher(wanted, warp)
    if matcher.fits(tuple(wanted.steps), 0, 0):
        return ""
    return f"order: after {matcher.reached} steps of {wanted.steps}: recorded {warp}"


class _Matcher:
    """Looks for an assignment of recorded ranges to expected ones under which no stamp goes back."""

    def __init__(self, wanted: Expected, warp: Warp) -> None:
        self.keys = wanted.ranges
        self.marks = warp.marks
        self.reached = 0
        self.steps = len(wanted.steps)
        #: By key: (start, end) of the ranges that are not assigned yet.
        self.free: dict[Key, list[tuple[int, int]]] = {}
        for one in warp.ranges:
            key = Key(one.type, one.name, one.color, one.first, one.last)
            self.free.setdefault(key, []).append((one.start, one.end))
        self.ends: dict[int, int] = {}

    def fits(self, steps: tuple, now: int, mark: int) -> bool:
        """Say whether the rest of the steps fits what is not assigned yet."""
        self.reached = max(self.reached, self.steps - len(steps))
        if not steps:
            return mark == len(self.marks)
        step, rest = steps[0], steps[1:]
        if isinstance(step, Either):
            return self._either(step, rest, now, mark)
        if step[0] == "mark":
            if mark == len(self.marks):
                return False
            found = self.marks[mark]
            same = (found.name, found.type, found.payload) == step[1]
            return same and found.at >= now and self.fits(rest, found.at, mark + 1)
        if step[0] == "close":
            end = self.ends[step[1]]
            return end >= now and self.fits(rest, end, mark)
        return self._open(step[1], rest, now, mark)

    def _either(self, step: Either, rest: tuple, now: int, mark: int) -> bool:
        if not step.first or not step.second:
            return self.fits((*step.first, *step.second, *rest), now, mark)
        first = (step.first[0], Either(step.first[1:], step.second), *rest)
        second = (step.second[0], Either(step.first, step.second[1:]), *rest)
        return self.fits(first, now, mark) or self.fits(second, now, mark)

    def _open(self, number: int, rest: tuple, now: int, mark: int) -> bool:
        free = self.free[self.keys[number]]
        # Ranges of one key are opened in the order of their stamps; only those of one stamp leave a choice.
        earliest = min(start for start, _ in free)
        if earliest < now:
            return False
        for choice in sorted({one for one in free if one[0] == earliest}):
            free.remove(choice)
            self.ends[number] = choice[1]
            if self.fits(rest, earliest, mark):
                return True
            free.append(choice)
        return False
