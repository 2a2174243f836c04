# SPDX-License-Identifier: Apache-2.0
"""Say whether a function's ranges pair up, from every path through it.

A loop whose passes leave the state as it was, and branches that each keep to themselves, are balanced.  A path that
faults need not be one that is ever taken: a range that is opened under `i == 0` and closed under `i == n - 1`, or that
a variable says to be open, pairs up by what the values mean, which the graph does not tell.  So a fault counts where
one choice of ways makes it:

* on the way chosen no path comes right, and
* every path that arrives at the choice has the same ranges open there, so nothing that happened before can bear on it.
  Where no variable carries the condition that is tested, it suffices that this holds of the paths which can still come
  right and on which the same is known of conditions, or that no loop is concerned: neither is the choice in one, nor
  are the ranges opened or closed in one.

Other faults depend on conditions that may go together; like a graph that can not be followed (an indirect jump, a call
of a function with events, too many states) they make the answer "not decided".
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from ..abi import EventKind
from .conditions import Conditions
from .flow import Flow
from .paths import Fault, Follower, Node, Open, Paths
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
    paths = Follower(flow, moves, kinds).run()
    return Balance(undecided=paths.undecided) if paths.undecided else _Judge(flow, moves, paths).judge()


class _Judge:
    """Tells the faults that are certain from those that depend on conditions."""

    def __init__(self, flow: Flow, moves: Container[int], paths: Paths) -> None:
        self.flow, self.moves, self.paths = flow, moves, paths
        self.conditions = Conditions(flow)
        self.loops: dict[int, bool] = {}
        self.since_choice: dict[Node, Node] = {}

    def judge(self) -> Balance:
        nodes = self.paths.ways
        if not any(way.faults for ways in nodes.values() for way in ways):
            return Balance()
        self.safe, self.loose = self._safe(), self._moved_in_loops()
        certain = self._told(self._certain())
        if certain:
            return Balance(certain)
        return Balance(
            doubtful=self._told((fault, node) for node in nodes for way in nodes[node] for fault in way.faults)
        )

    def _safe(self) -> set[Node]:
        """Return the nodes from which some path comes to its end without a fault."""
        before: dict[Node, list[Node]] = {}
        safe = set()
        for node, ways in self.paths.ways.items():
            for way in ways:
                if way.faults:
                    continue
                if way.to is None:
                    safe.add(node)
                else:
                    before.setdefault(way.to, []).append(node)
        work = list(safe)
        while work:
            for node in before.get(work.pop(), ()):
                if node not in safe:
                    safe.add(node)
                    work.append(node)
        return safe

    def _certain(self) -> Iterator[tuple[Fault, Node]]:
        """Yield the faults that one choice makes, each with the node at which it shows; note the ways to them."""
        opened: dict[int, set[Open]] = {}
        for at, state in self.paths.ways:
            opened.setdefault(at, set()).add(state.open)
        known: dict[object, set[Open]] = {}
        for at, state in self.safe:
            known.setdefault((at, state.facts), set()).add(state.open)
        first = next(iter(self.paths.ways))
        choices = [
            (at, state)
            for at, state in self.safe
            if self._goes_wrong((at, state)) and self._free(at, opened[at], known[at, state.facts])
        ]
        choices = sorted(choices, key=_place) if first in self.safe else [first]
        seen = {first}
        work = choices[::-1]
        while work:
            node = work.pop()
            for way in self.paths.ways[node]:
                yield from ((fault, node) for fault in way.faults)
                # Beyond the first fault of a path there is nothing that this choice alone made.
                if way.to is not None and not way.faults and way.to not in self.safe and way.to not in seen:
                    seen.add(way.to)
                    self.since_choice[way.to] = node
                    work.append(way.to)

    def _goes_wrong(self, node: Node) -> bool:
        """Say whether no path comes right on some way from a node."""
        return any(way.faults or (way.to is not None and way.to not in self.safe) for way in self.paths.ways[node])

    def _free(self, at: int, opened: set[Open], known: set[Open]) -> bool:
        """Say whether the choice at an instruction has nothing to do with what is open there.

        Args:
            at: where the choice is.
            opened: what is open there on any path.
            known: what is open on those which can still come right and know the same of conditions.
        """
        if len(opened) == 1:
            return True
        if self.conditions.carried(self._choosing(at)):
            return False
        if len(known) == 1:
            return True
        concerned = {one for ranges in known for part in ranges for one in part}
        return not self._in_loop(self.flow.block_of(at)) and not concerned & self.loose

    def _choosing(self, at: int) -> int:
        """Return the instruction at which the ways part: the next event or exit, or the block's last."""
        last = self.flow.blocks[self.flow.block_of(at)].end - 1
        return next((index for index in range(at, last) if index in self.moves), last)

    def _moved_in_loops(self) -> set[int]:
        """Return the ranges that are opened or closed in a loop."""
        moved = set()
        for (at, state), ways in self.paths.ways.items():
            for way in ways:
                if way.to is not None and way.to[1].open != state.open and self._in_loop(self.flow.block_of(at)):
                    before, after = ({*one.stack, *one.tokens} for one in (state, way.to[1]))
                    moved |= before ^ after
        return moved

    def _in_loop(self, number: int) -> bool:
        if number not in self.loops:
            seen: set[int] = set()
            work = list(self.flow.blocks[number].successors)
            while work:
                block = work.pop()
                if block not in seen:
                    seen.add(block)
                    work += self.flow.blocks[block].successors
            self.loops[number] = number in seen
        return self.loops[number]

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
                parents = self.paths.came_from
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
