# SPDX-License-Identifier: Apache-2.0
"""Choose branches of conditional compilation, so that each choice is text that a compiler could see.

No macro is known here.  A first choice takes every directive as it is written, a second one takes the other branch of
each, a third what stands behind `#elif`.  One condition has one outcome within a choice, however it is spelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..rewriting.tokens import without_comments
from .masking import Directive

_DEFINED = re.compile(r"!?\s*defined\s*\(?\s*(\w+)\s*\)?\Z")
_COMPARED = re.compile(r"(.+?)(<=|>=|==|!=|<|>)(.+)\Z")
#: By operator: the one it is told by, and whether that has the opposite outcome.
_TOLD_BY = {"<": (">=", True), "<=": (">", True), "!=": ("==", True)}
_FIRST, _OTHER, _ELSEWHERE = range(3)
Span = tuple[int, int]


def choices(directives: Sequence[Directive], length: int) -> list[tuple[Span, ...]]:
    """Return, for each choice of branches, the spans of the text that it leaves out; the first takes all as written."""
    if not any(one.word.startswith("if") for one in directives):
        return [()]
    found: list[tuple[Span, ...]] = []
    for choice in (_FIRST, _OTHER, _ELSEWHERE):
        spans = tuple(_Chooser(directives, choice).left_out(length))
        if spans not in found:
            found.append(spans)
    return found


def _canonical(word: str, rest: str) -> tuple[str, bool]:
    """Return the condition's one spelling, and the outcome that it must have for the branch to be taken."""
    text = " ".join(without_comments(rest).split())
    if word.endswith(("ifdef", "elifdef")):
        return f"defined {text}", True
    if word.endswith("ndef"):
        return f"defined {text}", False
    while text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        text = text[1:-1].strip()
    if (defined := _DEFINED.match(text)) is not None:
        return f"defined {defined.group(1)}", not text.startswith("!")
    if "&&" not in text and "||" not in text and (compared := _COMPARED.match(text)) is not None:
        left, operator, right = (part.strip() for part in compared.groups())
        told, opposite = _TOLD_BY.get(operator, (operator, False))
        return f"{left} {told} {right}", not opposite
    if text.startswith("!") and "&&" not in text and "||" not in text:
        return text[1:].strip(" ()"), False
    return text, True


class _Chooser:
    """The state of one walk over the directives."""

    def __init__(self, directives: Sequence[Directive], choice: int) -> None:
        self.directives, self.choice = directives, choice
        self.known = {"0": False, "false": False, "1": True, "true": True}

    def left_out(self, length: int) -> Iterator[Span]:
        """Yield the spans that are left out, in order."""
        #: Of each open conditional: whether what surrounds it is live, whether a branch was taken, whether this one is.
        opened: list[tuple[bool, bool, bool]] = []
        dead_from: int | None = None
        for index, one in enumerate(self.directives):
            live = all(taken for _, _, taken in opened)
            if one.word in ("if", "ifdef", "ifndef"):
                taken = self._outcome(one, index, first=True)
                opened.append((live, taken, taken))
            elif one.word in ("elif", "elifdef", "elifndef", "else") and opened:
                around, before, _ = opened.pop()
                taken = not before and (one.word == "else" or self._outcome(one, index, first=False))
                opened.append((around, before or taken, taken))
            elif one.word == "endif" and opened:
                opened.pop()
            else:
                continue
            live = all(taken for _, _, taken in opened)
            if not live and dead_from is None:
                dead_from = one.end
            elif live and dead_from is not None:
                yield dead_from, one.start
                dead_from = None
        if dead_from is not None:
            yield dead_from, length

    def _outcome(self, one: Directive, index: int, *, first: bool) -> bool:
        name, wanted = _canonical(one.word, one.rest)
        if name not in self.known:
            guard = one.word == "ifndef" and self._is_guard(index, name.removeprefix("defined "))
            as_written = self.choice == _FIRST or guard or (self.choice == _ELSEWHERE and not first)
            self.known[name] = wanted if as_written else not wanted
        return self.known[name] is wanted

    def _is_guard(self, index: int, name: str) -> bool:
        """Say whether the next directive defines the name: then the branch is there for the first reading."""
        following = self.directives[index + 1] if index + 1 < len(self.directives) else None
        return following is not None and following.word == "define" and following.rest.split()[:1] == [name]
