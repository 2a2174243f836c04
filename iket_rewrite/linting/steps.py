# SPDX-License-Identifier: Apache-2.0
"""Build the graph of a function: what is known beforehand, and how steps are joined."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from .asynchronous import Helpers
from .conditions import Guard
from .flow import Around, Edge, Flow, Step, StepKind
from .kinds import Kinds
from .lanes import Lanes, Variables
from .macros import Exits
from .parsing import Node, holds
from .sites import Point, Site

#: Edges that lead on to whatever comes next: the step that each leaves, and its condition.
Ends = list[tuple[int, Guard | None]]


@dataclass(slots=True)
class Reading:
    """What is known before a function is read.

    Attributes:
        text: the masked text.
        original: the text itself.
        sites: the sites of the function, in order.
        assembly: by the start of each inline assembly, its end.
        helpers: the functions of the file that issue or wait.
        effects: the functions of the file that leave ranges open or end some, each with the classes that have it; ""
            where it is no method.
        macros: the macros of the file that leave the path.
        enumerators: names of constants.
        copies: says of a loop how often `#pragma unroll` repeats its body.
        share: says of such a loop and a condition on its variable in which share of the turns it holds.
        value_of: gives the value of a constant expression, or None.
        kinds: what variables are declared with.
        lanes: what is known beforehand of names: of macros, helpers and what a lambda captures.
        shared: the names of variables in shared memory.
    """

    text: str
    original: str
    sites: Sequence[Site]
    assembly: dict[int, int]
    helpers: Helpers
    effects: Mapping[str, frozenset[str]]
    macros: Mapping[str, Exits]
    enumerators: frozenset[str]
    copies: Callable[[Node], int]
    share: Callable[[Node, str, bool], Fraction]
    value_of: Callable[[str], int | None]
    kinds: Kinds
    lanes: Mapping[str, Lanes] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    offsets: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.offsets = [site.start for site in self.sites]

    def site_at(self, offset: int) -> Site | None:
        """Return the site that starts there."""
        index = bisect_left(self.offsets, offset)
        return self.sites[index] if index < len(self.offsets) and self.offsets[index] == offset else None

    def holds_site(self, node: Node) -> bool:
        """Say whether a site stands in the node."""
        return holds(self.offsets, node.start_byte, node.end_byte)


class Steps:
    """The graph so far, and the ends that lead on from here."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.flow = Flow(variables=Variables(reading.value_of, reading.lanes, reading.shared))
        self.ends: Ends = []
        self.around = Around()
        self.nesting = 0

    def text_of(self, node: Node) -> str:
        """Return the original text of a node."""
        return self.reading.original[node.start_byte : node.end_byte]

    def _add(self, step: Step) -> int:
        """Add a step behind all ends; return its number.  Work behind work is one step."""
        if step.kind is StepKind.WORK and len(self.ends) == 1 and self.ends[0][1] is None:
            before = self.ends[0][0]
            if self.flow.steps[before].kind is StepKind.WORK:
                return before
        self.flow.steps.append(step)
        number = len(self.flow.steps) - 1
        self._connect(number)
        self.ends = [(number, None)]
        return number

    def _connect(self, target: int) -> None:
        for source, guard in self.ends:
            self.flow.steps[source].edges.append(Edge(target, guard))
        self.ends = []

    def _guarded(self, ends: Ends, guard: Guard) -> Ends:
        """Return ends under one more guard."""
        result: Ends = []
        for source, before in ends:
            if before is None:
                result.append((source, guard))
            else:
                self.flow.steps.append(Step(StepKind.JOIN))
                number = len(self.flow.steps) - 1
                self.flow.steps[source].edges.append(Edge(number, before))
                result.append((number, guard))
        return result

    def left(self, exits: Exits, at: int) -> None:
        """Add the ways out of code that is not part of the tree: of a macro, or of what is given to one."""
        raise NotImplementedError

    def opened(self, point: Point) -> None:
        """Note a scoped range, whose end its block brings."""
        raise NotImplementedError

    def closed(self, point: Point) -> None:
        """Note that the block of a scoped range ends."""
        raise NotImplementedError
