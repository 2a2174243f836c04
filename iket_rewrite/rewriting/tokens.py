# SPDX-License-Identifier: Apache-2.0
"""Lexical facts of CUDA C++: where literals and comments end, how a call's arguments lie, what a string says.

Everything here works on logical text (`Source.logical`: line splices gone) and on offsets into it.

What must be skipped without being read: `//` and `/* */` comments, string and character literals with any prefix,
raw strings (whose bodies keep line splices, so that their end is looked for in the physical text), and digit
separators, which look like character literals.  A quote without its partner on the line is no literal: prose in an
inactive `#if` branch ("don't") is legal.

What is deliberately not understood: templates, macros' expansions, conditional compilation (every branch is read),
trigraphs and digraphs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import AnnotationError
from ..source import Source

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_CHARACTER = re.compile(r"'(?:[^'\\\n]|\\.)*'")
_RAW_PREFIX = re.compile(r"(?:^|[^\w$])(?:u8|[uUL])?R$")
_RAW_DELIMITER = re.compile(r'"([^()\\\s]{0,16})\(')
_NUMBER_BEFORE = re.compile(r"(?:^|[^\w$.])\.?\d[\w.']*$")
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)*")
_IN_CALL = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|/\*|[\"'()\[\]{},]")
_COMMENT = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/")
_DIRECTIVE = re.compile(r"^[ \t]*#", re.MULTILINE)
_CLOSER = {"(": ")", "[": "]", "{": "}"}


def skip_literal(source: Source, at: int) -> int:
    """Return the offset behind the string or character literal whose quote stands at `at`.

    Where the quote opens no literal, that is the offset behind the quote.
    """
    text = source.logical
    if text[at] == "'":
        if at and (text[at - 1].isalnum() or text[at - 1] == "_") and _NUMBER_BEFORE.search(text[max(0, at - 64) : at]):
            return at + 1
        found = _CHARACTER.match(text, at)
        return found.end() if found else at + 1
    if at and text[at - 1] == "R" and _RAW_PREFIX.search(text[max(0, at - 4) : at]):
        delimiter = _RAW_DELIMITER.match(text, at)
        if delimiter:
            closing = ")" + delimiter.group(1) + '"'
            end = source.text.find(closing, source.physical(delimiter.end() - 1))
            return source.to_logical(end + len(closing) - 1) + 1 if end >= 0 else len(text)
    found = _STRING.match(text, at)
    return found.end() if found else at + 1


def skip_blank(text: str, at: int) -> int:
    """Return the offset of the first character from `at` on that is neither blank nor comment."""
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]  # matches the empty string everywhere


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without blanks and comments at both of its ends."""
    start = min(skip_blank(text, start), end)
    last = start
    position = start
    # Comments can only be told from the front; the last piece that is not one ends the span.
    for match in _COMMENT_OR_LITERAL.finditer(text, start, end):
        piece = text[position : match.start()].rstrip()
        if piece:
            last = position + len(piece)
        position = match.end()
        if not match.group().startswith(("//", "/*")):
            last = position
    piece = text[position:end].rstrip()
    return start, position + len(piece) if piece else last


