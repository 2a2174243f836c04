# SPDX-License-Identifier: Apache-2.0
"""Follow ranges along a function's graph: every path, with the stack of open ranges and the open token ranges on it.

The state of a path holds also what it has learnt of conditions that the code tests more than once: a kernel that opens
a range under `if (warp == 0)` and closes it under the same condition further down is balanced.  A condition is told by
the instruction that computes it and by where its operands come from, so it is known again when it is computed anew; it
is forgotten when one of them is.

A pop that only the push's leader lane runs (our scoped ranges) is a pop of the warp: the lanes that skip it are the
same warp.  Its guard comes from the lane mask, by which it is told from a condition of the kernel's own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from .. import abi
from ..abi import EventKind
from .closing import Closing
from .conditions import Conditions
from .facts import NOTHING, Facts, Known
from .flow import Flow
from .sources import Sources

#: More open ranges, or different states at one point, than any sensible kernel has.
_DEEPEST = 64
_MOST_STATES = 400
#: How many ranges of one event may be open beyond the places that open it: more is a loop that leaves them open.
_OPEN_BEYOND_PLACES = 2
#: How many steps the following may take, for each point and at least: beyond it the paths are too many.
_STEPS_PER_POINT, _FEWEST_STEPS = 30, 2000


#: The stack of open ranges, and the token ranges that are open.
Open = tuple[tuple[int, ...], frozenset[int]]


@dataclass(frozen=True, slots=True)
class State:
    """What holds at one point of one path."""

    stack: tuple[int, ...] = ()
    tokens: frozenset[int] = frozenset()
    facts: Known = NOTHING

    @property
    def open(self) -> Open:
        """The ranges that are open."""
        return self.stack, self.tokens

    def knowing(self, facts: Known) -> State:
        """Return the state with other facts."""
        return self if facts == self.facts else State(self.stack, self.tokens, facts)


#: An instruction's index, and the state before it.
Node = tuple[int, State]


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault on some path.

    Attributes:
        kind: "pop" (nothing was open), "exit" (a range was), "token" (a token range was), "loop" (passes of a loop open
            more than they close).
        at: index of the instruction at which it shows.
        event: id of the range that stays open, or None.
    """

    kind: str
    at: int
    event: int | None


@dataclass(frozen=True, slots=True)
class Way:
    """One way on from a node.

    Attributes:
        to: where it leads; None where the path ends.
        faults: what is wrong on it.
        unfinished: whether it is followed no further and could come right yet.
    """

    to: Node | None
    faults: tuple[Fault, ...] = ()
    unfinished: bool = False


@dataclass(slots=True)
class Paths:
    """Every path through a function.

    Attributes:
        ways: the ways on from every node that is reached.
        came_from: one node from which each is reached, but for the first.
        undecided: why the paths could not be followed, or "".
    """

    ways: dict[Node, tuple[Way, ...]] = field(default_factory=dict)
    came_from: dict[Node, Node] = field(default_factory=dict)
    undecided: str = ""


class _TooMany(Exception):
    """More states than are followed."""


