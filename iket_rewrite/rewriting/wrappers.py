# SPDX-License-Identifier: Apache-2.0
"""Wrapper macros: annotations whose names arrive through a parameter of the `#define` that they stand in.

    #define TRACE(n) IKET_RANGE(n)
    ... TRACE("load");

The names are the string literals at the wrapper's uses, so each use is a site.  The macro itself is rewritten once:
its id is looked up at compile time by the name.  One level deep only: a use inside another `#define` must spell its
name there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ..errors import AnnotationError
from ..source import Source
from .annotation import Annotation, NamePiece
from .dialects import checked_name, name_pieces
from .found import Call, Scan
from .notice import Notice
from .scan import find_uses
from .tokens import skip_blank, skip_literal, utf8

Wrapped = dict[str, list[Annotation]]


def wrappers_of(annotations: Iterable[Annotation]) -> Wrapped:
    """Return, by the macro's name, the annotations that its uses name."""
    wrapped: Wrapped = {}
    for annotation in annotations:
        if annotation.meaning.pieces and annotation.call.macro is not None:
            wrapped.setdefault(annotation.call.macro.name, []).append(annotation)
    return wrapped


def resolve(source: Source, annotations: Sequence[Annotation]) -> tuple[Sequence[Annotation], tuple[Notice, ...]]:
    """Return every annotation with its name, one per use of a wrapper, in the order of the text, and warnings.

    Raises:
        AnnotationError: a use does not spell the name.
    """
    wrapped = wrappers_of(annotations)
    if not wrapped:
        return annotations, ()
    named, found = resolve_with(source, annotations, wrapped)
    used = {use.callee for use in found.calls}
    return named, (*passed_on(source, found), *unused(wrapped, used, "in this file"))


def resolve_with(source: Source, annotations: Iterable[Annotation], wrapped: Wrapped) -> tuple[list[Annotation], Scan]:
    """Return a text's annotations with their names, and those that it makes by its uses of wrappers, in its order.

    Args:
        source: the text.
        annotations: those that stand in it; a wrapper's have no name of their own and are left out.
        wrapped: the wrappers that it can use, wherever they are defined.

    Raises:
        AnnotationError: a use does not spell the name.
    """
    named = [annotation for annotation in annotations if not annotation.meaning.pieces]
    found = find_uses(source, wrapped) if wrapped else Scan()
    named += _uses(source, wrapped, found.calls)
    return sorted(named, key=lambda item: item.start), found


def passed_on(source: Source, found: Scan) -> Iterator[Notice]:
    """Yield where a wrapper is named and not called: its annotation may be lost without an error."""
    for start, end in found.uncalled:
        yield Notice(
            f"{source.logical[start:end]} holds an annotation; where it is passed on by its name, its events are lost",
            source.place(start, end),
        )


def unused(wrapped: Wrapped, used: Collection[str], where: str) -> Iterator[Notice]:
    """Yield each wrapper that is nowhere used."""
    for name, held in wrapped.items():
        if name not in used:
            place = held[0].call.source.place(*held[0].name_span)
            yield Notice(f"{name} holds an annotation and is not used {where}", place)


def _uses(source: Source, wrapped: Wrapped, uses: Iterable[Call]) -> Iterator[Annotation]:
    for use in uses:
        for annotation in wrapped[use.callee]:
            pieces = _completed(source, use, annotation)
            end = use.start + len(use.callee)
            name = checked_name(source, (use.start, end), b"".join(piece.data or b"" for piece in pieces))
            spelling = " ".join(piece.spelling for piece in pieces)
            yield Annotation(annotation.call, annotation.meaning, use, name, spelling)


def _completed(source: Source, use: Call, annotation: Annotation) -> list[NamePiece]:
    """Return the pieces of the name at one use: literals all."""
    macro = annotation.call.macro
    parameters = macro.parameters or () if macro else ()
    result = []
    for piece in annotation.meaning.pieces:
        if piece.data is not None:
            result.append(piece)
            continue
        index = parameters.index(piece.spelling)
        if index >= len(use.arguments.spans):
            raise AnnotationError(
                f"{use.callee} is used without its argument {piece.spelling}, which names an event",
                source.place(use.start, use.end),
                remedy="give the name as a string literal",
            )
        span = use.arguments.spans[index]
        if piece.stringized:
            result.append(_stringized(source, span))
        else:
            result += _literals(source, use, annotation, span)
    return result


def _literals(source: Source, use: Call, annotation: Annotation, span: tuple[int, int]) -> tuple[NamePiece, ...]:
    pieces = name_pieces(source, span, None)
    if pieces is not None:
        return pieces
    remedy = "spell the name as a string literal where the macro is used"
    if use.macro is not None:
        remedy = (
            f"a name can pass through one macro only: in {use.macro.name}, call the annotation itself, "
            "or spell the name there"
        )
    raise AnnotationError(
        f"the name that {use.callee} passes on is no string literal",
        source.place(*span),
        remedy=remedy,
        others=(("the annotation that it names", annotation.call.source.place(*annotation.name_span)),),
    )


def _stringized(source: Source, span: tuple[int, int]) -> NamePiece:
    """Do what the operator # does to an argument: blanks and comments fold to one blank, but not in literals."""
    text, (start, end) = source.logical, span
    pieces: list[str] = []
    while start < end:
        behind = min(skip_blank(text, start), end)
        if behind > start:
            pieces.append(" ")
        elif text[start] in "\"'":
            behind = min(skip_literal(source, start), end)
            pieces.append(text[start:behind])
        else:
            behind = start + 1
            pieces.append(text[start])
        start = behind
    data = "".join(pieces)
    # The spelling says the same to a compiler: what a literal holds is escaped once more.
    spelling = '"' + data.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return NamePiece(spelling, utf8(data))
