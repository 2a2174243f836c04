# SPDX-License-Identifier: Apache-2.0
"""Ranges that stay open on some path through the generated source, or are ended where none is open.

TileLang prints braces around every body and leaves by `break`, `continue` and `return` only, so blocks are enough.
A `with` block in the program is closed where it ends, not where `break` leaves it: the generated loop knows of no
`with`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..rewriting.annotation import Annotation, SiteKind, SourcePosition

_WORD = re.compile(
    r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/|[{};()]|\b(?:for|while|do|if|else|switch|break|continue|return)\b',
    re.DOTALL,
)
_LOOPS = frozenset(["for", "while", "do"])
_BRANCHES = frozenset(["if", "elif", "else"])
_HEADS = _LOOPS | {"if", "else", "switch"}
_ELSE = re.compile(r"\s*else\b")


@dataclass(frozen=True, slots=True)
class Imbalance:
    """A range that does not pair up on some path.

    Attributes:
        name: the range, or None where an end has none to end.
        place: the line of its annotation, or None.
        fault: what is wrong, in words that follow "the range".
    """

    name: str | None
    place: SourcePosition | None
    fault: str


@dataclass(slots=True)
class _Block:
    """A pair of braces.

    Attributes:
        head: the word before its condition, or "".
        condition: the text between that word and the brace.
        entry: the ranges that were open before it.
        left: whether its last statement leaves it, so that nothing follows.
        pending: ranges that an `if` in it has left open, by its condition: the same condition may end them.
        before: what was open behind each branch before this one; a branch that is left counts as none.
        inner: the same of the branches in it that an `else` may follow.
    """

    head: str
    condition: str
    entry: tuple[Annotation, ...]
    left: bool = False
    pending: dict[str, tuple[Annotation, ...]] = field(default_factory=dict)
    before: list[tuple[Annotation, ...]] = field(default_factory=list)
    inner: list[tuple[Annotation, ...]] = field(default_factory=list)


def imbalances(annotations: tuple[Annotation, ...]) -> list[Imbalance]:
    """Return the ranges of one source that do not pair up, each once, in the order of the source."""
    if not annotations:
        return []
    walk = _Walk(annotations[0].call.source.logical)
    for item in annotations:
        walk.until(item.call.start)
        walk.meet(item)
    walk.until(len(walk.text))
    return list(dict.fromkeys([*walk.found, *_lone_tokens(annotations)]))


class _Walk:
    """One pass over a source, with the blocks and the ranges that are open."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.open: tuple[Annotation, ...] = ()
        self.blocks = [_Block("", "", ())]
        self.found: list[Imbalance] = []
        self.told: set[int] = set()
        #: The word whose body comes next, where its condition starts, and how many parentheses are open.
        self.head, self.start, self.depth = "", 0, 0

    def until(self, end: int) -> None:
        """Go on to an offset."""
        for match in _WORD.finditer(self.text, self.at, end):
            word = match.group()
            if word in "()":
                self.depth += 1 if word == "(" else -1
            elif word == "{":
                self._enter(self.text[self.start : match.start()].strip() if self.head else "")
            elif word == "}":
                self._leave(match.end())
            elif word == ";":
                self.head = self.head if self.depth else ""
            elif word in _HEADS:
                self.head = "elif" if (self.head, word) == ("else", "if") else word
                self.start, self.depth = match.end(), 0
            elif word[0] not in '"/':
                self._jump(word)
        self.at = max(self.at, end)

    def meet(self, item: Annotation) -> None:
        """Take an annotation into account."""
        self.at = item.call.end
        if item.kind is SiteKind.PUSH:
            self.open = (*self.open, item)
        elif item.kind is SiteKind.POP:
            if self.open:
                self.open = self.open[:-1]
            else:
                self.found.append(Imbalance(None, item.meaning.position, "is ended on a path on which none is open"))

    def _enter(self, condition: str) -> None:
        block = _Block(self.head, condition, self.open)
        outer = self.blocks[-1]
        if self.head == "if":
            self.open = (*self.open, *outer.pending.pop(condition, ()))
        elif self.head in ("elif", "else"):
            block.before, outer.inner = outer.inner, []
        self.blocks.append(block)
        self.head = ""

    def _leave(self, end: int) -> None:
        if len(self.blocks) == 1:
            return
        block, now = self.blocks.pop(), self.open
        for ranges in block.pending.values():
            self._report(ranges, "is started under a condition, and no end has the same one")
        if len(self.blocks) == 1:
            self._report(now, "is never ended")
            now = ()
        elif block.head in _BRANCHES:
            now = self._leave_branch(block, now, last=not _ELSE.match(self.text, end))
        elif block.left:
            now = block.entry
        elif block.head:
            ended = len(now) < len(block.entry)
            self._compare(
                now, block.entry, f"is {'ended' if ended else 'started'} in the body of a `{block.head}` only"
            )
            now = block.entry
        self.open, self.head = now, ""

    def _leave_branch(self, block: _Block, now: tuple[Annotation, ...], *, last: bool) -> tuple[Annotation, ...]:
        """Return what is open behind a branch of an `if`."""
        outer = self.blocks[-1]
        ends = [*block.before, *([] if block.left else [now])]
        if not last:
            outer.inner = ends
            return block.entry
        if block.head == "if" and not block.left and len(now) > len(block.entry):
            outer.pending[block.condition] = now[len(block.entry) :]
            return block.entry
        if block.head != "else":
            ends.append(block.entry)
        for other in ends[1:]:
            # What was open before them is ended in one; warp specialisation does that to a range around a whole loop.
            ended = min(len(other), len(ends[0])) < len(block.entry)
            self._compare(other, ends[0], f"is {'ended' if ended else 'started'} in one branch of an `if` only")
        return ends[0] if block.head == "else" and ends else block.entry

    def _jump(self, word: str) -> None:
        """Meet `break`, `continue` or `return`."""
        floor: tuple[Annotation, ...] = ()
        if word != "return":
            inner = next((block for block in reversed(self.blocks) if block.head in (*_LOOPS, "switch")), None)
            floor = inner.entry if inner else self.open
        self._report(self.open[len(floor) :], f"is left by `{word}`, which does not end it")
        self.blocks[-1].left = True

    def _compare(self, now: tuple[Annotation, ...], before: tuple[Annotation, ...], fault: str) -> None:
        if len(now) != len(before):
            longer, shorter = (now, before) if len(now) > len(before) else (before, now)
            self._report(longer[len(shorter) :], fault)

    def _report(self, ranges: tuple[Annotation, ...], fault: str) -> None:
        for item in ranges:
            # What a first path shows of a range, others repeat.
            if item.call.start not in self.told:
                self.told.add(item.call.start)
                self.found.append(Imbalance(item.name, item.meaning.position, fault))


def _lone_tokens(annotations: tuple[Annotation, ...]) -> list[Imbalance]:
    """Return the token ranges of a source that are only started, or only ended."""
    lacks = {SiteKind.START: (SiteKind.END, "is never ended"), SiteKind.END: (SiteKind.START, "is never started")}
    seen = {(item.kind, item.name) for item in annotations if item.kind in lacks}
    return [
        Imbalance(item.name, item.meaning.position, lacks[item.kind][1])
        for item in annotations
        if item.kind in lacks and (lacks[item.kind][0], item.name) not in seen
    ]
