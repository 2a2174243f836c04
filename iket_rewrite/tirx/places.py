# SPDX-License-Identifier: Apache-2.0
"""Faults in generated source, told at the lines that their author wrote: each event carries its own."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import Place, SourceError
from ..rewriting.token_format import PREFIX, TokenError, read_token

_TOKEN = re.compile(rf'"({PREFIX}[A-Za-z0-9_-]*)"')


@contextmanager
def in_the_authors_words(source: str) -> Iterator[None]:
    """Raise a fault of generated source again, with the places of the annotations in its stead."""
    try:
        yield
    except SourceError as error:
        lines = source.split("\n")
        others = tuple((role, _authored(place, lines)) for role, place in error.others)
        place = _authored(error.place, lines)
        raise type(error)(error.message, place, remedy=error.remedy, others=others) from None


def _authored(place: Place, lines: list[str]) -> Place:
    """Return where the event at a place was written; the place itself where the event does not tell."""
    found = _TOKEN.search(lines[place.line - 1]) if 0 < place.line <= len(lines) else None
    try:
        position = read_token(found.group(1)).position if found else None
    except TokenError:
        position = None
    if position is None:
        return place
    text = linecache.getline(position.file, position.line).rstrip("\r\n")
    column = position.column or len(text) - len(text.lstrip()) + 1
    return Place(position.file, position.line, column, text, width=max(1, len(text) - column + 1))
