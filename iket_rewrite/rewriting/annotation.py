# SPDX-License-Identifier: Apache-2.0
"""What one annotation says, before any decision about the module: kind, name, payload, colour, place."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..abi import EventKind, PayloadType
from .scan import Call


class SiteKind(enum.Enum):
    """What an annotation does at its place."""

    MARK = "mark"
    PUSH = "range_push"
    POP = "range_pop"
    START = "range_start"
    END = "range_end"
    #: A push whose pop follows when the block is left, on whatever path.
    SCOPE = "range"

    @property
    def event(self) -> EventKind | None:
        """Return the kind of event that it needs; a pop needs none."""
        return _EVENTS[self]


_EVENTS = {
    SiteKind.MARK: EventKind.MARK,
    SiteKind.PUSH: EventKind.RANGE,
    SiteKind.POP: None,
    SiteKind.SCOPE: EventKind.RANGE,
    SiteKind.START: EventKind.TOKEN_RANGE,
    SiteKind.END: EventKind.TOKEN_RANGE,
}


class Origin(enum.Enum):
    """Which kind of annotation it is."""

    HEADER = "iket.cuh"
    TOKEN = "token"
    TILELANG = "tilelang"


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Where a code generator's user wrote the annotation: file, 1-based line and column."""

    file: str
    line: int
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """A payload of one annotation: its type, and the logical span of the expression that gives its value."""

    type: PayloadType
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NamePiece:
    """One piece of a name.

    Attributes:
        spelling: a string literal as it is spelled, or the name of the wrapper macro's parameter that gives the piece.
        data: the literal's bytes; None for a parameter.
        stringized: the parameter is taken with the operator #.
    """

    spelling: str
    data: bytes | None = None
    stringized: bool = False


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation, understood by itself.

    Attributes:
        call: where it stands.
        kind: what it does.
        origin: which dialect it is written in.
        name: the event's name; None for a pop, and for a name that a wrapper macro completes.
        name_span: the logical span to underline in messages.
        pieces: the pieces of a name that is completed by the macro's uses, else empty.
        payload: what it records, or None.
        color: 0xRRGGBB, or None.
        position: the position that a code generator put into its token, or None.
    """

    call: Call
    kind: SiteKind
    origin: Origin
    name: str | None
    name_span: tuple[int, int]
    pieces: tuple[NamePiece, ...] = ()
    payload: Payload | None = None
    color: int | None = None
    position: SourcePosition | None = None
