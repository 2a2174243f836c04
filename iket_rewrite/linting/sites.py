# SPDX-License-Identifier: Apache-2.0
"""Where events happen in a source: its annotations, and the uses of macros that hold annotations.

Nothing is read here a second time: annotations and uses come from the rewriter's own scanner.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import Place
from ..rewriting.annotation import Annotation, SiteKind
from ..rewriting.found import Call
from ..rewriting.scan import find_uses
from ..rewriting.tokens import without_comments
from ..rewriting.wrappers import resolve_with, wrappers_of
from ..source import Source

#: A macro's body with one of these is code whose paths are not followed.
_FLOW = re.compile(r"\b(?:if|for|while|switch|return|goto|break|continue|case)\b|\?|&&|\|\|")
_ONCE = re.compile(r"\bdo\b|\bwhile\s*\(\s*(?:0|false)\s*\)")
_NO_WORK = re.compile(r"[\s;{}(),\\]|\bvoid\b|\b0\b")
#: How many macros may stand between a use and its annotation.
_LEVELS = 4


@dataclass(frozen=True, eq=False, slots=True)
class Point:
    """One thing that one annotation does at one place.

    Attributes:
        kind: what it does.
        name: the event's name, or None for a pop.
        start, end: the logical span to point to.
        source: the text.
        payload: the text of its payload, or "".
        closed: a scoped range that ends within its own macro.
        worked: something is done between the point before it and this one, within one macro.
        holds: something is done in a scoped range that ends within its own macro.
    """

    kind: SiteKind
    name: str | None
    start: int
    end: int
    source: Source
    payload: str = ""
    closed: bool = False
    worked: bool = False
    holds: bool = False

    @property
    def place(self) -> Place:
        """Return where it stands."""
        return self.source.place(self.start, self.end)

    @property
    def label(self) -> str:
        """Return the event's name as messages show it."""
        return f'"{self.name}"'


@dataclass(frozen=True, eq=False, slots=True)
class Site:
    """One annotation, or one use of a macro that holds some.

    Attributes:
        start, end: its logical span.
        points: what it does, in order.
        plain: False for a macro whose body branches around its annotations.
        given: the text of the arguments of a macro's use.
        code: the bodies of the macros that a use brings along.
    """

    start: int
    end: int
    points: tuple[Point, ...]
    plain: bool = True
    given: str = ""
    code: str = ""


def find_sites(source: Source, annotations: Sequence[Annotation]) -> list[Site]:
    """Return every site of the code, in the order of the text.

    Raises:
        AnnotationError: the use of a wrapper macro does not spell the name.
    """
    sites = [
        Site(item.call.start, item.call.end, (_point(item, item.start, item.end),))
        for item in annotations
        if item.call.macro is None
    ]
    held = [item for item in annotations if item.call.macro is not None]
    if held:
        sites += _Macros(source, held).uses()
    return sorted(sites, key=lambda site: site.start)


def _point(item: Annotation, start: int, end: int, name: str | None = None, **more: bool) -> Point:
    payload = item.payload
    text = item.call.source.logical[payload.start : payload.end] if payload is not None else ""
    return Point(item.kind, name or item.name, start, end, item.call.source, text, **more)


