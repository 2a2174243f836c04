# SPDX-License-Identifier: Apache-2.0
"""The lines of a source that a comment `// iket-lint: off` silences."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import Place
from ..source import Source
from .sites import Site

_OFF = re.compile(r"\biket-lint:\s*off\b")
_COMMENT_OR_LITERAL = re.compile(
    r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|\bu?8?[uUL]?R\"([^()\\\s]{0,16})\([\s\S]*?\)\1\""
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)'"
)


class Silence:
    """What comments silence: the line that one stands on, and an annotation that ends on that line.

    Args:
        source: the text.
        sites: its annotations, and the uses of macros that hold some.
    """

    def __init__(self, source: Source, sites: Iterable[Site]) -> None:
        text = source.logical
        self.lines: set[int] = set()
        #: Where annotations of several lines start whose last line is one of these.
        self.starts: set[tuple[int, int]] = set()
        if _OFF.search(text) is None:
            return
        for one in _COMMENT_OR_LITERAL.finditer(text):
            if one.group().startswith(("//", "/*")):
                self.lines.update(source.place(found).line for found in self._offsets(text, one.start(), one.end()))
        places = [(source.place(site.start), source.place(site.end - 1).line) for site in sites] if self.lines else []
        self.starts = {(one.line, one.column) for one, last in places if one.line < last and last in self.lines}

    @staticmethod
    def _offsets(text: str, start: int, end: int) -> list[int]:
        return [found.start() for found in _OFF.finditer(text, start, end)]

    def holds(self, place: Place) -> bool:
        """Say whether a finding at a place is not wanted."""
        return place.line in self.lines or (place.line, place.column) in self.starts
