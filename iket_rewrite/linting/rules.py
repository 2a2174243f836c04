# SPDX-License-Identifier: Apache-2.0
"""The rules that judge one function, each a small function of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..errors import Place
from ..rewriting.annotation import SiteKind
from . import asynchronous
from .finding import LintFinding
from .flow import Enclosing, Flow
from .lanes import Lanes
from .parsing import Function
from .paths import Closing, Paths
from .sites import Point

#: So many copies of an event are a large part of a kernel's code.
MANY_COPIES = 32
_BY_LANE = (Lanes.VARYING, Lanes.NUMBER, Lanes.ELECTED)


@dataclass(frozen=True, slots=True)
class Judged:
    """One function with what its paths did.

    Attributes:
        function: the function.
        flow: its graph.
        paths: what its paths did.
        place: gives the place of an offset, for messages.
        whole: it must leave the stack as it found it; False for a helper whose callers answer for it.
        own_names: the names of token ranges that start and end in this function alone.
        apart: another function may end what it leaves open, or the other way round.
        included: where it includes files, of which nothing is known.
        guessed: it calls what may leave ranges open, or end some; which of that is not known.
    """

    function: Function
    flow: Flow
    paths: Paths
    place: Callable[[int], Place]
    whole: bool
    own_names: frozenset[str]
    apart: bool = False
    guessed: bool = False
    included: tuple[int, ...] = ()

    def conditions(self, point: Point) -> tuple[Enclosing, ...]:
        """Return the conditions around a point."""
        around = self.flow.around.get(point)
        return around.conditions if around is not None else ()

    def holds_file(self, point: Point, closing: Closing) -> bool:
        """Say whether a file is included between the ends of a range."""
        ends = [end.start for end in closing.ends if end is not point] or [self.function.end]
        return any(point.start < at < max(ends) for at in self.included)

    def is_chosen(self, point: Point) -> bool:
        """Say whether a branch decides if the point is reached."""
        return any(not one.loop for one in self.conditions(point))


#: A finding with the point that it is about.
Found = Iterator[tuple[Point, LintFinding]]


def _found(point: Point, rule: str, message: str, *others: tuple[str, Place]) -> tuple[Point, LintFinding]:
    return point, LintFinding(rule, message, point.place, others)


def balance(judged: Judged) -> Found:
    """Find pushes that stay open on some path, and pops that end nothing."""
    left, below = _leaks(judged), _unders(judged)
    points = (*left, *below)
    if points and judged.guessed:
        message = "what a function that it calls, or a file that it includes, does to its ranges is not known"
        yield _found(_first(points), "not-decided", f"whether ranges pair up here was not decided: {message}")
        return
    if points and ((left and below) or judged.apart) and all(map(judged.is_chosen, points)):
        message = "whether the conditions of its pushes and pops belong together is not known"
        yield _found(_first(points), "not-decided", message)
        return
    # What is told of at its end is not told of twice.
    ended_elsewhere = {start for start, _ in _divergent(judged)} | {
        point for point, closing in judged.paths.closings.items() if closing.ends & judged.paths.beneath.keys()
    }
    left = {point: value for point, value in left.items() if point not in ended_elsewhere}
    for point, (message, place) in left.items():
        yield _found(point, "push-without-pop", f"the range {point.label} {message}", ("left open here", place))
    for point, message in below.items():
        yield _found(point, "pop-without-push", message)


def _first(points: Iterable[Point]) -> Point:
    return min(points, key=lambda point: point.start)


def _leaks(judged: Judged) -> dict[Point, tuple[str, Place]]:
    """Return the ranges that stay open, each with what to say and the place where that shows."""
    paths, result = judged.paths, dict[Point, tuple[str, Place]]()
    for point, at in paths.again.items():
        result[point] = ("is still open when the loop goes round again", judged.place(at))
    for point, scope in paths.overtaken.items():
        result.setdefault(point, (f"is still open where the scoped range {scope.label} ends", scope.place))
    for at, effects in sorted(paths.left.items()):
        for effect in effects if judged.whole else ():
            for point in effect.left:
                ends = at == judged.function.end - 1
                how = "at the end of the function" if ends else "where the function returns"
                result.setdefault(point, (f"is still open {how}", judged.place(at)))
    return result


def _unders(judged: Judged) -> dict[Point, str]:
    """Return the pops that end nothing, each with what to say."""
    paths, result = judged.paths, dict[Point, str]()
    for point, scope in paths.crossed.items():
        result[point] = f"the pop would end the scoped range {scope.label}, which ends by itself"
    for point in paths.beneath:
        result.setdefault(point, "the loop pops more often than it pushes")
    for effects in paths.left.values():
        for effect in effects if judged.whole else ():
            for point in effect.below:
                result.setdefault(point, "on some path no range is open here")
    return result


def tokens(judged: Judged) -> Found:
    """Find token ranges that are open at a way out, where one function holds all of their ends."""
    ends: dict[str | None, list[Point]] = {}
    for point in judged.flow.around:
        if point.kind is SiteKind.END:
            ends.setdefault(point.name, []).append(point)
    ended_elsewhere = {start for start, _ in _divergent(judged)}
    for point, at in judged.paths.unended.items():
        # What is told of at its end is not told of twice.
        if point.name not in judged.own_names or point in ended_elsewhere:
            continue
        if judged.is_chosen(point) and all(map(judged.is_chosen, ends.get(point.name, ()))):
            continue  # conditions may belong together in a way that is not known
        message = f"the range {point.label} is started and not ended on some path"
        yield _found(point, "start-without-end", message, ("left open here", judged.place(at)))


def emptiness(judged: Judged) -> Found:
    """Find ranges between whose ends nothing stands but events."""
    for point, closing in judged.paths.closings.items():
        if not closing.worked and point in judged.flow.around and not judged.holds_file(point, closing):
            yield _found(point, "empty-range", f"nothing but events stands in the range {point.label}")


def issue_time(judged: Judged) -> Found:
    """Find ranges that end before what they issue has been waited for."""
    for point, closing in judged.paths.closings.items():
        if closing.issued < 0 or closing.waited or point not in judged.flow.around:
            continue
        if not judged.holds_file(point, closing) and not asynchronous.says_so(point.name or ""):
            message = f"the range {point.label} measures how long the issue takes: nothing in it waits"
            yield _found(point, "issue-time", message, ("issued here", judged.place(closing.issued)))


def unrolled(judged: Judged) -> Found:
    """Find events in loops that are unrolled many times."""
    for point, around in judged.flow.around.items():
        if around.copies >= MANY_COPIES and point.kind not in (SiteKind.POP, SiteKind.END):
            yield _found(point, "unrolled-event", f"unrolling makes {around.copies} copies of the event {point.label}")


def divergent_end(judged: Judged) -> Found:
    """Find ends of ranges under a condition that differs between lanes and that their start is not under."""
    told = set()
    for start, (end, condition) in _divergent(judged):
        if end not in told:
            told.add(end)
            message = f"the range {start.label} ends under a condition that differs between the lanes of a warp"
            others = ("it starts here", start.place), ("the condition", judged.place(condition.at))
            yield _found(end, "divergent-end", message, *others)


def _divergent(judged: Judged) -> Iterator[tuple[Point, tuple[Point, Enclosing]]]:
    for start, closing in judged.paths.closings.items():
        known = {(one.key, one.truth) for one in judged.conditions(start)}
        for end in closing.ends:
            if end.kind not in (SiteKind.POP, SiteKind.END) or start not in judged.flow.around:
                continue
            for one in judged.conditions(end):
                if one.lanes in _BY_LANE and (one.key, one.truth) not in known:
                    yield start, (end, one)
                    break


def lane_payload(judged: Judged) -> Found:
    """Find payloads that differ between lanes, of which the first active lane's is recorded."""
    for point in judged.flow.around:
        if not point.payload or judged.flow.variables.judge(point.payload) not in (Lanes.VARYING, Lanes.NUMBER):
            continue
        if any(one.lanes is Lanes.ELECTED and one.truth for one in judged.conditions(point)):
            continue
        message = f"the payload of {point.label} differs between lanes: that of the first active lane is recorded"
        yield _found(point, "lane-payload", message)


#: Every rule that judges a function.
ALL: tuple[Callable[[Judged], Found], ...] = (
    balance,
    tokens,
    emptiness,
    issue_time,
    unrolled,
    divergent_end,
    lane_payload,
)
