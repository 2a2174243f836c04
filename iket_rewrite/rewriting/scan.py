# SPDX-License-Identifier: Apache-2.0
"""Find the calls of given names in CUDA C++ text, with what surrounds each of them.

One pass with one regular expression that stops only at what matters: openers of comments and literals, braces,
directives, `__global__`, and names that may be callees.  Everything between is never looked at.  Per call the pass
tells the kernel that encloses it, the `#define` that it stands in, and the blocks that are open around it.

The pass proves itself: an independent count of the callees' names over the whole text must equal the calls found
plus the names seen in comments, literals and directives.  A name that is neither is an error, never passed over.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field

from .. import abi
from ..errors import AnnotationError
from ..source import Source
from .tokens import Arguments, arguments, skip_blank, skip_literal

_CONDITIONAL = re.compile(r"#[ \t]*(ifdef|ifndef|if|elif|elifdef|elifndef|else|endif)\b")
_CONDITIONAL_LINE = re.compile(r"^[ \t]*" + _CONDITIONAL.pattern, re.MULTILINE)
#: The one condition that needs no preprocessor: a way to comment out.
_IF_ZERO = re.compile(r"#[ \t]*if[ \t]+(?:0|false)[ \t]*(?=$|/)", re.MULTILINE)
_DEFINE = re.compile(r"#[ \t]*define[ \t]+([A-Za-z_$][\w$]*)(\(([^()]*)\))?")
_COMMENT_OPENER = re.compile(r"/[/*]")
_LEADING_COMMENTS = re.compile(r"(?:\s|/\*[\s\S]*?\*/)*\Z")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
#: What may stand with parentheses of its own between `__global__` and the kernel's name.
_SPECIFIERS = frozenset(
    [
        "__launch_bounds__",
        "__cluster_dims__",
        "__maxnreg__",
        "__block_size__",
        "__attribute__",
        "__declspec",
        "alignas",
        "decltype",
        "noexcept",
        "__nv_register_params__",
        "__local_maxnreg__",
    ]
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `__global__` function with a body: its name, the span of its parameters, the offset of its `{`."""

    name: str
    parameters: tuple[int, int]
    body: int