_COMMENT_OR_LITERAL = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call: offset behind its `(`, offset behind its `)`, and the span of each argument.

    Commas of template arguments separate too, as they do for the preprocessor; who wants one expression joins
    neighbouring spans.  Spans are trimmed of blanks and comments.
    """

    open: int
    end: int
    spans: tuple[tuple[int, int], ...]


def arguments(source: Source, callee: tuple[int, int], limit: int) -> Arguments | None:
    """Read the arguments of the call whose callee is the span `callee`; None where no `(` follows it.

    Args:
        source: the text.
        callee: the span of the callee.
        limit: the call must end before this offset (the end of its directive, or of the text).

    Raises:
        AnnotationError: the call is not closed, its brackets do not match, or a directive stands in it.
    """
    text = source.logical
    start = skip_blank(text, callee[1])
    if start >= limit or text[start] != "(":
        return None
    name = text[callee[0] : callee[1]]
    opened: list[tuple[str, int]] = [("(", start)]
    begin, position, raw = start + 1, start + 1, []
    while opened:
        match = _IN_CALL.search(text, position, limit)
        if match is None:
            raise AnnotationError(
                f"the call of {name} is not closed",
                source.place(*callee),
                remedy="close its parenthesis" + ("" if limit == len(text) else " before the directive's line ends"),
            )
        char, position = text[match.start()], match.end()
        if char == "/":
            if match.group() == "/*":
                raise AnnotationError("the comment is not closed", source.place(match.start(), position))
        elif char in "\"'":
            position = skip_literal(source, match.start())
        elif char in "([{":
            opened.append((char, match.start()))
        elif char == ",":
            if len(opened) == 1:
                raw.append((begin, match.start()))
                begin = position
        else:
            bracket, where = opened.pop()
            if _CLOSER[bracket] != char:
                raise AnnotationError(
                    f"unbalanced brackets in the call of {name}: {bracket!r} is closed by {char!r}",
                    source.place(match.start(), position),
                    others=((f"{bracket!r} opened here", source.place(where, where + 1)),),
                    remedy="balance the brackets of the payload",
                )
    raw.append((begin, position - 1))
    body = text[start + 1 : position - 1]
    if "#" in body and "\n" in body and limit == len(text) and (found := _DIRECTIVE.search(body)):
        raise AnnotationError(
            f"a preprocessor directive stands inside the call of {name}",
            source.place(start + 1 + found.end() - 1),
            remedy="put whole calls into the branches of the directive",
        )
    spans = tuple(trim(text, first, last) for first, last in raw)
    if len(spans) == 1 and spans[0][0] == spans[0][1]:
        spans = ()
    return Arguments(start + 1, position, spans)


# --- String literals ---------------------------------------------------------------------------------------

_LITERAL_PREFIX = re.compile(r'(u8|[uUL])?(R)?"')
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]+)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = {b"n": 10, b"t": 9, b"r": 13, b"a": 7, b"b": 8, b"f": 12, b"v": 11, b"e": 27}
_SIMPLE |= {char: char[0] for char in (b"\\", b'"', b"'", b"?")}


def literal_at(source: Source, at: int) -> tuple[bytes, int] | None:
    """Return the bytes of the string literal that starts at `at`, and the offset behind it.

    None where no string literal of one-byte characters starts there, or one of its escapes is none.
    """
    text = source.logical
    prefix = _LITERAL_PREFIX.match(text, at)
    if prefix is None or prefix.group(1) in ("u", "U", "L"):
        return None
    quote = prefix.end() - 1
    end = skip_literal(source, quote)
    if end <= quote + 1:
        return None
    if prefix.group(2):
        body = source.text[source.physical(quote) : source.physical_end(end)]
        delimiter = _RAW_DELIMITER.match(body)
        if delimiter is None or not body.endswith('"'):
            return None
        inner = body[delimiter.end() : len(body) - len(delimiter.group(1)) - 2]
        return inner.replace("\r\n", "\n").encode("utf-8", "surrogateescape"), end
    value = _unescape(text[quote + 1 : end - 1].encode("utf-8", "surrogateescape"))
    return None if value is None else (value, end)


def _unescape(data: bytes) -> bytes | None:
    if b"\\" not in data:
        return data
    out, position = bytearray(), 0
    for match in _ESCAPE.finditer(data):
        out += data[position : match.start()]
        position = match.end()
        hexadecimal, short, long, octal, simple = match.groups()
        if hexadecimal or octal:
            value = int(hexadecimal, 16) if hexadecimal else int(octal, 8)
            if value > 0xFF:
                return None
            out.append(value)
        elif short or long:
            code = int(short or long, 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                return None
            out += chr(code).encode("utf-8")
        elif simple in _SIMPLE:
            out.append(_SIMPLE[simple])
        else:
            return None
    return bytes(out + data[position:])


def without_comments(text: str) -> str:
    """Return an expression with each comment replaced by a blank, strings kept."""

    def blank(match: re.Match[str]) -> str:
        return " " if match.group().startswith(("//", "/*")) else match.group()

    return _COMMENT_OR_LITERAL.sub(blank, text) if "/" in text else text
