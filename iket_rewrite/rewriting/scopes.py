# SPDX-License-Identifier: Apache-2.0
"""Places where a scoped range can not stand, found before a compiler makes a riddle of them.

`IKET_RANGE` declares a variable with a destructor.  C++ forbids jumping past such a declaration, so it can not stand
among the labels of a `switch`; nor can it stand in a `constexpr` function, whose variables must be literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import AnnotationError
from ..source import Source
from .annotation import Annotation, SiteKind
from .tokens import skip_blank, skip_literal

#: Not `if constexpr (...)`, which is no function, and no variable that a lambda initialises.
_CONSTEXPR = re.compile(r"\b(?:constexpr|consteval)\b(?!\s*\()(?![^=(]*=(?![=(]))")
#: How far back the head of a block is looked for.
_NEARBY = 4096
_SWITCH = re.compile(r"\bswitch\s*\(")
#: A search is fast where its pattern begins with a set of letters, and slow where with a choice.
_IN_HEAD = re.compile(r"[\"'(){};\[\]/](?:(?<=/)(?:/[^\n]*|\*[\s\S]*?\*/))?")
#: A head without these words is of no interest.
_HEAD_WORDS = ("switch", "constexpr", "consteval")
_IN_BLOCK = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|[\"'{}]|\b(?:case|default)\b")
_PUSH_AND_POP = "use IKET_RANGE_PUSH and IKET_RANGE_POP"
_BRACES = f"put braces around what the range covers, or {_PUSH_AND_POP}"


def check(source: Source, named: Iterable[Annotation]) -> None:
    """Check every scoped range of the source.

    Raises:
        AnnotationError: one stands where its variable can not be declared.
    """
    lines: dict[tuple[str, int, tuple[int, ...]], Annotation] = {}
    for item in named:
        if item.meaning.kind is not SiteKind.SCOPE:
            continue
        if item.use is not None and item.use.macro is None:
            _check_line(source, lines, item)
        call = item.at
        if call.macro is None and call.blocks:
            _check_switch(source, item, call.blocks)
            _check_constexpr(source, item, call.blocks)


def _check_line(source: Source, lines: dict[tuple[str, int, tuple[int, ...]], Annotation], item: Annotation) -> None:
    """A wrapper's variable is numbered by its line (NVRTC has no counter)."""
    call = item.use
    if call is None:
        return
    place = source.place(item.start, item.end)
    first = lines.setdefault((call.callee, place.line, call.blocks), item)
    if first is not item and first.start != item.start:
        raise AnnotationError(
            f"{call.callee} opens two scoped ranges on one line of one block",
            place,
            remedy="write them on two lines",
        )


def _check_switch(source: Source, item: Annotation, blocks: tuple[int, ...]) -> None:
    text = source.logical
    if not _SWITCH.search(_head(source, blocks)[1]):
        return
    # Only a label behind it makes a jump past it.
    position, depth = item.end, 0
    while (match := _IN_BLOCK.search(text, position)) is not None:
        word, position = match.group(), match.end()
        if word in "\"'":
            position = skip_literal(source, match.start())
        elif word == "{":
            depth += 1
        elif word == "}":
            depth -= 1
            if depth < 0:
                return
        elif depth == 0 and word in ("case", "default"):
            raise AnnotationError(
                "a scoped range stands among the labels of a switch: a jump to the next label would skip its beginning",
                source.place(item.start, item.end),
                remedy=_BRACES,
                others=(("the next label", source.place(*match.span())),),
            )


def _check_constexpr(source: Source, item: Annotation, blocks: tuple[int, ...]) -> None:
    for count in range(len(blocks), 0, -1):
        begin, head = _head(source, blocks[:count])
        found = _CONSTEXPR.search(head)
        if found is not None and "(" in head:
            start = begin + found.start()
            raise AnnotationError(
                "a scoped range can not stand in a constexpr function: its variable has a destructor",
                source.place(item.start, item.end),
                remedy=_PUSH_AND_POP,
                others=(("declared constexpr here", source.place(start, start + len(found.group()))),),
            )


def _head(source: Source, blocks: tuple[int, ...]) -> tuple[int, str]:
    """Return where the statement or declaration begins whose `{` is the last of `blocks`, and its text up to there.

    Of a head that is of no interest, the text is empty.
    """
    text, block = source.logical, blocks[-1]
    start = position = max(blocks[-2] + 1 if len(blocks) > 1 else 0, block - _NEARBY)
    if not any(word in text[start:block] for word in _HEAD_WORDS):
        return block, ""
    depth = 0
    while (match := _IN_HEAD.search(text, position, block)) is not None:
        char, position = text[match.start()], match.end()
        if char in "\"'":
            position = min(skip_literal(source, match.start()), block)
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth = max(0, depth - 1)
        elif char in ";{}" and not depth:  # not the semicolon in `switch (int i = f(); i)`
            start = position
    start = skip_blank(text, start)
    return start, text[start:block]
