# SPDX-License-Identifier: Apache-2.0
"""Make text of CUDA C++ that a parser of plain C++ reads, with every character at its old offset.

Parsers of source know nothing of macros, and tree-sitter's grammar stumbles over `__align__`, inline assembly and a
directive in the middle of a statement.  So what is not needed is blanked here: comments, the insides of literals,
CUDA's specifiers, directives and the branches that they leave out.  Annotations and assembly become the number 0,
which may stand wherever they may.  Characters beyond ASCII become a letter: an offset in bytes is one in characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..rewriting.known_names import CALLED_SPECIFIERS
from ..rewriting.tokens import closing_bracket, line_end, skip_blank, skip_literal, starts_line
from ..source import Source

#: Words that say where something runs or lies.
_BARE = (
    r"__global__|__device__|__host__|__shared__|__constant__|__managed__|__grid_constant__|__tile_global__|volatile"
    r"|__forceinline__|__noinline__|__inline__|__restrict__|__restrict|__volatile__|__extension__"
)
#: Words with parentheses of their own.
_CALLED = (*CALLED_SPECIFIERS, "__align__", "__nv_pure__", "_Pragma")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?!\w|\()([^\n]*)$", re.MULTILINE)
_ASM = ("asm", "__asm__", "__asm")
_NOT_CODE = r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|[\"'#]|\[\[[^\[\]\n]*\]\]"
#: `PROJECT_DEVICE void f()`, `PROJECT_UNROLL for (...)`: macros of other files, by their looks.
_LIKE_A_SPECIFIER = r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]*\b(?=\s+[A-Za-z_])|(?<=\)\s)[A-Z][A-Z0-9]*_[A-Z0-9_]*\b(?=\s*\{)"
#: `f(typename T::Shape{})`: the grammar knows the word elsewhere, and a parameter's name is never qualified.
_TYPENAME = r"\btypename\b(?=\s+\w+(?:<[^<>]*>)?::)"
#: What may be a macro's body that leaves no code.
_NO_CODE = re.compile(rf"//[^\n]*|/\*[\s\S]*?\*/|\b(?:{'|'.join(_CALLED)})\b\s*\([^\n]*\)|\b(?:{_BARE})\b|\s+")
_PREFIX = re.compile(r"\b(?:u8|[uUL])?R?\Z")
#: What other files call a macro that stands for `#pragma unroll`.
_UNROLLS = re.compile(r"(?<!NO_)(?<!DONT_)(?<!NOT_)UNROLL\Z")
_PRAGMA = re.compile(r"\b_Pragma\s*\(\s*\"([^\"\n]*)\"\s*\)")
_DIRECTIVE = re.compile(r"#\s*(\w*)([^\n]*)")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_VISIBLE = re.compile(r"[^\n]")
_ASM_WORDS = re.compile(r"(?:\s|volatile\b|__volatile__\b|goto\b|inline\b)*")


@dataclass(frozen=True, slots=True)
class Directive:
    """One preprocessor directive: where it stands, its word, and what follows the word."""

    start: int
    end: int
    word: str
    rest: str


@dataclass(slots=True)
class Masked:
    """Text with the same offsets as its original.

    Attributes:
        text: the masked text.
        directives: the directives that were blanked, in order.
        assembly: by the start of each inline assembly, its end.
        pragmas: by the end of each `_Pragma`, or of a macro that stands for one, what it says.
    """

    text: str
    directives: list[Directive] = field(default_factory=list)
    assembly: dict[int, int] = field(default_factory=dict)
    pragmas: dict[int, str] = field(default_factory=dict)


def mask(source: Source, spans: Iterable[tuple[int, int]]) -> Masked:
    """Return the text for the parser.

    Args:
        source: the text.
        spans: the spans of annotations, in order.
    """
    return _Masker(source).run(spans)


def blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text with the spans blanked, line ends kept; they are in order and do not overlap."""
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += (text[position:start], _VISIBLE.sub(" ", text[start:end]))
        position = end
    return "".join((*pieces, text[position:]))