class Follower:
    """Follows every path through a function, with what is open on it; `between` looks on by a class of its own.

    Args:
        flow: the function.
        moves: the event of each trigger that opens or closes a range, by the trigger's index.
        kinds: the kind of each declared event, by id.
        blind: learn nothing of conditions: every way is gone at each, so there are more paths than there are.
    """

    def __init__(self, flow: Flow, moves: dict[int, int], kinds: dict[int, EventKind], *, blind: bool = False) -> None:
        self.flow, self.moves, self.kinds = flow, moves, kinds
        self.places = Counter(moves.values())
        self.names = Conditions(flow)
        self.sources = Sources(self.names)
        self.facts = Facts(flow, self.names, () if blind else {*moves, *flow.jumps()})
        self.leader_cache: dict[int, bool] = {}
        exits = {index for index in flow.jumps() if flow.instructions[index].opcode.startswith("EXIT")}
        #: Where something happens to a state between the ends of blocks.
        self.stops = sorted({*self.moves, *self.facts.forgets, *exits})
        self.exits = exits
        self.forgetful = False
        self.closing = Closing(flow, moves, kinds)

    def run(self, *, forgetful: bool = False) -> Paths:
        """Follow every path.

        Args:
            forgetful: forget what is known of conditions behind each pop that leaves no range open.  These are fewer
                states, of more paths than there are: where none of them has a fault there is none; a fault says
                nothing.
        """
        self.forgetful = forgetful
        paths = Paths()
        try:
            self._follow(paths)
        except _TooMany:
            paths.undecided = "too many paths"
        return paths

    def _follow(self, paths: Paths) -> None:
        steps = _FEWEST_STEPS + _STEPS_PER_POINT * (len(self.flow.blocks) + len(self.moves) + len(self.exits))
        first: Node = (0, State())
        known, work = Counter[int](), [first]
        paths.ways[first] = ()
        while work:
            node = work.pop()
            steps -= 1
            if steps < 0:
                raise _TooMany
            if self.flow.blocks[self.flow.block_of(node[0])].unknown_successor:
                paths.undecided = "an indirect jump"
                return
            ways = paths.ways[node] = tuple(dict.fromkeys(self._ways(*node)))
            for after in (way.to for way in ways):
                if after is None or after in paths.ways:
                    continue
                known[after[0]] += 1
                if known[after[0]] > _MOST_STATES:
                    raise _TooMany
                paths.came_from[after] = node
                paths.ways[after] = ()
                work.append(after)

    # --- One step -------------------------------------------------------------------------------------------

    def _ways(self, at: int, state: State) -> Iterator[Way]:
        """Follow a state from an instruction to the next event, exit or end of the block; yield the ways on from it."""
        block = self.flow.blocks[self.flow.block_of(at)]
        for index in self.stops[bisect_left(self.stops, at) :]:
            if index >= block.end:
                break
            if index in self.facts.forgets:
                state = state.knowing(self.facts.behind(index, state.facts))
            if index in self.exits:
                yield from self._exit(index, state)
                return
            if index in self.moves:
                yield from self._event(index, state)
                return
        yield from self._onward(self.flow.block_of(at), state)

    def _event(self, index: int, state: State) -> Iterator[Way]:
        for holds, split in self._split(index, state):
            # The lanes that skip their leader's pop are of the same warp.
            if not holds and not self._by_leader(index):
                yield from self._after(index, self._remembered(index, split))
                continue
            after, fault = self._move(index, split)
            if fault is not None and fault.kind == "loop":
                yield Way(None, (fault,), self.closing.behind(index) >= len(after.stack))
                continue
            for way in self._after(index, self._remembered(index, after)):
                yield Way(way.to, (*((fault,) if fault else ()), *way.faults))

    def _remembered(self, index: int, state: State) -> State:
        """Return a state behind an event, with what is still remembered of conditions."""
        closed = self.moves[index] == abi.ID_POP and not state.stack and not state.tokens
        return state.knowing(NOTHING) if self.forgetful and closed else state

    def _exit(self, index: int, state: State) -> Iterator[Way]:
        """Check what is open where the path ends; go on past a conditional exit."""
        before_pop = self._leaves_before_pop(index)
        for holds, split in self._split(index, state):
            if not holds:
                yield from self._after(index, split)
            elif not before_pop:
                faults = [Fault("exit", index, self._event_of(split.stack[-1]))] if split.stack else []
                tokens = sorted({self._event_of(token) for token in split.tokens})
                yield Way(None, (*faults, *(Fault("token", index, token) for token in tokens)))

    def _after(self, index: int, state: State) -> Iterator[Way]:
        """Go on behind an instruction."""
        number = self.flow.block_of(index)
        if index + 1 < self.flow.blocks[number].end:
            yield Way((index + 1, state))
        else:
            yield from self._onward(number, state)

    def _move(self, index: int, state: State) -> tuple[State, Fault | None]:
        """Return the state behind an event, and what is wrong with it."""
        number = self.moves[index]
        if number == abi.ID_POP:
            fault = None if state.stack else Fault("pop", index, None)
            return State(state.stack[:-1], state.tokens, state.facts), fault
        if self.kinds[number] is EventKind.TOKEN_RANGE:
            return self._token(index, state), None
        stack = (*state.stack, self._opened(index))
        deep = len(stack) > _DEEPEST or stack.count(stack[-1]) > self.places[number] + _OPEN_BEYOND_PLACES
        return State(stack, state.tokens, state.facts), Fault("loop", index, number) if deep else None

    def _token(self, index: int, state: State) -> State:
        return State(state.stack, state.tokens ^ {self.moves[index]}, state.facts)

    def _opened(self, index: int) -> int:
        """Return what stands on the stack for a range that is opened here: its event."""
        return self.moves[index]

    def _event_of(self, opened: int) -> int:
        return opened

    def _onward(self, number: int, state: State) -> Iterator[Way]:
        """Go on at the end of a block."""
        block = self.flow.blocks[number]
        last = block.end - 1
        jumps, _, falls = self.flow.targets(last)
        if not block.successors:
            yield Way(None)
        elif not jumps:
            yield from (self._into(successor, state) for successor in block.successors)
        elif (first := self._popping_first(number)) is not None:
            yield self._into(first, state)
        else:
            targets = list(dict.fromkeys(self.flow.block_of(jump) for jump in jumps))
            others = [successor for successor in block.successors if successor not in targets]
            for holds, split in self._split(last, state) if falls else [(True, state)]:
                yield from (self._into(successor, split) for successor in (targets if holds else others))

    def _into(self, number: int, state: State) -> Way:
        return Way((self.flow.blocks[number].start, state.knowing(self.facts.into(number, state.facts))))

    # --- Conditions -----------------------------------------------------------------------------------------

    def _split(self, index: int, state: State) -> Iterator[tuple[bool, State]]:
        """Yield whether the instruction acts, with the state that holds then."""
        named = self.facts.tested.get(index)
        # Which lane leads says nothing of the warp's path.
        if named is None or self._by_leader(index):
            yield True, state
            if self.flow.conditional(index):
                yield False, state
            return
        condition, acts_at = named
        for value in (True, False):
            if self.facts.possible(state.facts, condition, value):
                yield value is acts_at, state.knowing(state.facts | {(condition, value)})

    # --- Leader lanes ---------------------------------------------------------------------------------------

    def _popping_first(self, number: int) -> int | None:
        """Return the successor that begins with a pop which only the leader runs: the warp goes there."""
        block = self.flow.blocks[number]
        if not self._by_leader(block.end - 1):
            return None
        popping = [successor for successor in block.successors if self._pops(successor)]
        # Of two ways that begin with a pop, one is past the leader's: the leader goes there after it.
        past = {after for successor in popping for after in self.flow.blocks[successor].successors}
        first = [successor for successor in popping if successor not in past]
        return first[0] if len(first) == 1 else None

    def _leaves_before_pop(self, index: int) -> bool:
        block = self.flow.blocks[self.flow.block_of(index)]
        return (
            index == block.end - 1
            and any(self._pops(successor) for successor in block.successors)
            and self._by_leader(index)
        )

    def _pops(self, number: int) -> bool:
        block = self.flow.blocks[number]
        for index in range(block.start, block.end):
            if index in self.moves:
                return self.moves[index] == abi.ID_POP
        return False

    def _by_leader(self, index: int) -> bool:
        """Say whether an instruction's predicate comes from a comparison with the lane mask."""
        if index not in self.leader_cache:
            test = self.names.predicates.test(index)
            self.leader_cache[index] = test is not None and self.sources.from_lane_mask(test[0], index)
        return self.leader_cache[index]
