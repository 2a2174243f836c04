# SPDX-License-Identifier: Apache-2.0
"""A source text: its bytes, its lines, its logical form without line splices, and edits of it.

Offsets count characters and are half-open.  *Physical* offsets index `Source.text`, which is the input to the
letter.  *Logical* offsets index `Source.logical`, where every backslash-newline is gone: C++ joins lines before it
forms tokens, so a scanner that reads the logical text needs to know nothing of splices.  Nor of carriage returns
that stand alone: compilers end a line there, so the logical text has a newline in their place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from .errors import Place

BOM = "\ufeff"
#: Compilers accept blanks between the backslash and the line end, with a warning.
_SPLICE = re.compile(r"\\[ \t]*(?:\r\n|\n|\r)")
#: The look behind comes second: a search is fast where its pattern begins with a letter.
_CUT_WORD = re.compile(r"\\(?<=[\w$]\\)[ \t]*[\r\n]")
_LINE_END = re.compile(r"\r\n|\n|\r")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_NEWLINE = re.compile(r"\n")
_LINE_BREAKS = re.compile(r"\\[ \t]*(?:\r\n|\n|\r)|\r\n|\n|\r")
#: How much of a line a message shows, and how much of that before the place.
_SHOWN, _SHOWN_BEFORE = 120, 60


class Edit(NamedTuple):
    """Replace the physical characters `start` to `end` (exclusive) by `text`."""

    start: int
    end: int
    text: str


class Source:
    """One source text and the file it came from.

    Args:
        data: the text, or its bytes.  Bytes that are not UTF-8 survive unchanged.
        path: the name of the file for messages, or None for text that is in no file.
    """

    def __init__(self, data: str | bytes, path: str | None = None) -> None:
        self.is_bytes = isinstance(data, bytes)
        self.text = data.decode("utf-8", "surrogateescape") if isinstance(data, bytes) else data
        self.named = path is not None
        self.path = path if path is not None else "<source>"
        #: Where character literals end that something follows without a blank, as far as they were met: a number that a
        #: digit separator divides does not reach back over one.  Logical offsets.
        self.literal_ends: set[int] = set()

    def encode(self, text: str) -> str | bytes:
        """Return `text` in the type of the input."""
        return text.encode("utf-8", "surrogateescape") if self.is_bytes else text

    @cached_property
    def newline(self) -> str:
        """The first line end of the text, or a newline where it has none."""
        found = _LINE_END.search(self.text)
        return found.group() if found else "\n"

    @cached_property
    def _splices(self) -> tuple[list[int], list[int]]:
        """Logical offset at which each splice was cut out, and the characters cut so far up to there."""
        places, removed, total = [], [], 0
        if self.spliced:
            for match in _SPLICE.finditer(self.text):
                places.append(match.start() - total)
                total += match.end() - match.start()
                removed.append(total)
        return places, removed

    @cached_property
    def spliced(self) -> bool:
        """Whether there are line splices, so that logical and physical offsets differ."""
        return len(self.logical) != len(self.text)

    @cached_property
    def logical(self) -> str:
        """The text with line splices removed and every line ended by a newline."""
        text = _SPLICE.sub("", self.text) if "\\" in self.text else self.text
        return _LONE_RETURN.sub("\n", text) if "\r" in text else text

    def holds(self, word: str) -> bool:
        """Say whether the word stands in the logical text, which is not made where no splice cuts a word."""
        return word in (self.logical if self._cuts_words else self.text)

    @cached_property
    def _cuts_words(self) -> bool:
        return "\\" in self.text and _CUT_WORD.search(self.text) is not None

    def physical(self, offset: int) -> int:
        """Return the physical offset of the character at a logical offset."""
        places, removed = self._splices
        index = bisect_right(places, offset)
        return offset + removed[index - 1] if index else offset

    def physical_end(self, offset: int) -> int:
        """Return the physical offset behind the last character before a logical (exclusive) offset."""
        return self.physical(offset - 1) + 1 if offset else 0

    def to_logical(self, offset: int) -> int:
        """Return the logical offset of a physical one; inside a splice, that of the character behind it."""
        places, removed = self._splices
        low, high = 0, len(places)
        while low < high:
            middle = (low + high) // 2
            if places[middle] + removed[middle] <= offset:
                low = middle + 1
            else:
                high = middle
        return offset - removed[low - 1] if low else offset

    @cached_property
    def _line_starts(self) -> list[int]:
        # A search for one letter is many times faster.
        line_end = _LINE_END if "\r" in self.text else _NEWLINE
        return [0, *(match.end() for match in line_end.finditer(self.text))]

    def place(self, start: int, end: int | None = None) -> Place:
        """Return the position of logical offsets `start` to `end` for a message."""
        first = self.physical(min(start, len(self.logical)))
        line = bisect_right(self._line_starts, first)
        begin = self._line_starts[line - 1]
        stop = self._line_starts[line] if line < len(self._line_starts) else len(self.text)
        if line == 1 and self.text.startswith(BOM):
            begin += 1
        last = self.physical_end(end) if end is not None and end > start else first + 1
        # Generated sources have lines of megabytes, and every site has a place.
        shown = max(begin, first - _SHOWN_BEFORE)
        text = _printable(self.text[shown : min(stop, shown + _SHOWN)].rstrip("\r\n"))
        column = max(first - begin, 0) + 1
        return Place(self.path, line, column, text, shown - begin, max(1, min(last, stop) - first))

    def edit(self, start: int, end: int, text: str) -> Edit:
        """Replace logical offsets `start` to `end`, keeping every line break of the replaced text."""
        first, last = self.physical(start), self.physical_end(end)
        return Edit(first, last, text + "".join(_LINE_BREAKS.findall(self.text[first:last])))


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Return `text` with the edits applied; they must not overlap.

    Raises:
        ValueError: two edits overlap, which is a fault of the caller.
    """
    pieces: list[str] = []
    position = 0
    # Bare tuples of numbers and text are no burden to the garbage collector, as objects of a class would be.
    ordered = sorted(((edit.start, edit.end, edit.text) for edit in edits), key=itemgetter(0, 1))
    for start, end, new in ordered:
        if start < position:
            raise ValueError(f"edits overlap at offset {start}")
        pieces += (text[position:start], new)
        position = end
    pieces.append(text[position:])
    return "".join(pieces)


def _printable(text: str) -> str:
    """Make a line safe to print: bytes that were not UTF-8 and control characters become a replacement mark."""
    if text.isprintable():
        return text
    return "".join(char if char == "\t" or char.isprintable() else "\ufffd" for char in text)
