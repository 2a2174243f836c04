# SPDX-License-Identifier: Apache-2.0
"""Find the calls of given names in CUDA C++ text, with what surrounds each of them.

One pass that stops only at what matters: openers of comments and literals, braces, directives, `__global__`, and the
names that are looked for.  Everything between is never looked at: the stops are listed by searches for single letters
and words, which run many times faster than a regular expression that tries them all at every character.  Per call the
pass tells the kernel that encloses it, the `#define` that it stands in, and the blocks that are open around it.

The pass proves itself: the search for the names knows nothing of comments, literals or calls, and each name that it
lists must turn out to be a call, or to stand in a comment, a literal or a directive.  One that is neither is an error,
never passed over.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from os.path import commonprefix

from .. import abi
from ..errors import AnnotationError
from ..source import BOM, Source
from .directives import CONDITIONALS, INCLUDES, Directives, last_include
from .found import Call, Include, Kernel, Macro, Scan, Spelling
from .kernel_heads import KernelHeads
from .tokens import arguments, line_end, skip_literal, starts_line

_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*")
_GLOBAL = "__global__"
#: Calls on longer lines are read one by one.
_LONGEST_LINE = 1024


def scan(source: Source, callees: Collection[str], *, strict: bool = True) -> Scan:
    """Find every call of one of `callees` in the source.

    Args:
        source: the text.
        callees: the names.
        strict: a name that is no call, and a call inside another one, are errors.

    Raises:
        AnnotationError: a callee's name that is no call, a call that is not closed, a call inside another one.
    """
    return _Scanner(source, callees, strict=strict).run()


def find_uses(source: Source, macros: Collection[str]) -> Scan:
    """Find every use of one of the function-like macros; a name without parentheses may be something else.

    Raises:
        AnnotationError: a use that is not closed.
    """
    return _Scanner(source, macros, strict=False).run()


def find_includes(source: Source) -> list[Include]:
    """Return every include in code, in the order of the text: not one in a comment, a literal or an `#if 0`."""
    end = last_include(source.logical)
    if end is None:
        return []
    # Includes stand at the beginning of a file, mostly: what is behind the last of them is not read.
    return _Scanner(source, [], end=line_end(source.logical, end)).run().includes


def defines(source: Source, macro: str) -> bool:
    """Say whether a directive defines the macro: not where its text stands in a comment, a string or `#if 0`."""
    return source.holds(macro) and macro in _Scanner(source, [macro], strict=False).run().macros


def holds_metadata(source: Source) -> bool:
    """Say whether IKET's metadata arrays stand in the code: somebody has instrumented it before."""
    symbol = abi.META_SYMBOL
    return source.holds(symbol) and symbol in _Scanner(source, [symbol], strict=False).run().named


def _places(text: str, letter: str) -> list[int]:
    """Return every offset at which the letter stands."""
    places, find = [], text.find
    at = find(letter)
    while at >= 0:
        places.append(at)
        at = find(letter, at + 1)
    return places


def _identifiers(text: str, names: Collection[str]) -> list[int]:
    """Return the offset of every identifier that is one of `names`, whatever it stands in."""
    found: list[int] = []
    for letter in {name[0] for name in names}:
        # A search is fast where its pattern begins with letters, and slow where with a choice or a look behind.
        group = [name for name in names if name[0] == letter]
        prefix = commonprefix(group)  # noqa: RUF071  (of letters, not of paths)
        tails = sorted((re.escape(name[len(prefix) :]) for name in group), key=len, reverse=True)
        word = re.escape(prefix)
        pattern = re.compile(rf"{word}(?<![\w$]{word})(?:{'|'.join(tails)})(?![\w$])")
        found += [match.start() for match in pattern.finditer(text)]
    return sorted(found)


