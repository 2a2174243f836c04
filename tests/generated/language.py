# SPDX-License-Identifier: Apache-2.0
"""The small language of generated programs: annotated kernels as trees.

`making` draws such trees, `printing` writes them as CUDA C++, `interpreting` runs them on the CPU.  The last two know
nothing of each other and nothing of the rewriter: where they disagree about an event, one of the three is wrong.

A thread has a word `acc` of its own; `lane`, `warp`, `block` and the parameter `n` are the same names in both.  A
value is an expression of 32-bit unsigned arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Value:
    """One expression: an operator and its operands, which are values, or a leaf and its text or number."""

    operator: str
    operands: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """An event that programs may record; (kind, name) identifies it.

    Attributes:
        kind: "mark", "range" or "token_range".
        payload: name of its payload's type, or None.
        form: how its sites are written: "macro", "second" (the second names) or "token".
    """

    kind: str
    name: str
    payload: str | None
    color: int | None
    form: str


@dataclass(frozen=True, slots=True)
class Site:
    """One end of an event, or a mark: what it is and which value goes with it."""

    event: Event
    value: Value | None


@dataclass(frozen=True, slots=True)
class Mark:
    site: Site


@dataclass(frozen=True, slots=True)
class Push:
    site: Site


@dataclass(frozen=True, slots=True)
class Pop:
    form: str


@dataclass(frozen=True, slots=True)
class Start:
    site: Site


@dataclass(frozen=True, slots=True)
class End:
    site: Site


@dataclass(frozen=True, slots=True)
class Scoped:
    """A range that ends with its block."""

    site: Site
    body: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Mix:
    """`acc` becomes the value."""

    value: Value


@dataclass(frozen=True, slots=True)
class Load:
    """`acc` is mixed with the input word that the value chooses."""

    value: Value


@dataclass(frozen=True, slots=True)
class Exchange:
    """`acc` is mixed with that of another lane, through shared memory."""

    distance: int


@dataclass(frozen=True, slots=True)
class If:
    """A condition that is the same in all active lanes."""

    condition: Value
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Divide:
    """A condition that lanes may answer differently; where both arms have events, these are marks."""

    condition: Value
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """As many rounds as the value says; `unroll` is the number of the pragma, 0 for none, -1 for all rounds.

    Attributes:
        variable: the counter's name, which values use.
        diverging: whether lanes may have different numbers of rounds.
    """

    variable: str
    rounds: Value
    unroll: int
    body: tuple[Any, ...]
    diverging: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """One of the bodies, by the value modulo their number."""

    value: Value
    bodies: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function with events of its own."""

    name: str
    inlined: bool
    body: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """All active lanes jump: "break", "continue" or "return"."""

    how: str


@dataclass(frozen=True, slots=True)
class LanesReturn:
    """Lanes from this number on return."""

    first: int


@dataclass(frozen=True, slots=True)
class Program:
    """One kernel with the launch that it is meant for."""

    name: str
    body: tuple[Any, ...]
    blocks: int
    warps: int
    n: int


@dataclass(frozen=True, slots=True)
class Module:
    """Programs that are compiled together, since they share events."""

    seed: int
    events: tuple[Event, ...]
    programs: tuple[Program, ...]


def sites(body: tuple[Any, ...]) -> Iterator[Site]:
    """Yield every site of a body but pops, in the order of the text, those of called functions included."""
    for statement in body:
        for field in fields(statement):
            value = getattr(statement, field.name)
            if isinstance(value, Site):
                yield value
            elif isinstance(value, tuple) and value and isinstance(value[0], tuple):
                for inner in value:
                    yield from sites(inner)
            elif isinstance(value, tuple):
                yield from sites(value)