class _Macros:
    """The macros that hold annotations."""

    def __init__(self, source: Source, held: Sequence[Annotation]) -> None:
        self.source = source
        named, _ = resolve_with(source, held, wrappers_of(held))
        #: The name that a use gives to an annotation in its macro.
        self.names = {(item.use.start, item.call.start): item.given for item in named if item.use is not None}
        #: By macro, what its body holds: annotations, and uses of other such macros.
        self.bodies: dict[str, dict[int, Annotation | Call]] = {}
        for item in held:
            if item.call.macro is not None:
                self.bodies.setdefault(item.call.macro.name, {})[item.call.start] = item

    def uses(self) -> list[Site]:
        """Return the uses in code of every such macro."""
        for _ in range(_LEVELS):
            found = find_uses(self.source, self.bodies)
            inner = [use for use in found.calls if use.macro is not None]
            before = sum(map(len, self.bodies.values()))
            for use in inner:
                if use.macro is not None:
                    self.bodies.setdefault(use.macro.name, {})[use.start] = use
            if sum(map(len, self.bodies.values())) == before:
                break
        calls = [(use.start, use.end, use.callee) for use in found.calls if use.macro is None]
        calls += [(start, end, self.source.logical[start:end]) for start, end in found.uncalled]
        return [self._site(*use) for use in calls if not self._in_directive(use[0])]

    def _in_directive(self, at: int) -> bool:
        line = self.source.logical[self.source.logical.rfind("\n", 0, at) + 1 : at]
        return line.lstrip().startswith("#")

    def _site(self, start: int, end: int, macro: str) -> Site:
        points = tuple(self._points(macro, start, (start, start + len(macro)), frozenset()))
        reached = list(self._reached(macro, frozenset()))
        plain = all(map(self._is_plain, reached)) or all(point.kind is SiteKind.MARK for point in points)
        code = "\n".join(body for name in reached for body in self._texts(name))
        return Site(start, end, points, plain, self.source.logical[start + len(macro) : end], code)

    def _reached(self, macro: str, above: frozenset[str]) -> Iterable[str]:
        yield macro
        for item in self.bodies.get(macro, {}).values():
            if isinstance(item, Call) and item.callee not in above:
                yield from self._reached(item.callee, above | {macro})

    def _points(self, macro: str, use: int, span: tuple[int, int], above: frozenset[str]) -> Iterable[Point]:
        items = self.bodies.get(macro, {})
        previous: int | None = None
        for at in sorted(items):
            item = items[at]
            call = item.call if isinstance(item, Annotation) else item
            if call.macro is not None and self._first_definition(macro) != call.macro.start:
                continue  # another branch defines the macro anew
            worked = previous is not None and bool(_NO_WORK.sub("", self.source.logical[previous:at]))
            previous = call.end
            if isinstance(item, Annotation):
                before = without_comments(self.source.logical[call.macro.start if call.macro else at : at])
                closed = before.count("{") > before.count("}")
                holds = closed and self._holds_work(macro, item)
                yield _point(item, *span, self.names.get((use, at)), closed=closed, worked=worked, holds=holds)
            elif item.callee not in above:
                yield from self._points(item.callee, at, span, above | {macro})

    def _first_definition(self, macro: str) -> int | None:
        """Return where that definition starts which holds the first annotation."""
        item = self.bodies[macro][min(self.bodies[macro])]
        call = item.call if isinstance(item, Annotation) else item
        return call.macro.start if call.macro is not None else None

    def _holds_work(self, macro: str, item: Annotation) -> bool:
        """Say whether something but events is done behind a scoped range, up to the brace that closes its block."""
        position, pieces, depth = item.call.end, list[str](), 0
        end = item.call.macro.end if item.call.macro is not None else position
        for call in (one.call if isinstance(one, Annotation) else one for _, one in sorted(self.bodies[macro].items())):
            if position <= call.start < end:
                pieces.append(self.source.logical[position : call.start])
                position = call.end
        rest = without_comments("".join((*pieces, self.source.logical[position:end])))
        for at, char in enumerate(rest):
            depth += (char == "{") - (char == "}")
            if depth < 0:
                rest = rest[:at]
                break
        return bool(_NO_WORK.sub("", rest))

    def _texts(self, macro: str) -> list[str]:
        """Return the bodies of a macro's definitions that hold annotations."""
        items = self.bodies.get(macro, {})
        definitions = {call.macro for call in (i.call if isinstance(i, Annotation) else i for i in items.values())}
        return [without_comments(self.source.logical[one.start : one.end]) for one in definitions if one is not None]

    def _is_plain(self, macro: str) -> bool:
        bodies = [_ONCE.sub("", body) for body in self._texts(macro)]
        return len(bodies) <= 1 and not any(_FLOW.search(body) for body in bodies)
