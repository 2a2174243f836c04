# SPDX-License-Identifier: Apache-2.0
"""Draw texts that are hard to read, and compare the scanner with the naive reader on each."""

from __future__ import annotations

import random

from fuzzing.naive import Refused, calls

from iket_rewrite import AnnotationError
from iket_rewrite.rewriting.scan import scan
from iket_rewrite.source import Source

NAME = "IKET_MARK"
PIECES = (
    *('IKET_MARK("m")', "IKET_MARK ( a, [b] )", "IKET_MARK", 'IKET_MARK("m", (x', "IKET_MARK(IKET_MARK(1))") * 3,
    *("MY_IKET_MARK(1)", "IKET_MARKER(2)", "(", ")", "[", "]", "{", "}", ",", ";", "a", "_", "1", "0x1'F", "1'0"),
    *('"', "'", '"text"', "'c'", "\\", '\\"', "'\\''", 'R"x(', ')x"', 'R"(', ')"', "u8R", "LR", "R", "u8"),
    *("//", "/*", "*/", "/", "*", "/**/", "/*/", "\n", "\n", "\n", " ", "\t", "#", "##"),
    *("\n#define M ", "\n#define M(x) ", "\n#define IKET_MARK(x) ", "\n#pragma ", "\n#error don't ", "\n# if 0\n"),
    *("\n#if 0 // c\n", "\n#if X\n", "\n#ifdef Y\n", "\n#else\n", "\n#elif Z\n", "\n#endif\n", "\n/**/#endif\n"),
    *("\\\n", "\\ \n", "\r\n", "é", "$", "."),
)


def text_of(source: random.Random) -> str:
    """Draw a text."""
    return "".join(source.choice(PIECES) for _ in range(source.randrange(1, 25)))


def difference(text: str) -> str:
    """Say how the two readers differ on a text, or return an empty string."""
    source = Source(text)
    if source.spliced and 'R"' in source.logical:
        # The bodies of raw strings keep their splices, which logical text does not show.
        return ""
    try:
        expected: list[int] | str = calls(source.logical, NAME)
    except Refused as error:
        expected = f"refused: {error}"
    try:
        found: list[int] | str = [call.start for call in scan(source, [NAME], strict=False).calls]
    except AnnotationError as error:
        found = f"refused: {error.message}"
    if isinstance(expected, str) and isinstance(found, str):
        return ""
    return "" if expected == found else f"{text!r}: the scanner says {found}, the naive reader {expected}"
