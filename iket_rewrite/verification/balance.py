# SPDX-License-Identifier: Apache-2.0
"""Say whether a function's ranges pair up, from every path through it.

A loop whose passes leave the state as it was, and branches that each keep to themselves, are balanced.  A fault counts
where one choice of ways makes it; others depend on conditions that may go together, and make the answer "not decided",
like a graph that can not be followed (an indirect jump, a call of a function with events, too many states).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..abi import EventKind
from .choices import Choices
from .flow import Flow
from .outcomes import Outcomes
from .paths import Fault, Follower, Node, Paths
from .records import Record, moves_of

#: How many jumps of a path are told, the latest ones.
_JUMPS_TOLD = 12


@dataclass(frozen=True, slots=True)
class Imbalance:
    """One fault, with the way to it.

    Attributes:
        fault: what is wrong.
        path: indices of the jumps that lead there, the latest ones.
    """

    fault: Fault
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Balance:
    """What following the graph told.

    Attributes:
        faults: what is wrong for certain.
        doubtful: where nothing is, what is wrong unless conditions of the code go together.
        undecided: why the graph could not be followed, or "".
    """

    faults: tuple[Imbalance, ...] = ()
    doubtful: tuple[Imbalance, ...] = ()
    undecided: str = ""


def check_balance(flow: Flow, records: tuple[Record, ...], kinds: dict[int, EventKind]) -> Balance:
    """Check the ranges of a function.

    Args:
        flow: the function.
        records: its events.
        kinds: the kind of each declared event, by id.
    """
    moves = moves_of(records, kinds)
    if not moves:
        return Balance()
    # Most functions pair up whatever their conditions are, which takes time to find out.
    if _sound(Follower(flow, moves, kinds, blind=True).run()):
        return Balance()
    follower = Follower(flow, moves, kinds)
    paths = follower.run()
    if not paths.undecided:
        return _Judge(follower, paths).judge()
    return Balance(undecided="" if _sound(follower.run(forgetful=True)) else paths.undecided)


def _sound(paths: Paths) -> bool:
    """Say whether no path has a fault, be there some that are none."""
    return not paths.undecided and not any(way.faults for ways in paths.ways.values() for way in ways)


class _Judge:
    """Tells the faults that are certain from those that depend on conditions."""

    def __init__(self, follower: Follower, paths: Paths) -> None:
        self.outcomes, self.flow = Outcomes(paths), follower.flow
        self.choices = Choices(follower, self.outcomes)
        self.since_choice: dict[Node, Node] = {}

    def judge(self) -> Balance:
        nodes = self.outcomes.paths.ways
        if not any(way.faults for ways in nodes.values() for way in ways):
            return Balance()
        certain = self._told(self._certain())
        if certain:
            return Balance(certain)
        return Balance(
            doubtful=self._told((fault, node) for node in nodes for way in nodes[node] for fault in way.faults)
        )

    def _certain(self) -> Iterator[tuple[Fault, Node]]:
        """Yield the faults that one choice makes, each with the node at which it shows; note the ways to them."""
        nodes, safe = self.outcomes.paths.ways, self.outcomes.safe
        first = next(iter(nodes))
        decisive = sorted((node for node in safe if self.choices.is_decisive(node)), key=_place)
        work = decisive[::-1] if first in safe else [first]
        seen = {first}
        while work:
            node = work.pop()
            for way in nodes[node]:
                if not self.outcomes.unfinished(node, way):
                    yield from ((fault, node) for fault in way.faults)
                # Beyond the first fault of a path there is nothing that this choice alone made.
                if way.to is not None and not way.faults and way.to not in safe and way.to not in seen:
                    seen.add(way.to)
                    self.since_choice[way.to] = node
                    work.append(way.to)

    def _told(self, faults: Iterator[tuple[Fault, Node]]) -> tuple[Imbalance, ...]:
        told: dict[object, Imbalance] = {}
        for fault, node in faults:
            # An unrolled loop is one loop.
            key = ("loop", fault.event) if fault.kind == "loop" else fault
            if key not in told:
                told[key] = Imbalance(fault, self._path(node))
        # A range that each pass of a loop opens anew is open at the end, too.
        return tuple(one for one in told.values() if one.fault.kind != "exit" or ("loop", one.fault.event) not in told)

    def _path(self, node: Node) -> tuple[int, ...]:
        """Return the jumps on the way to a node, the latest ones."""
        path: list[int] = []
        parents = self.since_choice
        while len(path) < _JUMPS_TOLD:
            # Behind the choice the way that was chosen, before it some way.
            if node not in parents:
                parents = self.outcomes.paths.came_from
            if (previous := parents.get(node)) is None:
                break
            last = self.flow.blocks[self.flow.block_of(previous[0])].end - 1
            jumps = self.flow.targets(last)[0] or self.flow.instructions[last].opcode.startswith("EXIT")
            if jumps and self.flow.block_of(node[0]) != self.flow.block_of(previous[0]):
                path.append(last)
            node = previous
        return tuple(reversed(path))


def _place(node: Node) -> tuple[object, ...]:
    at, state = node
    return at, state.stack, sorted(state.tokens), sorted(state.facts)
