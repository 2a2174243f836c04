# SPDX-License-Identifier: Apache-2.0
"""Lexical facts of CUDA C++: where literals and comments end, how a call's arguments lie, what a string says.

Everything here works on logical text (`Source.logical`: line splices gone) and on offsets into it.

What must be skipped without being read: `//` and `/* */` comments, string and character literals with any prefix,
raw strings (whose bodies keep line splices, so that their end is looked for in the physical text), and digit
separators, which look like character literals.  A quote without its partner takes the rest of its line: prose in an
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
#: Not behind a quote, where it would be the suffix of a literal.
_RAW_PREFIX = re.compile(r"(?:^|[^\w$\"'])(?:u8|[uUL])?R$")
_RAW_DELIMITER = re.compile(r'"([^()\\\s]{0,16})\(')
#: What can stand without a blank before a digit separator, and its tokens: numbers, words and character literals.
_RUN_BEFORE = re.compile(r"[\w$.']+$")
_IN_RUN = re.compile(r"(\.?\d(?:'?[\w$.])*)|[\w$]+|'[^']*'|.")
_HORIZONTAL = " \t\f\v\r"
_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)*")
#: A search is fast where its pattern begins with a set of letters, and slow where with a choice.
_IN_CALL = re.compile(r"[\"'()\[\]{},#/](?:(?<=/)(?:/[^\n]*|\*(?:[\s\S]*?\*/)?))?")
_BRACKET = re.compile(r"[\"'()\[\]{}/](?:(?<=/)(?:/[^\n]*|\*[\s\S]*?\*/))?")
_COMMENT_OR_LITERAL = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_CLOSER = {"(": ")", "[": "]", "{": "}"}


def skip_literal(source: Source, at: int) -> int:
    """Return the offset behind the string or character literal whose quote stands at `at`.

    A digit separator is skipped alone.  A quote without its partner takes the rest of its line, as compilers have it.
    """
    end = literal_end(source, at)
    return line_end(source.logical, at) if end is None else end


def literal_end(source: Source, at: int) -> int | None:
    """Return what `skip_literal` does, but None for a quote without its partner."""
    text = source.logical
    if text[at] == "'":
        between = at and text[at - 1].isalnum() and text[at + 1 : at + 2].isalnum()
        if between and _divides_number(source, at):
            return at + 1
        found = _CHARACTER.match(text, at)
        if found and _RUN_BEFORE.match(text[found.end() : found.end() + 1]):
            source.literal_ends.add(found.end())
        return found.end() if found else None
    if at and text[at - 1] == "R" and _RAW_PREFIX.search(text[max(0, at - 4) : at]):
        delimiter = _RAW_DELIMITER.match(text, at)
        if delimiter:
            closing = ")" + delimiter.group(1) + '"'
            end = source.text.find(closing, source.physical(delimiter.end() - 1))
            return source.to_logical(end + len(closing) - 1) + 1 if end >= 0 else len(text)
    found = _STRING.match(text, at)
    return found.end() if found else None


def _divides_number(source: Source, at: int) -> bool:
    """Say whether a number reaches up to `at`; a digit may also be a word's (`x1`) or a literal's (`'1'`)."""
    first = max(0, at - 64)
    if source.literal_ends:
        first = next((end for end in range(at, first, -1) if end in source.literal_ends), first)
    run = _RUN_BEFORE.search(source.logical[first:at])
    number = False
    for token in _IN_RUN.finditer(run.group() if run else ""):
        number = token.group(1) is not None
    return number


def line_end(text: str, at: int) -> int:
    """Return the offset of the newline that ends the line of `at`, or the text's end."""
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def starts_line(text: str, at: int, comment_end: int = -1) -> bool:
    """Say whether only blanks stand before `at` on its line, or between it and `comment_end`."""
    # Not by searching for the newline: a generated line can be megabytes long.
    begin, before = at, ""
    while begin and not before:
        window = text[max(0, begin - 64) : begin]
        before = window.rstrip(_HORIZONTAL)
        begin -= len(window) - len(before)
    return begin <= comment_end <= at or not before or before[-1] == "\n"


