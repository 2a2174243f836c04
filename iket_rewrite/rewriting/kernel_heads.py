# SPDX-License-Identifier: Apache-2.0
"""Read what stands between `__global__` and a kernel's body: specifiers, attributes, its name, its parameters."""

from __future__ import annotations

import re

from ..source import Source
from .found import Kernel
from .known_names import CALLED_SPECIFIERS
from .tokens import closing_bracket, skip_blank

_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
#: What may stand with parentheses of its own between `__global__` and the kernel's name.
_SPECIFIERS = frozenset([*CALLED_SPECIFIERS, "decltype", "noexcept"])
#: How most kernels are declared; others are read word by word.
_PLAIN_KERNEL = re.compile(
    r"(?:\s|void\b|__launch_bounds__\([\w\s,]*\))*([A-Za-z_$][\w$]*)\s*\(([^()\[\]{}\"'/#]*)\)\s*\{"
)
#: What may stand between a function's parameters and its body.
_BEHIND_PARAMETERS = frozenset(["noexcept", "requires", "try", "__attribute__"])
_BODY_OR_BRACKET = re.compile(r"//[^\n]*|/\*[\s\S]*?\*/|[({;}=#]")
_ANGLE = re.compile(r"[<>(){};]")


class KernelHeads:
    """Reads the heads of the kernels of a text.

    Args:
        source: the text.
        text: as much of its logical text as is read.
    """

    def __init__(self, source: Source, text: str) -> None:
        self.source, self.text = source, text

    def kernel(self, at: int) -> Kernel | None:
        """Return the kernel whose `__global__` ends at `at`, where a body follows."""
        text, position, name = self.text, at, ""
        plain = _PLAIN_KERNEL.match(text, at)
        if plain is not None and plain.group(1) not in _SPECIFIERS:
            return Kernel(plain.group(1), plain.span(2), plain.end() - 1)
        while (position := skip_blank(text, position)) < len(text) and text[position] not in ";{}=#":
            word = _IDENTIFIER.match(text, position)
            if word is not None:
                name, position = word.group(), word.end()
            elif text[position] == "<":
                position = self._angle_end(position)
            elif text[position] != "(":
                position += 1
            elif (closed := closing_bracket(self.source, position)) is None:
                return None
            elif name in _SPECIFIERS or self._is_specifier(closed):
                position = closed
            else:
                body = self._body(closed)
                return Kernel(name, (position + 1, closed - 1), body) if name and body is not None else None
        return None

    def _is_specifier(self, closed: int) -> bool:
        """Say whether the brackets that end at `closed` belong to a macro before the kernel's name."""
        word = _IDENTIFIER.match(self.text, skip_blank(self.text, closed))
        return word is not None and word.group() not in _BEHIND_PARAMETERS

    def _body(self, closed: int) -> int | None:
        """Return the offset of the `{` of a function whose parameters end at `closed`, or None where it has none."""
        position: int | None = skip_blank(self.text, closed)
        if self.text.startswith("(", position):
            return None  # a macro has made the name
        while position is not None and (match := _BODY_OR_BRACKET.search(self.text, position)) is not None:
            char, position = self.text[match.start()], match.end()
            if char == "(":
                position = closing_bracket(self.source, match.start())
            elif char != "/":
                return match.start() if char == "{" else None
        return None

    def _angle_end(self, at: int) -> int:
        """Return the offset behind the template arguments that open at `at`."""
        depth, position = 0, at
        while (match := _ANGLE.search(self.text, position)) is not None:
            char, position = match.group(), match.end()
            if char == "(":
                position = closing_bracket(self.source, match.start()) or len(self.text)
            elif char in "<>":
                depth += 1 if char == "<" else -1
                if not depth:
                    return position
            else:
                return match.start()
        return len(self.text)
