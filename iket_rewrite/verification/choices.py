# SPDX-License-Identifier: Apache-2.0
"""Whether a fault is made by one choice of ways, whatever the values are.

A path that faults need not be one that is ever taken: a range that is opened under `i == 0` and closed under
`i == n - 1`, or that a variable says to be open, pairs up by what the values mean, which the graph does not tell.  So a
fault counts where one choice makes it: on the way chosen no path comes right, and nothing that happened before can bear
on it.  That is so where

* no path that can come right at all takes that way there, and either no variable carries the condition that is tested,
  or every path that arrives there has the same ranges open; or
* no variable carries it, no other condition tests what it tests, and the paths which can still come right, and on which
  the same is known of conditions, have the same ranges open; or no loop and no variable is concerned: neither is the
  choice in a loop, nor are ranges opened or closed in one or under conditions that may go together with others.

The choice is none where the wrong way is what comparisons leave of a value that may have no others: the way past all
cases of a `switch` over `x % 3`.
"""

from __future__ import annotations

from functools import cached_property

from .facts import NOTHING, Known
from .outcomes import Outcomes
from .paths import Follower, Node, Open, State, Way
from .sources import PARAMETERS
from .spans import ENDS, parts_of


class Choices:
    """The places of a function at which ways part.

    Args:
        follower: of the function.
        outcomes: of its paths.
    """

    def __init__(self, follower: Follower, outcomes: Outcomes) -> None:
        self.outcomes, self.flow, self.moves = outcomes, follower.flow, follower.moves
        self.conditions, self.sources, self.facts = follower.names, follower.sources, follower.facts
        self._loops: dict[int, bool] = {}
        self._loose: dict[int, bool] = {}

    def is_decisive(self, node: Node) -> bool:
        """Say whether a way from a node, from which some path comes right, is wrong whatever happened before."""
        if not self.outcomes.goes_wrong(node) or self._left_over(node):
            return False
        return self._never_right(node) or self._free(node)

    # --- What is open at a place ----------------------------------------------------------------------------

    @cached_property
    def _opened(self) -> dict[int, set[Open]]:
        """What is open at each place on any path."""
        opened: dict[int, set[Open]] = {}
        for at, state in self.outcomes.paths.ways:
            opened.setdefault(at, set()).add(state.open)
        return opened

    @cached_property
    def _known(self) -> dict[object, set[Open]]:
        """What is open at each place on the paths that can still come right, by what is known of conditions."""
        known: dict[object, set[Open]] = {}
        for at, state in self.outcomes.safe:
            known.setdefault((at, state.facts), set()).add(state.open)
        return known

    @cached_property
    def _right(self) -> set[object]:
        """The sides of places on which some path comes right."""
        found: set[object] = set()
        for at, state in self.outcomes.safe:
            ways = self.outcomes.paths.ways[at, state]
            found.update((at, _side(state, way)) for way in ways if not self.outcomes.wrong((at, state), way))
        return found

    # --- Kinds of choices -----------------------------------------------------------------------------------

    def _never_right(self, node: Node) -> bool:
        """Say whether a node has a way that is wrong here, and right from no other node at its place."""
        at, state = node
        index = self._choosing(at)
        if len(self._opened[at]) > 1 and self.sources.carried(index):
            return False
        # What tests before a switch's jump tell of its targets is not known, nor what its target tells of tests behind.
        switched = self._is_switch(index) or bool(self.sources.of(index) & self._switched)
        if switched and self._related(index, state.facts):
            return False
        wrong = [way for way in self.outcomes.paths.ways[node] if self.outcomes.wrong(node, way)]
        return any((at, _side(state, way)) not in self._right for way in wrong)

    def _free(self, node: Node) -> bool:
        """Say whether the choice at a node has nothing to do with what is open there."""
        at, state = node
        known = self._known[at, state.facts]
        if self.sources.carried(self._choosing(at)) or self._related(self._choosing(at), state.facts):
            return False
        if len(known) == 1:
            return True
        concerned = {one for ranges in known for part in ranges for one in part}
        return not self._in_loop(self.flow.block_of(at)) and not concerned & self._loosely_moved

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
        for way in self.outcomes.paths.ways[node]:
            if not self.outcomes.wrong(node, way):
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

    def _choosing(self, at: int) -> int:
        """Return the instruction at which the ways part: the next event or exit, or the block's last."""
        last = self.flow.blocks[self.flow.block_of(at)].end - 1
        return next((index for index in range(at, last) if index in self.moves), last)

    def _related(self, index: int, known: Known) -> bool:
        """Say whether a condition may go together with another one that was tested before: they share what they test.

        A value that is read from memory, and that no other condition is computed from, makes a condition its own where
        the condition can have both outcomes by that value alone.
        """
        others = self._tested_before(index)
        if not self.sources.of(index) & others:
            return False
        named = self.conditions.named(index)
        if named is None:
            return True
        parts = [part for part, _ in parts_of(named[0])] or [named[0]]
        open_yet = [part for part in parts if not self.facts.decided(known, part)]
        return len(open_yet) != 1 or not self.sources.deciding(open_yet[0]) - others

    def _tested_before(self, index: int) -> frozenset[object]:
        """Return what other conditions are computed from that are tested on a way to an instruction."""
        numbered = self.facts.tested
        number = numbered.get(index, (-1, True))[0]
        # What comparisons with constants tell of one another is known.
        apart = {one for one, (other, _) in numbered.items() if self._alike(other, number)}
        if self._is_switch(index):
            apart |= self._in_front(index)
        places = {*self.moves, *self.flow.jumps()} - apart - {index}
        tests = [one for one in places if self.flow.conditional(one) or self._is_switch(one)]
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

    @cached_property
    def _switched(self) -> frozenset[object]:
        """What the jumps of switches are computed from."""
        jumps = [self.sources.of(index) for index in self.flow.jumps() if self._is_switch(index)]
        return frozenset().union(*jumps)

    def _is_switch(self, index: int) -> bool:
        return self.flow.instructions[index].opcode.startswith(("BRX", "JMX"))

    def _in_front(self, index: int) -> set[int]:
        """Return the tests in front of a switch's jump that are part of it: no event and no other way in between.

        A value that is read can only have been read for it; the index of a warp is tested for much.
        """
        found: set[int] = set()
        if not all(isinstance(one, tuple) and one[0] != PARAMETERS for one in self.sources.of(index)):
            return found
        blocks, number = self.flow.blocks, self.flow.block_of(index)
        while len(blocks[number].predecessors) == 1:
            (number,) = blocks[number].predecessors
            last = blocks[number].end - 1
            if last in found:
                break
            found.add(last)
            if any(one in self.moves for one in range(blocks[number].start, blocks[number].end)):
                break
        return found

    @cached_property
    def _loosely_moved(self) -> set[int]:
        """The ranges that are opened or closed in a loop, or under conditions that may go together with others."""
        moved = set()
        for (at, state), ways in self.outcomes.paths.ways.items():
            for way in ways:
                if way.to is not None and way.to[1].open != state.open and self._loosely(at):
                    before, after = ({*one.stack, *one.tokens} for one in (state, way.to[1]))
                    moved |= before ^ after
        return moved

    def _loosely(self, at: int) -> bool:
        """Say whether a place is in a loop, or reached under a condition only that may go together with another one."""
        if at not in self._loose:
            block, index = self.flow.block_of(at), self._choosing(at)
            found = self._in_loop(block) or self._is_doubtful(index)
            seen: set[int] = set()
            while not found and block not in seen and len(self.flow.blocks[block].predecessors) == 1:
                seen.add(block)
                (block,) = self.flow.blocks[block].predecessors
                last = self.flow.blocks[block].end - 1
                found = self._is_doubtful(last)
            self._loose[at] = found
        return self._loose[at]

    def _is_doubtful(self, index: int) -> bool:
        return self.flow.conditional(index) and (self.sources.carried(index) or self._related(index, NOTHING))

    def _in_loop(self, number: int) -> bool:
        if number not in self._loops:
            seen: set[int] = set()
            work = list(self.flow.blocks[number].successors)
            while work:
                block = work.pop()
                if block not in seen:
                    seen.add(block)
                    work += self.flow.blocks[block].successors
            self._loops[number] = number in seen
        return self._loops[number]


def _side(state: State, way: Way) -> object:
    """Return which way it is, whatever is open: where it leads, and whether it opens or closes something."""
    return (way.to[0], way.to[1].open != state.open) if way.to is not None else None