def skip_blank(text: str, at: int) -> int:
    """Return the offset of the first character from `at` on that is neither blank nor comment."""
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]  # matches the empty string everywhere


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call: offset behind its `(`, offset behind its `)`, and the span of each argument.

    Commas of template arguments separate too, as they do for the preprocessor; who wants one expression joins
    neighbouring spans.  Spans are trimmed of blanks and comments.
    """

    open: int
    end: int
    spans: tuple[tuple[int, int], ...]

    def moved(self, by: int) -> Arguments:
        """Return the arguments of the same text at another offset."""
        return Arguments(self.open + by, self.end + by, tuple((start + by, end + by) for start, end in self.spans))


def arguments(source: Source, callee: tuple[int, int], limit: int, *, directive: bool = False) -> Arguments | None:
    """Read the arguments of the call whose callee is the span `callee`; None where no `(` follows it.

    Args:
        source: the text.
        callee: the span of the callee.
        limit: the call must end before this offset (the end of its directive, or of the text).
        directive: the call stands in a directive.

    Raises:
        AnnotationError: the call is not closed, its brackets do not match, or a directive stands in it.
    """
    text = source.logical
    name = text[slice(*callee)]
    start = skip_blank(text, callee[1])
    if start >= limit or text[start] != "(":
        return None
    opened: list[tuple[str, int]] = [("(", start)]
    begin, position, raw = start + 1, start + 1, []
    comments: dict[int, int] = {}
    lead = -1  # the end of a comment before which its line holds nothing but blanks: a directive can follow it
    while opened:
        match = _IN_CALL.search(text, position, limit)
        if match is None:
            raise AnnotationError(
                f"the call of {name} is not closed",
                source.place(*callee),
                remedy="close its parenthesis" + (" before the directive's line ends" if directive else ""),
            )
        char, position = text[match.start()], match.end()
        if char == "/" and position == match.start() + 1:
            continue  # a division
        if char == "/":
            _check_comment(source, match.group(), match.start(), directive)
            lead = position if starts_line(text, match.start(), lead) else lead
            comments[match.start() + len(match.group().rstrip())] = match.start()
        elif char in "\"'":
            end = literal_end(source, match.start())
            if end is None:
                raise AnnotationError(
                    f"the quote {char} has no partner on its line",
                    source.place(match.start(), position),
                    remedy="close the literal",
                )
            position = end
        elif char == "#":
            if not directive and starts_line(text, match.start(), lead):
                raise AnnotationError(
                    f"a preprocessor directive stands inside the call of {name}",
                    source.place(match.start()),
                    remedy="put whole calls into the branches of the directive",
                )
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
    spans = tuple(_trim(text, first, last, comments) for first, last in raw)
    if len(spans) == 1 and spans[0][0] == spans[0][1]:
        spans = ()
    return Arguments(start + 1, position, spans)


def _check_comment(source: Source, comment: str, at: int, directive: bool) -> None:
    if comment == "/*":
        raise AnnotationError("the comment is not closed", source.place(at, at + 2), remedy="close it with */")
    if directive and "\n" in comment:
        # Its line breaks must stay for the line numbers, but would end the directive once the comment is gone.
        raise AnnotationError(
            "a comment in a macro's annotation goes on behind its line",
            source.place(at, at + 2),
            remedy="close the comment on its line, or end the line with a backslash",
        )


def _trim(text: str, start: int, end: int, comments: dict[int, int]) -> tuple[int, int]:
    """Return the span without blanks and comments at both of its ends; `comments` gives starts of comments by end."""
    start = min(skip_blank(text, start), end)
    while True:
        end = start + len(text[start:end].rstrip())
        before = comments.get(end)
        if before is None or before < start:
            return start, end
        end = before


def closing_bracket(source: Source, at: int) -> int | None:
    """Return the offset behind the bracket that closes the one at `at`, or None where the text ends before it."""
    text, depth, position = source.logical, 0, at
    while (match := _BRACKET.search(text, position)) is not None:
        char, position = text[match.start()], match.end()
        if char in "\"'":
            position = skip_literal(source, match.start())
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if not depth:
                return position
    return None


# --- String literals ---------------------------------------------------------------------------------------

_LITERAL_PREFIX = re.compile(r'(u8|[uUL])?(R)?"')
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]+)|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_SIMPLE = {"n": b"\n", "t": b"\t", "r": b"\r", "a": b"\a", "b": b"\b", "f": b"\f", "v": b"\v", "e": b"\x1b"}
_SIMPLE |= {char: char.encode() for char in ("\\", '"', "'", "?")}


def literal_at(source: Source, at: int) -> tuple[bytes, int] | None:
    """Return the bytes of the string literal that starts at `at`, and the offset behind it; None where none starts.

    Raises:
        AnnotationError: the literal is wide, or one of its escapes is none.
    """
    text = source.logical
    prefix = _LITERAL_PREFIX.match(text, at)
    if prefix is None:
        return None
    if prefix.group(1) in ("u", "U", "L"):
        raise AnnotationError(
            f"a literal with the prefix {prefix.group(1)} is not of bytes",
            source.place(*prefix.span()),
            remedy="write a plain literal, or one with the prefix u8",
        )
    quote = prefix.end() - 1
    end = literal_end(source, quote)
    if end is None:
        return None
    if prefix.group(2):
        body = source.text[source.physical(quote) : source.physical_end(end)]
        delimiter = _RAW_DELIMITER.match(body)
        if delimiter is None or not body.endswith('"'):
            return None
        inner = body[delimiter.end() : len(body) - len(delimiter.group(1)) - 2]
        return utf8(inner.replace("\r\n", "\n").replace("\r", "\n")), end
    return _unescape(source, quote + 1, end - 1), end


def _unescape(source: Source, start: int, end: int) -> bytes:
    text, out = source.logical, bytearray()
    for match in _ESCAPE.finditer(text, start, end):
        out += utf8(text[start : match.start()])
        start = match.end()
        data = _escaped(*match.groups())
        if data is None:
            raise AnnotationError(
                f"the escape {match.group()} is none, or not of one byte",
                source.place(*match.span()),
                remedy="write the character itself, or its bytes as \\x escapes of two digits",
            )
        out += data
    return bytes(out + utf8(text[start:end]))


def _escaped(
    hexadecimal: str | None, short: str | None, long: str | None, octal: str | None, simple: str | None
) -> bytes | None:
    """Return the bytes of one escape, or None where it is none."""
    if hexadecimal or octal:
        value = int(hexadecimal, 16) if hexadecimal else int(octal or "", 8)
        return bytes([value]) if value <= 0xFF else None
    if short or long:
        code = int(short or long or "", 16)
        return None if code > 0x10FFFF or 0xD800 <= code < 0xE000 else chr(code).encode("utf-8")
    return _SIMPLE.get(simple or "")


def utf8(text: str) -> bytes:
    """Return the bytes that the text was, or would be; of a lone surrogate, bytes that are not UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def without_comments(text: str) -> str:
    """Return an expression with each comment replaced by a blank, strings kept."""

    def blank(match: re.Match[str]) -> str:
        return " " if match.group().startswith(("//", "/*")) else match.group()

    return _COMMENT_OR_LITERAL.sub(blank, text) if "/" in text else text
