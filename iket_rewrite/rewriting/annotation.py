# SPDX-License-Identifier: Apache-2.0
"""What one annotation says, before any decision about the module: kind, name, payload, colour, place."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from ..abi import EventKind, PayloadType
from ..errors import Place
from .found import Call


class SiteKind(enum.Enum):
    """What an annotation does at its place.

    Attributes:
        event: the kind of event that it needs; a pop needs none.
    """

    MARK = "mark", EventKind.MARK
    PUSH = "range_push", EventKind.RANGE
    POP = "range_pop", None
    START = "range_start", EventKind.TOKEN_RANGE
    END = "range_end", EventKind.TOKEN_RANGE
    #: A push whose pop follows when the block is left, on whatever path.
    SCOPE = "range", EventKind.RANGE

    event: EventKind | None

    def __new__(cls, value: str, event: EventKind | None) -> SiteKind:
        """Make a member whose value is its name in tokens."""
        member = object.__new__(cls)
        member._value_, member.event = value, event
        return member


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
    """A payload of one annotation: its type, and the span of the expression that gives its value."""

    type: PayloadType
    start: int
    end: int

    def moved(self, by: int) -> Payload:
        """Return the same payload with its span moved."""
        return Payload(self.type, self.start + by, self.end + by)


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


@dataclass(frozen=True, eq=False, slots=True)
class Meaning:
    """What an annotation says.  Calls of the same letters share it; offsets count from the start of the call.

    Attributes:
        kind: what it does.
        origin: which dialect it is written in.
        name: the event's name; None for a pop, and for a name that a wrapper macro completes.
        name_span: the span to underline in messages.
        pieces: the pieces of a name that is completed by the macro's uses, else empty.
        payload: what it records, or None.
        color: 0xRRGGBB, or None.
        position: the position that a code generator put into its token, or None.
    """

    kind: SiteKind
    origin: Origin
    name: str | None
    name_span: tuple[int, int]
    pieces: tuple[NamePiece, ...]
    payload: Payload | None
    color: int | None
    position: SourcePosition | None


class Annotation(NamedTuple):
    """One annotation, understood by itself; one for each use of the wrapper macro, where such a one names it.

    Attributes:
        call: where it stands.
        meaning: what it says.
        use: the use of the wrapper macro, or None.
        given: the name that the use gives, or None.
        spelling: string literals that spell that name as the use does, else empty.
    """

    call: Call
    meaning: Meaning
    use: Call | None = None
    given: str | None = None
    spelling: str = ""

    @property
    def kind(self) -> SiteKind:
        """Return what it does."""
        return self.meaning.kind

    @property
    def name(self) -> str | None:
        """Return the event's name; None for a pop."""
        return self.meaning.name if self.use is None else self.given

    @property
    def at(self) -> Call:
        """Return the call that shows the name: its own, or the use of the wrapper."""
        return self.use or self.call

    @property
    def start(self) -> int:
        """Return the logical offset at which that call starts."""
        return self.at.start

    @property
    def end(self) -> int:
        """Return the logical offset behind the callee of that call."""
        return self.at.start + len(self.at.callee)

    @property
    def place(self) -> Place:
        """Return where that call stands, for messages."""
        return self.at.source.place(self.start, self.end)

    @property
    def name_span(self) -> tuple[int, int]:
        """Return the logical span to underline in messages, in the text of the annotation itself."""
        start, end = self.meaning.name_span
        return self.call.start + start, self.call.start + end

    @property
    def payload(self) -> Payload | None:
        """Return what it records, with its place in the logical text, or None."""
        payload = self.meaning.payload
        return payload.moved(self.call.start) if payload is not None else None


def annotation(
    call: Call,
    kind: SiteKind,
    origin: Origin,
    name: str | None,
    name_span: tuple[int, int],
    pieces: tuple[NamePiece, ...] = (),
    payload: Payload | None = None,
    color: int | None = None,
    position: SourcePosition | None = None,
) -> Annotation:
    """Make an annotation of a call; spans are logical."""
    span = name_span[0] - call.start, name_span[1] - call.start
    payload = payload.moved(-call.start) if payload is not None else None
    return Annotation(call, Meaning(kind, origin, name, span, pieces, payload, color, position))
