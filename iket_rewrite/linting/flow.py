# SPDX-License-Identifier: Apache-2.0
"""The control flow graph of one function: steps, and edges with the condition under which each is taken."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field

from .conditions import Condition, Guard, Value, last_turn
from .lanes import Lanes, Variables
from .sites import Point


class StepKind(enum.Enum):
    """What happens at a step."""

    #: Nothing; edges meet.
    JOIN = "join"
    #: Something that takes time, or that a range can be around.
    WORK = "work"
    #: A point of an annotation.
    POINT = "point"
    #: The end of a scoped range's block.
    CLOSE = "close"
    #: An asynchronous copy or a matrix instruction is issued.
    ISSUE = "issue"
    #: Something asynchronous is waited for.
    WAIT = "wait"
    #: A variable is given a value.
    ASSIGN = "assign"
    #: A function of the file is called that leaves ranges open, or ends some.
    CALL = "call"
    #: A loop is entered, goes round again, and is left.
    ENTER = "enter"
    AGAIN = "again"
    EXIT = "exit"
    #: The function is left.
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a step leads to, and under which condition."""

    target: int
    guard: Guard | None = None


@dataclass(eq=False, slots=True)
class Step:
    """One step.

    Attributes:
        kind: what happens.
        at: the offset in the text that messages point to.
        point: the point, for POINT and CLOSE.
        name: the variable or the function, for ASSIGN and CALL; "return" or "end" for LEAVE.
        value: the constant that a variable is given, UP or DOWN where it is counted, or None.
        by_one: a variable is counted by one.
        loop: the number of the loop, for ENTER, AGAIN and EXIT.
        edges: where it leads to.
    """

    kind: StepKind
    at: int = -1
    point: Point | None = None
    name: str = ""
    value: Value | None = None
    by_one: bool = False
    loop: int = -1
    edges: list[Edge] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Enclosing:
    """A condition around a statement: its one spelling with its outcome, what it has to do with lanes, and where."""

    key: str
    truth: bool
    lanes: Lanes
    at: int
    loop: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a point: conditions, outermost first, and how often unrolled loops repeat it."""

    conditions: tuple[Enclosing, ...] = ()
    copies: int = 1


@dataclass(slots=True)
class Flow:
    """The graph of one function.

    Attributes:
        steps: the steps; the first one is the entry.
        around: what stands around each point.
        variables: what is known of variables with respect to lanes.
        conditions: every condition that an edge asks, as often as it is asked.
        constants: the variables that are given constants.
    """

    steps: list[Step] = field(default_factory=list)
    around: dict[Point, Around] = field(default_factory=dict)
    variables: Variables = field(default_factory=Variables)
    conditions: list[Condition] = field(default_factory=list)
    constants: set[str] = field(default_factory=set)

    def tracked(self) -> frozenset[str]:
        """Return the keys and names that paths have to remember: those that are asked or given more than once."""
        keys = Counter(one.key for one in self.conditions)
        lefts = Counter(one.left for one in self.conditions if one.operator in ("==", ""))
        again = {name for counts in (keys, lefts) for name, count in counts.items() if count > 1}
        # `i < n` tells of n where i is known.
        known = self.constants & {one.left for one in self.conditions}
        others = {one.other for one in self.conditions if one.left in known}
        asked = {one.key for one in self.conditions if one.operator and one.left in others}
        ends = {key for pairs in self.turns().values() for pair in pairs for key in pair}
        return frozenset(again | known | asked | ends)

    def turns(self) -> dict[str, list[tuple[str, str]]]:
        """Return, by variable, the conditions that ask for the last turn of a loop, and those for a further one."""
        result: dict[str, list[tuple[str, str]]] = {}
        keys = {one.key for one in self.conditions}
        for one in self.conditions:
            found = last_turn(one)
            if found is not None and (further := "<".join(found)) in keys:
                result.setdefault(found[0], []).append((one.key, further))
        return result


class Undecided(Exception):
    """The function's paths can not be told; the message says why."""