@dataclass(frozen=True, slots=True)
class Macro:
    """A `#define`: its name, its parameters (None for an object-like one), and where its line ends."""

    name: str
    parameters: tuple[str, ...] | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a name that was looked for.

    Attributes:
        callee: the name.
        start, end: the call, from its name to behind its closing parenthesis.
        arguments: its arguments.
        kernel: the kernel that encloses it, where that is known.
        macro: the `#define` in whose body it stands, or None.
        blocks: offsets of the `{` that are open around it, outermost first.
    """

    callee: str
    start: int
    end: int
    arguments: Arguments
    kernel: Kernel | None
    macro: Macro | None
    blocks: tuple[int, ...]


@dataclass(slots=True)
class Scan:
    """What one pass found.

    Attributes:
        calls: the calls, in the order of the text.
        kernel_ends: by the offset of a kernel's `{`, the offset of its `}`.
        has_metadata: IKET's metadata arrays stand in the text: somebody has instrumented it before.
    """

    calls: list[Call] = field(default_factory=list)
    kernel_ends: dict[int, int] = field(default_factory=dict)
    has_metadata: bool = False


def scan(source: Source, callees: Collection[str]) -> Scan:
    """Find every call of one of `callees` in the source.

    Raises:
        AnnotationError: a callee's name that is no call, a call that is not closed, a call inside another one.
    """
    return _Scanner(source, callees).run()


def find_uses(source: Source, macros: Collection[str]) -> list[Call]:
    """Find every use of one of the function-like macros; a name without parentheses is something else.

    Raises:
        AnnotationError: a use that is not closed.
    """
    return _Scanner(source, macros, strict=False).run().calls


def _names(callees: Collection[str]) -> str:
    return r"(?<![\w$])(?:" + "|".join(sorted(map(re.escape, callees), key=len, reverse=True)) + r")(?![\w$])"


class _Scanner:
    """The state of one pass."""

    def __init__(self, source: Source, callees: Collection[str], strict: bool = True) -> None:
        self.source = source
        self.strict = strict
        self.text = source.logical
        self.callees = frozenset(callees)
        self.name = re.compile(_names(callees))
        self.shortest = min(map(len, self.callees))
        # Longest first, so that a name is never taken for its prefix.
        words = "|".join(sorted(map(re.escape, callees), key=len, reverse=True))
        self.opener = re.compile(
            r"[{}\"'#]|/(?:/[^\n]*|\*(?:[\s\S]*?\*/)?)|(?:" + words + rf"|__global__|{abi.META_SYMBOL})(?![\w$])"
        )
        self.result = Scan()
        self.mentions = 0
        self.open: list[tuple[int, Kernel | None]] = []
        self.branches: list[list[tuple[int, Kernel | None]]] = []
        self.bodies: dict[int, Kernel] = {}
        self.macro: Macro | None = None
        self.macro_end = -1

    def run(self) -> Scan:
        text, search, position = self.text, self.opener.search, 0
        while (match := search(text, position)) is not None:
            start, position = match.span()
            if self.macro is not None and start >= self.macro_end:
                self.macro = None
            char = text[start]
            if char == "{":
                if self.macro is None:
                    self.open.append((start, self.bodies.pop(start, self.open[-1][1] if self.open else None)))
            elif char == "}":
                if self.macro is None and self.open:
                    opened, kernel = self.open.pop()
                    if kernel is not None and kernel.body == opened:
                        self.result.kernel_ends[opened] = start
            elif char == "/":
                position = self._comment(start, position)
            elif char in "\"'":
                position = skip_literal(self.source, start)
                self._mention(start, position)
            elif char == "#":
                position = self._directive(start)
            elif start and (text[start - 1].isalnum() or text[start - 1] in "_$"):
                continue  # the tail of a longer name
            elif match.group() == "__global__":
                if self.macro is None:
                    self._kernel(position)
            elif match.group() == abi.META_SYMBOL:
                self.result.has_metadata = True
            else:
                self._call(start, position)
        if self.strict:
            self._check()
        return self.result

    def _comment(self, start: int, end: int) -> int:
        if self.text.startswith("/*", start):
            if end == start + 2:
                end = len(self.text)  # not closed: everything behind it is comment
            if self.macro is not None and end > self.macro_end:
                self._macro_until(self._line_end(end))
        self._mention(start, end)
        return end

    def _mention(self, start: int, end: int) -> None:
        """Account for callees' names in text that is skipped."""
        if end - start >= self.shortest:
            self.mentions += len(self.name.findall(self.text, start, end))

    def _line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return end if end >= 0 else len(self.text)

    def _macro_until(self, end: int) -> None:
        self.macro_end = end
        if self.macro is not None:
            self.macro = Macro(self.macro.name, self.macro.parameters, self.macro.start, end)

    def _directive(self, at: int) -> int:
        """Handle a `#`; return where to go on."""
        text = self.text
        if self.macro is not None:
            return at + 1  # an operator in a macro's body
        line = text.rfind("\n", 0, at) + 1
        if text[line:at].strip() and not _LEADING_COMMENTS.match(text, line, at):
            return at + 1
        end = self._line_end(at)
        if (define := _DEFINE.match(text, at)) is not None and define.end() <= end:
            names = define.group(3)
            parameters = None if names is None else tuple(name.strip() for name in names.split(",") if name.strip())
            self.macro = Macro(define.group(1), parameters, at, end)
            self.macro_end = end
            self._mention(at, define.end())
            return define.end()
        if (conditional := _CONDITIONAL.match(text, at)) is not None:
            self._branch(conditional.group(1))
            if _IF_ZERO.match(text, at):
                dead = self._dead_branch(end)
                self._mention(at, dead)
                return dead
            # A comment may start here and run over several lines.
            comment = _COMMENT_OPENER.search(text, conditional.end(), end)
            end = comment.start() if comment else end
        self._mention(at, end)
        return end

    def _dead_branch(self, at: int) -> int:
        """Return the offset of the directive that ends the branch of an `#if 0` whose line ends at `at`."""
        depth = 0
        for match in _CONDITIONAL_LINE.finditer(self.text, at):
            word = match.group(1)
            if word.startswith("if"):
                depth += 1
            elif depth == 0:
                return match.start()
            elif word == "endif":
                depth -= 1
        return len(self.text)

    def _branch(self, word: str) -> None:
        """Open blocks are those at the `#if` again in each of its other branches."""
        if word.startswith("if"):
            self.branches.append(list(self.open))
        elif word == "endif":
            if self.branches:
                self.branches.pop()
        elif self.branches:
            self.open = list(self.branches[-1])

    def _kernel(self, at: int) -> None:
        """Note the body of the kernel whose `__global__` ends at `at`, where one follows."""
        text, position, name = self.text, at, ""
        while True:
            position = skip_blank(text, position)
            word = _IDENTIFIER.match(text, position)
            if word is not None:
                name, position = word.group(), word.end()
            elif text.startswith("(", position):
                closed = self._brackets(position)
                if closed is None:
                    return
                if name not in _SPECIFIERS:
                    break
                position = closed
            elif position >= len(text) or text[position] in ";{}=#":
                return
            else:
                position += 1
        parameters = (position + 1, closed - 1)
        body = skip_blank(text, closed)
        while (word := _IDENTIFIER.match(text, body)) is not None:  # noexcept, requires X
            body = skip_blank(text, word.end())
        if text.startswith("{", body):
            self.bodies[body] = Kernel(name, parameters, body)

    def _brackets(self, at: int) -> int | None:
        try:
            found = arguments(self.source, (at, at), len(self.text))
        except AnnotationError:
            return None
        return found.end if found else None

    def _call(self, start: int, end: int) -> None:
        name = self.text[start:end]
        limit = self.macro_end if self.macro is not None else len(self.text)
        found = arguments(self.source, (start, end), limit)
        if found is None:
            if not self.strict:
                return
            raise AnnotationError(
                f"{name} is named here but not called",
                self.source.place(start, end),
                remedy=f"write a call, {name}(...); an annotation can not be passed on by its name",
            )
        calls = self.result.calls
        if calls and start < calls[-1].end and self.strict:
            outer = calls[-1]
            raise AnnotationError(
                f"{name} stands inside the call of {outer.callee}",
                self.source.place(start, end),
                others=(("the outer call", self.source.place(outer.start, outer.start + len(outer.callee))),),
                remedy="write two statements",
            )
        blocks = tuple(offset for offset, _ in self.open)
        kernel = self.open[-1][1] if self.open else None
        calls.append(Call(name, start, found.end, found, kernel, self.macro, blocks))

    def _check(self) -> None:
        """Compare with a count that knows nothing of comments, literals or calls."""
        everywhere = len(self.name.findall(self.text))
        if everywhere == len(self.result.calls) + self.mentions:
            return
        # Find the first name that was neither, for the message.
        starts = [call.start for call in self.result.calls]
        for match in self.name.finditer(self.text):
            index = bisect_right(starts, match.start())
            if not index or starts[index - 1] != match.start():
                raise AnnotationError(
                    f"{match.group()} could not be told from text that holds no code "
                    f"({everywhere} names, {len(starts)} calls, {self.mentions} in comments, literals and directives)",
                    self.source.place(match.start(), match.end()),
                    remedy="please report this source; until then, write the annotation on a line of its own",
                )
