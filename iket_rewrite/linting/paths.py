# SPDX-License-Identifier: Apache-2.0
"""Follow every path through a function and note what its ranges do: what stays open, what ends nothing, what is empty.

A path's state is small: the open ranges, what it knows of conditions, and how each loop was entered.  States that are
the same are followed once, and a function with too many is not decided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..rewriting.annotation import SiteKind
from .conditions import DOWN, UP, Facts, forget, moved, taken, turned
from .flow import Flow, Step, StepKind, Undecided
from .sites import Point

#: How many states a function may have, at least and at most, and how many for each step of it.
_FEWEST_STATES, _MOST_STATES, _STATES_PER_STEP = 5_000, 200_000, 40
#: How many ranges may be open, and how many pops may reach into the caller.
_DEEPEST, _MOST_BELOW = 48, 8


class Open(NamedTuple):
    """One open range on a path: its start, and what happened since."""

    point: Point
    worked: bool = False
    issued: int = -1
    waited: bool = False


class State(NamedTuple):
    """What distinguishes paths at a step.

    Attributes:
        stack: the open ranges of the warp's stack, innermost last.
        below: pops that found the stack of this function empty.
        tokens: the open token ranges.
        facts: what is known of conditions.
        loops: by loop, the open ranges and the facts with which it was entered.
    """

    stack: tuple[Open, ...] = ()
    below: tuple[Point, ...] = ()
    tokens: tuple[Open, ...] = ()
    facts: Facts = frozenset()
    loops: tuple[tuple[int, tuple[Point, ...], tuple[Point, ...], Facts], ...] = ()


@dataclass(frozen=True, slots=True)
class Effect:
    """What a function does to the stack of its caller: the pops that reach below its own, and what it leaves open."""

    below: tuple[Point, ...]
    left: tuple[Point, ...]


@dataclass(slots=True)
class Closing:
    """How a range ended, over all paths: at which points, whether ever with work or a wait in it, what it issued."""

    ends: set[Point] = field(default_factory=set)
    worked: bool = False
    waited: bool = False
    issued: int = -1


@dataclass(slots=True)
class Paths:
    """What all paths through a function did.

    Attributes:
        left: at each way out, the effects that paths had there, by the offset of the way out.
        again: ranges that a loop opens anew at each turn, with the offset of the loop.
        beneath: pops that a loop does more often than pushes, with the offset of the loop.
        crossed: pops that ended a scoped range, with that range; and pushes that a scope's end closed, likewise.
        unended: token ranges that were open at a way out, with its offset.
        closings: how each range ended.
    """

    left: dict[int, set[Effect]] = field(default_factory=dict)
    again: dict[Point, int] = field(default_factory=dict)
    beneath: dict[Point, int] = field(default_factory=dict)
    crossed: dict[Point, Point] = field(default_factory=dict)
    overtaken: dict[Point, Point] = field(default_factory=dict)
    unended: dict[Point, int] = field(default_factory=dict)
    closings: dict[Point, Closing] = field(default_factory=dict)


def follow(flow: Flow, effects: Mapping[str, Effect]) -> Paths:
    """Follow every path.

    Raises:
        Undecided: there are too many.
    """
    return _Walk(flow, effects).run()


def _points(ranges: tuple[Open, ...]) -> tuple[Point, ...]:
    return tuple(one.point for one in ranges)


class _Walk:
    """The state of one exploration."""

    def __init__(self, flow: Flow, effects: Mapping[str, Effect]) -> None:
        self.flow, self.effects = flow, effects
        self.tracked, self.turns = flow.tracked(), flow.turns()
        self.result = Paths()

    def run(self) -> Paths:
        steps = self.flow.steps
        limit = max(min(_MOST_STATES, _FEWEST_STATES + _STATES_PER_STEP * len(steps)), 2 * len(steps))
        # States can only meet where edges do.
        entered = Counter(edge.target for step in steps for edge in step.edges)
        seen: set[tuple[int, State]] = set()
        pending = [(0, State())]
        count = 0
        while pending:
            number, state = item = pending.pop()
            if entered[number] > 1:
                if item in seen:
                    continue
                seen.add(item)
            count += 1
            if count > limit:
                raise Undecided("it has too many paths")
            step = steps[number]
            after = self._step(step, state)
            if after is None:
                continue
            if len(after.stack) > _DEEPEST or len(after.below) > _MOST_BELOW:
                raise Undecided("its ranges nest too deep")
            for edge in step.edges:
                facts = after.facts if edge.guard is None else taken(edge.guard, after.facts, self.tracked)
                if facts is not None:
                    pending.append((edge.target, after if facts is after.facts else after._replace(facts=facts)))
        return self.result

    def _step(self, step: Step, state: State) -> State | None:
        """Return the state behind a step, or None where the path ends."""
        kind = step.kind
        if kind is StepKind.POINT and step.point is not None:
            return self._point(step.point, state)
        if kind is StepKind.CLOSE and step.point is not None:
            return self._close(step.point, state)
        if kind in (StepKind.WORK, StepKind.ISSUE, StepKind.WAIT):
            return _marked(state, step)
        if kind is StepKind.ASSIGN:
            if step.value in (UP, DOWN):
                facts = moved(state.facts, step.name, str(step.value))
                if step.by_one and step.value == UP and step.name in self.turns:
                    facts = turned(state.facts, facts, self.turns[step.name])
                return state._replace(facts=facts)
            facts = forget(state.facts, step.name) if state.facts else state.facts
            if step.value is not None and step.name in self.tracked:
                facts |= {(step.name, step.value)}
            return state._replace(facts=facts)
        if kind is StepKind.CALL:
            return self._call(self.effects[step.name], state)
        if kind is StepKind.ENTER:
            kept = tuple(loop for loop in state.loops if loop[0] != step.loop)
            return state._replace(loops=(*kept, (step.loop, _points(state.stack), state.below, state.facts)))
        if kind is StepKind.AGAIN:
            return self._again(step, state)
        if kind is StepKind.EXIT:
            return state._replace(loops=tuple(loop for loop in state.loops if loop[0] != step.loop))
        if kind is StepKind.LEAVE:
            self._leave(step, state)
            return None
        return state

    def _point(self, point: Point, state: State) -> State:
        if point.kind in (SiteKind.PUSH, SiteKind.SCOPE):
            return state._replace(stack=(*state.stack, Open(point)))
        if point.kind is SiteKind.POP:
            return self._pop(point, state)
        if point.kind is SiteKind.START:
            others = tuple(one for one in state.tokens if one.point.name != point.name)
            return state._replace(tokens=(*others, Open(point)))
        if point.kind is SiteKind.END:
            for one in state.tokens:
                if one.point.name == point.name:
                    self._ended(one, point)
            return state._replace(tokens=tuple(one for one in state.tokens if one.point.name != point.name))
        return state

    def _pop(self, point: Point, state: State) -> State:
        if not state.stack:
            return state._replace(below=(*state.below, point))
        top = state.stack[-1]
        if top.point.kind is SiteKind.SCOPE and top.point is not point:
            self.result.crossed[point] = top.point
            return state
        self._ended(top, point)
        return state._replace(stack=state.stack[:-1])

    def _close(self, point: Point, state: State) -> State:
        """End a scoped range, and with it what was pushed within and is open still."""
        stack = state.stack
        if all(one.point is not point for one in stack):
            return state
        while stack[-1].point is not point:
            self.result.overtaken[stack[-1].point] = point
            stack = stack[:-1]
        self._ended(stack[-1], point)
        return state._replace(stack=stack[:-1])

    def _ended(self, one: Open, end: Point) -> None:
        closing = self.result.closings.setdefault(one.point, Closing())
        closing.ends.add(end)
        closing.worked |= one.worked
        closing.waited |= one.waited
        closing.issued = max(closing.issued, one.issued)

    def _call(self, effect: Effect, state: State) -> State:
        for point in effect.below:
            state = self._pop(point, state)
        return state._replace(stack=(*state.stack, *(Open(point, worked=True) for point in effect.left)))

    def _again(self, step: Step, state: State) -> State | None:
        """See whether a loop leaves the ranges as it found them when as much was known."""
        now = _points(state.stack)
        for loop, stack, below, facts in state.loops:
            if loop != step.loop or facts != state.facts:
                continue
            if len(now) > len(stack) and now[: len(stack)] == stack:
                self.result.again.update((point, step.at) for point in now[len(stack) :])
                return None
            if len(state.below) > len(below):
                self.result.beneath.update((point, step.at) for point in state.below[len(below) :])
                return None
            return state
        return state._replace(loops=(*state.loops, (step.loop, now, state.below, state.facts)))

    def _leave(self, step: Step, state: State) -> None:
        self.result.left.setdefault(step.at, set()).add(Effect(state.below, _points(state.stack)))
        for one in state.tokens:
            self.result.unended.setdefault(one.point, step.at)


def _marked(state: State, step: Step) -> State:
    """Return the state with what a step does noted at the open ranges."""
    if not state.stack and not state.tokens:
        return state
    stack, tokens = list(state.stack), list(state.tokens)
    for ranges in (stack, tokens):
        for index, one in enumerate(ranges):
            innermost = index == len(ranges) - 1
            if step.kind is StepKind.WAIT:
                ranges[index] = one._replace(worked=True, waited=True)
            elif step.kind is StepKind.ISSUE and innermost and not one.waited:
                ranges[index] = one._replace(worked=True, issued=step.at)
            elif not one.worked:
                ranges[index] = one._replace(worked=True)
    return state._replace(stack=tuple(stack), tokens=tuple(tokens))
