# SPDX-License-Identifier: Apache-2.0
"""Which named ranges a token may stand for.

A token is a value of the kernel: it can be kept in a variable, chosen by a condition and carried around a loop, as
TIRx documents.  The event that ends its range needs a name, though, when the kernel is compiled.  So each name of a
kernel has a number, a token is that number (0 is the sentinel, no range), and an end becomes one conditional event
for each name that the token can have.  The compiler folds them where the token is known.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .faults import TirxEventError

#: The token of no range.
SENTINEL = 0
#: How many kernels that are being built are told apart; a thread builds one, with few others inside it.
_KERNELS = 8


class Loop(Protocol):
    """A loop, or the whole, of the kernel that is being built; each look at it may give another Python object."""

    def same_as(self, other: object) -> bool:
        """Say whether it is the same one."""


@dataclass(frozen=True)
class _OpenEnd:
    """A range end inside loops: what is started later in one of them can come around to it."""

    payload: str | None
    loops: tuple[Loop, ...]
    known: frozenset[str]

    def is_reached_from(self, loops: Sequence[Loop]) -> bool:
        """Say whether what starts inside these loops can come around to it."""
        return any(loop.same_as(other) for loop in loops for other in self.loops)


@dataclass
class _Range:
    """One name: its payload's type, None for no payload; `told` says whether that is known yet."""

    number: int
    payload: str | None = None
    told: bool = False
    started: bool = False


@dataclass
class TokenRanges:
    """The token ranges of one kernel, in the order in which they were first named."""

    _named: dict[str, _Range] = field(default_factory=dict)
    _ends: list[_OpenEnd] = field(default_factory=list)

    def start(self, name: str, payload: str | None, loops: Sequence[Loop]) -> int:
        """Return the token of a range that starts with a payload of this type, inside these loops.

        Raises:
            TirxEventError: the name was used with another type, or is new to an end that its token can reach.
        """
        found = self._range(name)
        if found.told and found.payload != payload:
            raise TirxEventError(
                f"the range {name!r} starts with payload {payload or 'none'}, and was used with "
                f"{found.payload or 'none'} before",
                remedy="use one type at every start and end; sentinel_token(name, dtype=...) tells it beforehand",
            )
        for end in self._ends:
            if end.payload == payload and name not in end.known and end.is_reached_from(loops):
                raise TirxEventError(
                    f"the range {name!r} starts in a loop whose range_end stands before it",
                    remedy=f"name it before the loop: token = profiler.sentinel_token({name!r})",
                )
        found.payload, found.told, found.started = payload, True, True
        return found.number

    def sentinel(self, name: str, payload: str | None, *, told: bool) -> int:
        """Make a name known whose range has not started, and return the token of no range."""
        found = self._range(name)
        if told and not found.told:
            found.payload, found.told = payload, True
        return SENTINEL

    def ends(self, payload: str | None, loops: Sequence[Loop], token: int | None = None) -> list[tuple[int, str]]:
        """Return the token and name of every range that an end with this payload, inside these loops, can end.

        A name that has not started can get here around a loop only.  Where its payload is not known, it is this one.
        `token` is the token's value where the kernel's author gave a number.

        Raises:
            TirxEventError: no range can end here.
        """
        possible = []
        for name, found in self._named.items():
            if not found.started and not loops:
                continue
            if not found.told:
                found.payload, found.told = payload, True
            if found.payload == payload:
                possible.append((found.number, name))
        if loops:
            self._ends.append(_OpenEnd(payload, tuple(loops), frozenset(name for _, name in possible)))
        if token is not None:
            possible = [pair for pair in possible if pair[0] == token]
        if not possible and not self._waits_for(payload, token):
            raise self._nothing_ends(payload, token)
        return possible

    def _waits_for(self, payload: str | None, token: int | None) -> bool:
        """Say whether a name was told that nothing has started: its token ends nothing, which is no fault."""
        named = self._named.values()
        return token is None and any(not one.started and one.payload in (payload, None) for one in named)

    def _nothing_ends(self, payload: str | None, token: int | None) -> TirxEventError:
        started = {name: one for name, one in self._named.items() if one.started and token in (None, one.number)}
        if not started:
            return TirxEventError(
                "no range of this kernel has started before this end"
                if token is None
                else f"no range of this kernel has the token {token}",
                remedy="range_end takes what range_start returned; a range that starts further down in the same loop "
                "is named before the loop: token = profiler.sentinel_token(name)",
            )
        kinds = ", ".join(f"{name!r} starts with {_carried(one.payload)}" for name, one in started.items())
        return TirxEventError(
            f"no range of this kernel ends with {_carried(payload)}: {kinds}",
            remedy="both ends of a range carry a payload of one type, or neither does",
        )

    def _range(self, name: str) -> _Range:
        return self._named.setdefault(name, _Range(len(self._named) + 1))


def _carried(payload: str | None) -> str:
    return f"payload {payload}" if payload else "no payload"


class _Building(threading.local):
    """The kernels that this thread has been building, the latest last."""

    def __init__(self) -> None:
        self.kernels: list[tuple[Loop, TokenRanges]] = []


_here = _Building()


def ranges_of(kernel: Loop) -> TokenRanges:
    """Return the token ranges of the kernel that is being built: of all its profilers, and of no other kernel."""
    for known, ranges in _here.kernels:
        if known.same_as(kernel):
            return ranges
    ranges = TokenRanges()
    _here.kernels = [*_here.kernels[1 - _KERNELS :], (kernel, ranges)]
    return ranges