class _Scanner:
    """The state of one pass."""

    def __init__(self, source: Source, callees: Collection[str], strict: bool = True, end: int | None = None) -> None:
        self.source = source
        self.strict = strict
        self.text = source.logical if end is None else source.logical[:end]
        self.directives, self.heads = Directives(source, self.text), KernelHeads(source, self.text)
        self.callees = frozenset(callees)
        self.names = _identifiers(self.text, self.callees)
        #: The names that are still ahead, the next one last, behind one that is never reached.
        self.ahead = [len(source.logical), *reversed(self.names)]
        self.result = Scan()
        self.mentions = 0
        self.open: list[int] = []
        #: The open blocks at the last call, and the innermost of them, which tells them all.
        self.blocks: tuple[int, ...] = ()
        self.innermost: list[int] = []
        self.kernels: list[Kernel] = []
        self.branches: list[tuple[list[int], list[Kernel]]] = []
        #: Where the last `__global__` ends, until a brace asks for it.
        self.declared: int | None = None
        self.bodies: dict[int, Kernel] = {}
        self.spellings: dict[str, Spelling] = {}
        #: Where the last call ends.
        self.call_end = -1
        #: The last `#define`, and where it ends.
        self.macro: Macro | None = None
        self.macro_end = -1
        #: Where a comment ends before which its line is blank; a byte order mark counts as one.
        self.lead = len(BOM) if self.text.startswith(BOM) else -1

    def run(self) -> Scan:
        text, position, word = self.text, 0, self._word
        handlers = {'"': self._literal, "'": self._literal, "/": self._slash, "#": self._directive}
        stops = [*self.names, *_identifiers(text, (_GLOBAL,))]
        for letter in ("{", "}", *handlers):
            stops += _places(text, letter)
        stops.sort()
        blocks, kernels = self.open, self.kernels
        for at in stops:
            if at < position:
                continue  # it lies in what has been skipped
            letter = text[at]
            if letter == "{":
                if at >= self.macro_end:
                    if self.declared is not None or self.bodies:
                        self._enter(at)
                    blocks.append(at)
            elif letter == "}":
                if at >= self.macro_end and blocks:
                    opened = blocks.pop()
                    if kernels and kernels[-1].body == opened:
                        kernels.pop()
                        self.result.kernel_ends[opened] = at
            else:
                position = handlers.get(letter, word)(at)
        if self.strict:
            self._check()
        return self.result

    def _enter(self, at: int) -> None:
        """Enter the kernel whose body opens at `at`, if one does."""
        if self.declared is not None:
            kernel = self.heads.kernel(self.declared)
            if kernel is not None:
                self.bodies[kernel.body] = kernel
            self.declared = None
        if at in self.bodies:
            self.kernels.append(self.bodies.pop(at))

    def _literal(self, at: int) -> int:
        end = skip_literal(self.source, at)
        self._mention(end)
        return end

    def _slash(self, at: int) -> int:
        if self.text.startswith("//", at):
            end = line_end(self.text, at)
        elif self.text.startswith("/*", at):
            closed = self.text.find("*/", at + 2)
            end = closed + 2 if closed >= 0 else len(self.text)  # not closed: everything behind it is comment
        else:
            return at + 1
        # A directive can follow it on its line.
        if starts_line(self.text, at, self.lead):
            self.lead = end
        self._mention(end)
        return end

    def _word(self, at: int) -> int:
        while self.ahead[-1] < at:
            self.ahead.pop()
        if self.ahead[-1] == at:
            self.ahead.pop()
            return self._call(at)
        end = at + len(_GLOBAL)
        if at >= self.macro_end:
            self.declared = end
        return end

    def _mention(self, end: int) -> None:
        """Account for the names before `end`, which are skipped."""
        while self.ahead[-1] < end:
            self.ahead.pop()
            self.mentions += 1

    def _directive(self, at: int) -> int:
        """Handle a `#`; return where to go on."""
        if at < self.macro_end or not starts_line(self.text, at, self.lead):
            return at + 1  # an operator in a macro's body, or no directive
        end = self.directives.end(at)
        name, behind = self.directives.word(at, end)
        if name == "define" and (define := self.directives.define(at, end)) is not None:
            self.macro, self.macro_end = define[0], end
            self.result.macros.add(define[0].name)
            end = define[1]
        elif name in INCLUDES:
            self.result.includes.append(self.directives.include(at, behind, name))
        elif name in CONDITIONALS:
            self._branch(name)
            if name == "if" and self.directives.is_false(behind, end):
                end = self.directives.dead_branch_end(end)
        self._mention(end)
        return end

    def _branch(self, word: str) -> None:
        """Open blocks are those at the `#if` again in each of its other branches."""
        if word.startswith("if"):
            self.branches.append((list(self.open), list(self.kernels)))
        elif word == "endif":
            if self.branches:
                self.branches.pop()
        elif self.branches:
            self.open[:], self.kernels[:] = self.branches[-1]

    def _call(self, start: int) -> int:
        text, macro = self.text, self.macro if start < self.macro_end else None
        # Generated text repeats itself: what stands on a line that was read before is known.
        line = text[start : text.find("\n", start, start + _LONGEST_LINE) + 1 or start] if macro is None else ""
        spelling = self.spellings.get(line) or self._read(start, line, macro)
        if spelling is None:
            self.mentions += 1
            return start + 1
        if start < self.call_end and self.strict:
            outer = self.result.calls[-1]
            raise AnnotationError(
                f"{spelling.callee} stands inside the call of {outer.callee}",
                self.source.place(start, start + len(spelling.callee)),
                others=(("the outer call", self.source.place(outer.start, outer.start + len(outer.callee))),),
                remedy="write two statements",
            )
        end = self.call_end = start + spelling.arguments.end
        kernel = self.kernels[-1] if self.kernels else None
        if self.open[-1:] != self.innermost:
            self.innermost, self.blocks = self.open[-1:], tuple(self.open)
        self.result.calls.append(Call(start, spelling, kernel, macro, self.blocks))
        # What stands in the brackets is no concern of the pass, unless another name is among it.
        return end if self.ahead[-1] >= end else start + len(spelling.callee)

    def _read(self, start: int, line: str, macro: Macro | None) -> Spelling | None:
        """Read the call of the name that stands there, or return None where it is no call and need not be one."""
        end = _IDENTIFIER.match(self.text, start).end()  # type: ignore[union-attr]  # a name stands there
        name = self.text[start:end]
        self.result.named.add(name)
        if macro is not None and (macro.name in self.callees if self.strict else macro.name == name):
            return None  # this is how the header, or a stand-in for it, defines an annotation
        limit = macro.end if macro is not None else len(self.text)
        found = arguments(self.source, (start, end), limit, directive=macro is not None)
        if found is None:
            if not self.strict:
                self.result.uncalled.append((start, end))
                return None
            raise AnnotationError(
                f"{name} is named here but not called",
                self.source.place(start, end),
                remedy=f"write a call, {name}(...); an annotation can not be passed on by its name",
            )
        spelling = Spelling(name, found.moved(-start), self.source)
        # The body of a raw string keeps its line splices, which the line does not show.
        if spelling.arguments.end <= len(line) and 'R"' not in line:
            self.spellings[line] = spelling
        return spelling

    def _check(self) -> None:
        """See that every name was a call, or skipped with what it stands in."""
        calls = self.result.calls
        if len(self.names) == len(calls) + self.mentions:
            return
        # Find the first name that was neither, for the message.
        called = {call.start for call in calls}
        start = next(start for start in self.names if start not in called)
        end = _IDENTIFIER.match(self.text, start).end()  # type: ignore[union-attr]  # a name stands there
        raise AnnotationError(
            f"{self.text[start:end]} could not be told from text that holds no code "
            f"({len(self.names)} names, {len(calls)} calls, {self.mentions} in comments, literals and directives)",
            self.source.place(start, end),
            remedy="please report this source; until then, write the annotation on a line of its own",
        )
