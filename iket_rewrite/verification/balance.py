# SPDX-License-Identifier: Apache-2.0
"""Say whether a function's ranges pair up, from every path through it.

A loop whose passes leave the state as it was, and branches that each keep to themselves, are balanced.  A path that
faults need not be one that is ever taken: a range that is opened under `i == 0` and closed under `i == n - 1`, or that
a variable says to be open, pairs up by what the values mean, which the graph does not tell.  So a fault counts where
one choice of ways makes it:

* on the way chosen no path comes right, and
* every path that arrives at the choice has the same ranges open there, so nothing that happened before can bear on it.
  Where no variable carries the condition that is tested, and no other condition tests what it tests, it suffices that
  this holds of the paths which can still come right and on which the same is known of conditions, or that no loop is
  concerned: neither is the choice in one, nor are the ranges opened or closed in one.

The choice is none where the wrong way is what comparisons leave of a value that may have no others: the way past all
cases of a `switch` over `x % 3`.  A loop that is followed no further may come right where enough is closed behind it.

Other faults depend on conditions that may go together; like a graph that can not be followed (an indirect jump, a call
of a function with events, too many states) they make the answer "not decided".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..abi import EventKind
from .flow import Flow
from .paths import Fault, Follower, Node, Open, Paths, Way
from .records import Record, moves_of
from .spans import ENDS

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
    follower = Follower(flow, moves, kinds)
    paths = follower.run()
    if not paths.undecided:
        return _Judge(follower, paths).judge()
    more = follower.run(forgetful=True)
    sound = not more.undecided and not any(way.faults for ways in more.ways.values() for way in ways)
    return Balance(undecided="" if sound else paths.undecided)


class _Judge:
    """Tells the faults that are certain from those that depend on conditions."""

    def __init__(self, follower: Follower, paths: Paths) -> None:
        self.follower, self.paths = follower, paths
        self.flow, self.moves = follower.flow, follower.moves
        self.sources, self.facts = follower.sources, follower.facts
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
        """Return the nodes from which some path comes to its end without a fault, or may where it is not followed."""
        before: dict[Node, list[Node]] = {}
        safe = set()
        for node, ways in self.paths.ways.items():
            for way in ways:
                if way.faults and not way.unfinished:
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
            if self._goes_wrong((at, state))
            and not self._left_over((at, state))
            and self._free(at, opened[at], known[at, state.facts])
        ]
        choices = sorted(choices, key=_place) if first in self.safe else [first]
        seen = {first}
        work = choices[::-1]
        while work:
            node = work.pop()
            for way in self.paths.ways[node]:
                if not way.unfinished:
                    yield from ((fault, node) for fault in way.faults)
                # Beyond the first fault of a path there is nothing that this choice alone made.
                if way.to is not None and not way.faults and way.to not in self.safe and way.to not in seen:
                    seen.add(way.to)
                    self.since_choice[way.to] = node
                    work.append(way.to)

    def _goes_wrong(self, node: Node) -> bool:
        """Say whether no path comes right on some way from a node."""
        return any(self._wrong(way) for way in self.paths.ways[node])

    def _wrong(self, way: Way) -> bool:
        return (bool(way.faults) and not way.unfinished) or (way.to is not None and way.to not in self.safe)

    def _left_over(self, node: Node) -> bool:
        """Say whether the wrong way is what comparisons of one value with constants leave, and may be no value at all.

        So is the way past `x == 0`, `x == 1` and `x == 2` where x is a rest of a division by 3, or the index of a warp.
        """
        at, state = node
        index = self._choosing(at)
        condition, acts_at = self.facts.tested.get(index, (-1, True))
        if condition not in self.facts.compared or self.sources.any_value(self.facts.compared[condition]):
            return False
        told = [fact for fact in state.facts if self._alike(fact[0], condition)]
        if not told:
            return False
        targets = self.flow.targets(index)[0]
        for way in self.paths.ways[node]:
            if not self._wrong(way):
                continue
            if targets:
                acts = way.to is not None and way.to[0] in targets
            else:
                acts = way.to is None or way.to[1].open != state.open
            left = self.facts.left(state.facts, condition, acts is acts_at)
            if not any(high in ENDS for _, high in left):
                return False
        return True

    def _alike(self, fact: int, condition: int) -> bool:
        compared = self.facts.compared
        return fact in compared and condition in compared and compared[fact] == compared[condition]

    def _free(self, at: int, opened: set[Open], known: set[Open]) -> bool:
        """Say whether the choice at an instruction has nothing to do with what is open there.

        Args:
            at: where the choice is.
            opened: what is open there on any path.
            known: what is open on those which can still come right and know the same of conditions.
        """
        if len(opened) == 1:
            return True
        if self.sources.carried(self._choosing(at)) or self._related(self._choosing(at)):
            return False
        if len(known) == 1:
            return True
        concerned = {one for ranges in known for part in ranges for one in part}
        return not self._in_loop(self.flow.block_of(at)) and not concerned & self.loose

    def _choosing(self, at: int) -> int:
        """Return the instruction at which the ways part: the next event or exit, or the block's last."""
        last = self.flow.blocks[self.flow.block_of(at)].end - 1
        return next((index for index in range(at, last) if index in self.moves), last)

    def _related(self, index: int) -> bool:
        """Say whether a condition may go together with another one that was tested before: they share what they test.

        A value that is read from memory, and that no other condition is computed from, makes a condition its own.
        """
        sources, others = self.sources.of(index), self._tested_before(index)
        reads = {one for one in sources if isinstance(one, tuple)}
        return bool(sources & others) and not reads - others

    def _tested_before(self, index: int) -> frozenset[object]:
        """Return what other conditions are computed from that are tested on a way to an instruction."""
        numbered = self.facts.tested
        number = numbered.get(index, (-1, True))[0]
        # What comparisons with constants tell of one another is known; those in front of a switch's jump are its own.
        apart = {one for one, (other, _) in numbered.items() if self._alike(other, number)}
        if self.flow.instructions[index].opcode.startswith(("BRX", "JMX")):
            apart |= {one for one, (other, _) in numbered.items() if other in self.facts.compared}
            apart |= {self.flow.blocks[one].end - 1 for one in self.flow.blocks[self.flow.block_of(index)].predecessors}
        tests = [one for one in {*self.moves, *self.flow.jumps()} - apart - {index} if self.flow.conditional(one)]
        before, work = set(), [self.flow.block_of(index)]
        while work:
            for block in self.flow.blocks[work.pop()].predecessors:
                if block not in before:
                    before.add(block)
                    work.append(block)
        near = self.flow.block_of(index)
        found: set[object] = set()
        for one in tests:
            block = self.flow.block_of(one)
            if block in before or (block == near and one < index):
                found |= self.sources.of(one)
        return frozenset(found)

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
