# SPDX-License-Identifier: Apache-2.0
"""Places where a scoped range can not stand, found before a compiler makes a riddle of them.

`IKET_RANGE` declares a variable with a destructor.  C++ forbids jumping past such a declaration, so it can not stand
among the labels of a `switch`; nor can it stand in a `constexpr` function, whose variables must be literal.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

from ..errors import AnnotationError
from ..source import Source
from .annotation import Annotation, SiteKind
from .tokens import skip_blank, skip_literal, without_comments

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
_WORD_BEFORE = re.compile(r"[A-Za-z_]\w*\Z")
_EXPRESSION_WORDS = ("return", "throw", "co_return", "co_yield", "co_await", "sizeof", "decltype", "and", "or", "not")
_OPERATORS = tuple("?=+-*/|&<>!~%^[")
_VOID_CAST = re.compile(r"\(\s*void\s*\)\Z")
#: A parenthesis that neither calls a macro nor belongs to a statement.
_PARENTHESIS = re.compile(r"(?:^|[^\w\s])\s*\(\Z")
_NEARBY_CODE = 256
_PUSH_AND_POP = "use IKET_RANGE_PUSH and IKET_RANGE_POP"
_BRACES = f"put braces around what the range covers, or {_PUSH_AND_POP}"


def check(named: Iterable[Annotation]) -> None:
    """Check every scoped range.

    Raises:
        AnnotationError: one stands where its variable can not be declared.
    """
    lines: dict[tuple[Source, str, int, tuple[int, ...]], Annotation] = {}
    read: dict[Source, _Blocks] = {}
    for item in named:
        if item.meaning.kind is not SiteKind.SCOPE:
            continue
        _check_statement(item)
        if item.use is not None and item.use.macro is None and not _in_own_block(item):
            _check_line(lines, item)
        call = item.at
        source = call.source
        if call.macro is None and call.blocks:
            if not _is_body(source, call.start):
                _check_switch(source, read.setdefault(source, _Blocks(source)), item)
            _check_constexpr(source, read.setdefault(source, _Blocks(source)), item)


def _check_statement(item: Annotation) -> None:
    """It declares a variable, so it can be no part of an expression."""
    call, source = item.call, item.call.source
    before = _code_before(source, call.start)
    word = _WORD_BEFORE.search(before)
    cast = _VOID_CAST.search(before)
    if cast or before[-1:] in _OPERATORS or (word and word.group() in _EXPRESSION_WORDS) or _PARENTHESIS.search(before):
        raise AnnotationError(
            f"{call.callee} declares a variable and can not be part of an expression",
            source.place(call.start, call.start + len(call.callee)),
            remedy="make it a statement of its own",
        )


def _code_before(source: Source, at: int) -> str:
    """Return a little of the code in front of an offset, without blanks and comments at its end."""
    text = without_comments(source.logical[max(0, at - _NEARBY_CODE) : at])
    return text.rstrip()


def _is_body(source: Source, at: int) -> bool:
    """Say whether the statement there is the unbraced body of an if, a loop or an else: a scope of its own."""
    before = _code_before(source, at)
    word = _WORD_BEFORE.search(before)
    return before.endswith(")") or (word is not None and word.group() in ("else", "do"))


def _in_own_block(item: Annotation) -> bool:
    """Say whether a wrapper's body opens a block around its scoped range: two of them do not meet then."""
    macro = item.call.macro
    body = without_comments(item.call.source.logical[macro.start : item.call.start]) if macro is not None else ""
    return body.count("{") > body.count("}")


def _check_line(lines: dict[tuple[Source, str, int, tuple[int, ...]], Annotation], item: Annotation) -> None:
    """A wrapper's variable is numbered by its line (NVRTC has no counter)."""
    call = item.use
    if call is None:
        return
    place = item.place
    first = lines.setdefault((call.source, call.callee, place.line, call.blocks), item)
    if first is not item and first.start != item.start:
        raise AnnotationError(
            f"{call.callee} opens two scoped ranges on one line of one block",
            place,
            remedy="write them on two lines",
        )


def _check_switch(source: Source, blocks: _Blocks, item: Annotation) -> None:
    # Only a label behind it makes a jump past it.
    labels = blocks.labels(item.at.blocks)
    following = bisect_left(labels, (item.end, 0))
    if following < len(labels):
        raise AnnotationError(
            "a scoped range stands among the labels of a switch: a jump to the next label would skip its beginning",
            source.place(item.start, item.end),
            remedy=_BRACES,
            others=(("the next label", source.place(*labels[following])),),
        )


def _check_constexpr(source: Source, blocks: _Blocks, item: Annotation) -> None:
    opened = item.at.blocks
    for index in range(len(opened) - 1, -1, -1):
        found = blocks.constexpr(opened[index], opened[index - 1] if index else -1)
        if found is not None:
            raise AnnotationError(
                "a scoped range can not stand in a constexpr function: its variable has a destructor",
                source.place(item.start, item.end),
                remedy=_PUSH_AND_POP,
                others=(("declared constexpr here", source.place(*found)),),
            )


class _Blocks:
    """What the heads of blocks say; each is read once, however many ranges stand in it."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._labels: dict[int, list[tuple[int, int]]] = {}
        self._constexpr: dict[int, tuple[int, int] | None] = {}

    def labels(self, opened: tuple[int, ...]) -> list[tuple[int, int]]:
        """Return the spans of the labels in the innermost of the blocks, where it is that of a `switch`."""
        block = opened[-1]
        if block not in self._labels:
            is_switch = _SWITCH.search(self._head(block, opened[-2] if len(opened) > 1 else -1)[1])
            self._labels[block] = self._labels_in(block) if is_switch else []
        return self._labels[block]

    def constexpr(self, block: int, outer: int) -> tuple[int, int] | None:
        """Return the span of the word that makes the block a constexpr function's, or None."""
        if block not in self._constexpr:
            start, head = self._head(block, outer)
            found = _CONSTEXPR.search(head) if "(" in head else None
            self._constexpr[block] = None if found is None else (start + found.start(), start + found.end())
        return self._constexpr[block]

    def _labels_in(self, block: int) -> list[tuple[int, int]]:
        text, position, depth = self.source.logical, block + 1, 0
        labels = []
        while depth >= 0 and (match := _IN_BLOCK.search(text, position)) is not None:
            word, position = match.group(), match.end()
            if word in "\"'":
                position = skip_literal(self.source, match.start())
            elif word in "{}":
                depth += 1 if word == "{" else -1
            elif depth == 0 and word in ("case", "default"):
                labels.append(match.span())
        return labels

    def _head(self, block: int, outer: int) -> tuple[int, str]:
        """Return where the statement or declaration begins whose `{` is `block`, and its text up to there.

        Of a head that is of no interest, the text is empty.
        """
        text = self.source.logical
        start = position = max(outer + 1, block - _NEARBY)
        if not any(word in text[start:block] for word in _HEAD_WORDS):
            return block, ""
        depth = 0
        while (match := _IN_HEAD.search(text, position, block)) is not None:
            char, position = text[match.start()], match.end()
            if char in "\"'":
                position = min(skip_literal(self.source, match.start()), block)
            elif char in "([":
                depth += 1
            elif char in ")]":
                depth = max(0, depth - 1)
            elif char in ";{}" and not depth:  # not the semicolon in `switch (int i = f(); i)`
                start = position
        start = skip_blank(text, start)
        return start, text[start:block]