class _Masker:
    def __init__(self, source: Source) -> None:
        self.source, self.original = source, source.logical
        self.result = Masked("")
        #: Macros that stand for specifiers, pragmas or nothing.
        self.blank_macros = {name: body for name, body in _DEFINE.findall(self.original) if not _NO_CODE.sub("", body)}
        words = sorted((*_CALLED, *_ASM, *self.blank_macros), key=len, reverse=True)
        self.stop = re.compile(rf"{_NOT_CODE}|\b(?:{'|'.join((_BARE, *words))})\b|{_LIKE_A_SPECIFIER}|{_TYPENAME}")
        self.pieces: list[str] = []
        self.done = 0

    def run(self, spans: Iterable[tuple[int, int]]) -> Masked:
        text, position = self.original, 0
        for start, end in [*spans, (len(text), len(text))]:
            while (found := self.stop.search(text, position, start)) is not None:
                position = max(self._stop(found.start(), found.group()), found.start() + 1)
            if start < len(text):
                self._replace(start, end, self._zero(start, end, statement=True))
                position = max(position, end)
        self.pieces.append(text[self.done :])
        plain = _CONTROL.sub(" ", _NOT_ASCII.sub("x", "".join(self.pieces)))
        self.result.text = plain
        return self.result

    def _replace(self, start: int, end: int, new: str) -> None:
        if start < self.done:
            return
        self.pieces += (self.original[self.done : start], new)
        self.done = end

    def _blank(self, start: int, end: int) -> int:
        self._replace(start, end, _VISIBLE.sub(" ", self.original[start:end]))
        return end

    def _zero(self, start: int, end: int, *, statement: bool) -> str:
        blank = _VISIBLE.sub(" ", self.original[start:end])
        following = self.original[(after := skip_blank(self.original, end)) : after + 1]
        # A macro may bring its semicolon along.
        own_end = ";" if statement and (following.isalnum() or following in ("_", "}", "{", "#")) else ""
        return f"0{blank[1 : len(blank) - len(own_end)]}{own_end}"

    def _stop(self, at: int, word: str) -> int:
        if at < self.done:
            return self.done
        if word[0] == "/" or word.startswith("[["):
            return self._blank(at, at + len(word))
        if word in "\"'":
            return self._literal(at)
        if word == "#":
            return self._directive(at) if starts_line(self.original, at, self.done) else at + 1
        if word in _ASM:
            return self._assembly(at, at + len(word))
        end = at + len(word)
        if word in _CALLED:
            opened = skip_blank(self.original, end)
            if self.original.startswith("(", opened):
                end = closing_bracket(self.source, opened) or end
        self._note_pragma(word, at, end)
        return self._blank(at, end)

    def _note_pragma(self, word: str, at: int, end: int) -> None:
        text = self.original[at:end] if word == "_Pragma" else self.blank_macros.get(word, "")
        if (found := _PRAGMA.search(text)) is not None:
            self.result.pragmas[end] = found.group(1)
        elif _UNROLLS.search(word) is not None and word not in self.blank_macros:
            self.result.pragmas[end] = "unroll"

    def _literal(self, at: int) -> int:
        end = skip_literal(self.source, at)
        quote = self.original[at]
        prefix = _PREFIX.search(self.original, max(0, at - 3), at)
        start = prefix.start() if prefix is not None and prefix.start() >= self.done else at
        blank = _VISIBLE.sub(" ", self.original[at + 1 : end - 1])
        if quote == "'" and end == at + 1:
            return end  # a digit separator
        lead = " " * (at - start)
        self._replace(start, end, f"{lead}0{blank} " if quote == "'" else f'{lead}"{blank}"')
        return end

    def _directive(self, at: int) -> int:
        end = line_end(self.original, at)
        opened = self.original.rfind("/*", at, end)
        if opened >= 0 and self.original.find("*/", opened, end) < 0 and "//" not in self.original[at:opened]:
            closed = self.original.find("*/", opened)
            end = line_end(self.original, closed) if closed >= 0 else len(self.original)
        found = _DIRECTIVE.match(self.original, at, end)
        if found is not None:
            self.result.directives.append(Directive(at, end, found.group(1), found.group(2)))
        return self._blank(at, end)

    def _assembly(self, at: int, end: int) -> int:
        opened = _ASM_WORDS.match(self.original, end).end()  # type: ignore[union-attr]  # matches the empty string
        closed = closing_bracket(self.source, opened) if self.original.startswith("(", opened) else None
        if closed is None:
            return end
        self.result.assembly[at] = closed
        self._replace(at, closed, self._zero(at, closed, statement=False))
        return closed
