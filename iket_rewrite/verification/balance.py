# SPDX-License-Identifier: Apache-2.0
"""Follow ranges along a function's graph: pushes and pops, starts and ends.

The state of a path is the stack of open ranges, the set of open token ranges, and what the path has learnt of
conditions that the code tests more than once: a kernel that opens a range under `if (warp == 0)` and closes it under
the same condition further down is balanced.  A condition is told by the instruction that computes it and by where its
operands come from, so it is known again when it is computed anew; it is forgotten when one of them is.

A loop whose passes leave the state as it was, and branches that each keep to themselves, are balanced.  Where the graph
can not be followed (an indirect jump, a call of a function with events, too many states) the answer is "not decided".

A pop that only the push's leader lane runs (our scoped ranges) is a pop of the warp: the lanes that skip it are the
same warp.  Its guard comes from the lane mask, by which it is told from a condition of the kernel's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import abi
from ..abi import EventKind
from .conditions import Condition, Conditions, definitions_in
from .flow import Flow
from .records import Record, moves_of

#: More open ranges, or more different states at one point, than any sensible kernel has.
_DEEPEST = 64
_MOST_STATES = 400
#: How many steps the following may take, for each block and at least: beyond it the paths are too many.
_STEPS_PER_BLOCK, _FEWEST_STEPS = 30, 2000


@dataclass(frozen=True, slots=True)
class State:
    """What holds at one point of one path."""

    stack: tuple[int, ...] = ()
    tokens: frozenset[int] = frozenset()
    facts: frozenset[tuple[int, bool]] = frozenset()


@dataclass(frozen=True, slots=True)
class Imbalance:
    """One fault on some path.

    Attributes:
        kind: "pop" (nothing was open), "exit" (a range was), "token" (a token range was), "loop" (passes of a loop open
            more than they close).
        at: index of the instruction at which it shows.
        event: id of the range that stays open, or None.
        path: indices of the jumps that lead there, the latest ones.
    """

    kind: str
    at: int
    event: int | None
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Balance:
    """What following the graph told: the faults, or why it could not be decided."""

    faults: tuple[Imbalance, ...] = ()
    undecided: str = ""


def check_balance(flow: Flow, records: tuple[Record, ...], kinds: dict[int, EventKind]) -> Balance:
    """Check the ranges of a function.

    Args:
        flow: the function.
        records: its events.
        kinds: the kind of each declared event, by id.
    """
    moves = moves_of(records, kinds)
    return Follower(flow, moves, kinds).run() if moves else Balance()


class _TooMany(Exception):
    """More states than are followed."""


class Follower:
    """Follows every path through a function, with what is open on it; `between` looks on by a class of its own."""

    def __init__(self, flow: Flow, moves: dict[int, int], kinds: dict[int, EventKind]) -> None:
        self.flow, self.moves, self.kinds = flow, moves, kinds
        self.faults: dict[tuple[str, int, int | None], Imbalance] = {}
        self.came_from: dict[tuple[int, State], tuple[int, State]] = {}
        self.names = Conditions(flow)
        self.forgets: dict[int, list[int]] = {}
        self.learns: dict[int, tuple[int, bool]] = {}
        self.conditions = self._conditions()
        self.leader_cache: dict[int, bool] = {}

    def run(self) -> Balance:
        """Follow every path."""
        states: dict[int, set[State]] = {0: {State()}}
        work = [(0, State())]
        try:
            return self._follow(states, work)
        except _TooMany:
            return Balance(undecided="too many paths")

    def _follow(self, states: dict[int, set[State]], work: list[tuple[int, State]]) -> Balance:
        steps = _FEWEST_STEPS + _STEPS_PER_BLOCK * len(self.flow.blocks)
        while work:
            number, state = work.pop()
            steps -= 1
            if steps < 0:
                raise _TooMany
            if self.flow.blocks[number].unknown_successor:
                return Balance(undecided="an indirect jump")
            for successor, after in self._through(number, state):
                known = states.setdefault(successor, set())
                if after in known:
                    continue
                self.came_from[successor, after] = (number, state)
                if len(after.stack) > _DEEPEST:
                    self._fault("loop", self.flow.blocks[successor].start, after.stack[-1], (successor, after))
                    return Balance(tuple(self.faults.values()))
                known.add(after)
                if len(known) > _MOST_STATES:
                    raise _TooMany
                work.append((successor, after))
        return Balance(tuple(self.faults.values()))

    # --- One block ------------------------------------------------------------------------------------------

    def _through(self, number: int, before: State) -> Iterator[tuple[int, State]]:
        """Follow one state through a block; yield the blocks that it can reach, with the state there."""
        block = self.flow.blocks[number]
        states = [before]
        for index in range(block.start, block.end):
            if index in self.forgets:
                states = [self._rewritten(state, index) for state in states]
            stem = self.flow.instructions[index].opcode.split(".", 1)[0]
            if stem == "EXIT":
                states = self._exit(number, index, states, (number, before))
            elif index in self.moves:
                states = self._event(index, states, (number, before))
            if len(states) > _MOST_STATES:
                raise _TooMany
        for state in dict.fromkeys(states):
            yield from self._onward(number, state)

    def _event(self, index: int, states: list[State], point: tuple[int, State]) -> list[State]:
        result = []
        for state in states:
            for holds, split in self._split(index, state):
                # The lanes that skip their leader's pop are of the same warp.
                if holds or self._by_leader(index):
                    result.append(self._move(index, split, point))
                else:
                    result.append(split)
        return list(dict.fromkeys(result))

    def _exit(self, number: int, index: int, states: list[State], point: tuple[int, State]) -> list[State]:
        """Check what is open where the path ends; return the states that go on past a conditional exit."""
        going_on = []
        before_pop = self._leaves_before_pop(number, index)
        for state in states:
            for holds, split in self._split(index, state):
                if not holds:
                    going_on.append(split)
                elif not before_pop:
                    if split.stack:
                        self._fault("exit", index, split.stack[-1], point)
                    for token in sorted(split.tokens):
                        self._fault("token", index, token, point)
        return list(dict.fromkeys(going_on))

    def _move(self, index: int, state: State, point: tuple[int, State]) -> State:
        number = self.moves[index]
        if number == abi.ID_POP:
            if not state.stack:
                self._fault("pop", index, None, point)
            return State(state.stack[:-1], state.tokens, state.facts)
        if self.kinds[number] is EventKind.TOKEN_RANGE:
            return State(state.stack, state.tokens ^ {number}, state.facts)
        return State((*state.stack, number), state.tokens, state.facts)

    def _onward(self, number: int, state: State) -> Iterator[tuple[int, State]]:
        block = self.flow.blocks[number]
        last = block.end - 1
        jumps, _, falls = self.flow.targets(last)
        if not jumps:
            yield from ((successor, state) for successor in block.successors)
            return
        if self._by_leader(last):
            popping = [successor for successor in block.successors if self._pops(successor)]
            # Of two ways that begin with a pop, one is past the leader's: the leader goes there after it.
            past = {after for successor in popping for after in self.flow.blocks[successor].successors}
            if len(first := [successor for successor in popping if successor not in past]) == 1:
                yield first[0], state
                return
        targets = list(dict.fromkeys(self.flow.block_of(jump) for jump in jumps))
        for holds, split in self._split(last, state) if falls else [(True, state)]:
            successors = targets if holds else [successor for successor in block.successors if successor not in targets]
            yield from ((successor, split) for successor in successors)

    # --- Conditions -----------------------------------------------------------------------------------------

    def _conditions(self) -> dict[int, tuple[int, bool]]:
        """Number the conditions that are tested at more than one place.

        Returns:
            By the testing instruction, the condition and the value of it at which the instruction acts.
        """
        found: dict[int, tuple[Condition, bool]] = {}
        for index in sorted({*self.moves, *self.flow.jumps()}):
            test = self.names.test(index)
            if test is not None:
                # What has no name of its own is still the same until its predicate is written again.
                found[index] = self.names.named(index) or (("held", test[0]), test[1])
        often = Counter(condition for condition, _ in found.values())
        numbers = {condition: number for number, condition in enumerate(often) if often[condition] > 1}
        held: dict[Condition, Sequence[int]] = {
            ("held", test[0]): self.flow.definitions(test[0]) for test in map(self.names.test, found) if test
        }
        for condition, definitions in held.items():
            constants = {index: self.names.constant(index) for index in definitions}
            if condition in often and any(value is not None for value in constants.values()):
                number = numbers.setdefault(condition, len(often) + len(numbers))
                self.learns |= {index: (number, value) for index, value in constants.items() if value is not None}
        for condition, number in numbers.items():
            for index in set(definitions_in(condition)) | set(held.get(condition, ())):
                self.forgets.setdefault(index, []).append(number)
        return {index: (numbers[condition], at) for index, (condition, at) in found.items() if condition in numbers}

    def _split(self, index: int, state: State) -> Iterator[tuple[bool, State]]:
        """Yield whether the instruction acts, with the state that holds then."""
        if self.names.test(index) is None:
            conditional = bool(self.flow.instructions[index].predicate) or bool(self.flow.targets(index)[0])
            yield True, state
            if conditional:
                yield False, state
            return
        named = self.conditions.get(index)
        # Which lane leads says nothing of the warp's path.
        if named is None or self._by_leader(index):
            yield True, state
            yield False, state
            return
        condition, acts_at = named
        for value in (True, False):
            if (condition, not value) not in state.facts:
                yield value is acts_at, State(state.stack, state.tokens, state.facts | {(condition, value)})

    def _rewritten(self, state: State, index: int) -> State:
        """Forget what an instruction's result changes; learn the constant that it sets a predicate to."""
        gone = self.forgets[index]
        facts = frozenset(fact for fact in state.facts if fact[0] not in gone)
        if index in self.learns:
            facts |= {self.learns[index]}
        return state if facts == state.facts else State(state.stack, state.tokens, facts)

    # --- Leader lanes ---------------------------------------------------------------------------------------

    def _leaves_before_pop(self, number: int, index: int) -> bool:
        block = self.flow.blocks[number]
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
            test = self.names.test(index)
            self.leader_cache[index] = test is not None and self.names.from_lane_mask(test[0], index)
        return self.leader_cache[index]

    # --- Faults ---------------------------------------------------------------------------------------------

    def _fault(self, kind: str, index: int, event: int | None, point: tuple[int, State]) -> None:
        key = (kind, index, event)
        if key not in self.faults:
            self.faults[key] = Imbalance(kind, index, event, self._path(point))

    def _path(self, point: tuple[int, State]) -> tuple[int, ...]:
        """Return the jumps on the way to a point, the latest twelve."""
        path: list[int] = []
        while point in self.came_from and len(path) < 12:
            previous = self.came_from[point]
            last = self.flow.blocks[previous[0]].end - 1
            if self.flow.targets(last)[0] or self.flow.instructions[last].opcode.startswith("EXIT"):
                path.append(last)
            point = previous
        return tuple(reversed(path))
