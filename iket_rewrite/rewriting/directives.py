# SPDX-License-Identifier: Apache-2.0
"""Read preprocessor directives: where each ends, what it defines or includes, which branch is never compiled."""

from __future__ import annotations

import re

from ..source import Source
from .found import Include, Macro
from .tokens import line_end, skip_literal, starts_line, without_comments

#: What may stand between the words of a directive.
_GAP = r"(?:[ \t\f\v]|/\*[\s\S]*?\*/)*"
_DIRECTIVE = re.compile(rf"#{_GAP}(\w*)")
CONDITIONALS = frozenset(["if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"])
_DEFINE = re.compile(rf"#{_GAP}define(?![\w$]){_GAP}([A-Za-z_$][\w$]*)(\(([^()]*)\))?")
#: What stands behind the word of an include; a name that a macro gives is not read.
_INCLUDED = re.compile(rf"{_GAP}(?:\"([^\"\n]+)\"|<([^>\n]+)>)")
INCLUDES = frozenset(["include", "include_next", "import"])
_MAYBE_INCLUDE = re.compile(rf"#{_GAP}(?:include|import)")
_IN_DIRECTIVE = re.compile(r"//[^\n]*|/\*(?:[\s\S]*?\*/)?|[\"'\n]")
_IN_DEAD_BRANCH = re.compile(r"//[^\n]*|/\*(?:[\s\S]*?\*/)?|[\"'#]")
#: The one condition that needs no preprocessor: a way to comment out.
_FALSE = frozenset(["0", "false", "(0)", "(false)"])


class Directives:
    """Reads the directives of a text.

    Args:
        source: the text.
        text: as much of its logical text as is read.
    """

    def __init__(self, source: Source, text: str) -> None:
        self.source, self.text = source, text

    def word(self, at: int, end: int) -> tuple[str, int]:
        """Return the word of the directive at `at`, which ends at `end`, and the offset behind it."""
        found = _DIRECTIVE.match(self.text, at, end)
        return (found.group(1), found.end()) if found else ("", at)

    def define(self, at: int, end: int) -> tuple[Macro, int] | None:
        """Return the macro that the directive at `at` defines, and where its body begins."""
        found = _DEFINE.match(self.text, at, end)
        if found is None:
            return None
        parameters = None if found.group(3) is None else _split(found.group(3))
        return Macro(found.group(1), parameters, at, end), found.end()

    def include(self, at: int, behind: int, word: str) -> Include:
        """Return the include at `at`, whose word ends at `behind`."""
        found = _INCLUDED.match(self.text, behind)
        quoted, angled = found.groups() if found is not None else ("", None)
        return Include(at, quoted if angled is None else angled, angled is not None, word == "include_next")

    def is_false(self, behind: int, end: int) -> bool:
        """Say whether an `#if` never holds, whatever is defined."""
        return without_comments(self.text[behind:end]).strip() in _FALSE

    def end(self, at: int) -> int:
        """Return the offset of the newline that ends the directive at `at`: not one in a comment or raw string."""
        position, end = at, line_end(self.text, at)
        line = self.text[at:end]
        if "/" not in line and '"' not in line and "'" not in line:
            return end
        while (match := _IN_DIRECTIVE.search(self.text, position)) is not None:
            if match.group() == "\n":
                return match.start()
            if match.group() == "/*":
                break
            position = skip_literal(self.source, match.start()) if match.group() in "\"'" else match.end()
        return len(self.text)

    def dead_branch_end(self, at: int) -> int:
        """Return the offset of the directive that ends the branch of an `#if 0` whose line ends at `at`."""
        text, position, depth, lead = self.text, at, 0, -1
        while (match := _IN_DEAD_BRANCH.search(text, position)) is not None:
            start, position = match.span()
            if text[start] in "\"'":
                position = skip_literal(self.source, start)
            elif match.group() == "/*":
                break
            elif text[start] == "/":
                lead = position if starts_line(text, start, lead) else lead
            elif starts_line(text, start, lead):
                word = _DIRECTIVE.match(text, start)
                name = word.group(1) if word else ""
                position = self.end(start)
                if name in ("if", "ifdef", "ifndef"):
                    depth += 1
                elif name in CONDITIONALS and depth == 0:
                    return start
                elif name == "endif":
                    depth -= 1
        return len(text)


def last_include(text: str) -> int | None:
    """Return an offset in the last line that may include a file, or None."""
    return max((match.end() for match in _MAYBE_INCLUDE.finditer(text)), default=None)


def _split(parameters: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, without_comments(parameters).split(","))))
