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

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from .. import abi
from ..abi import EventKind
from .flow import Flow, split_operands
from .records import Record

#: More open ranges, or more different states at one point, than any sensible kernel has.
_DEEPEST = 64
_MOST_STATES = 400
#: How many steps the following may take, for each block and at least: beyond it the paths are too many.
_STEPS_PER_BLOCK, _FEWEST_STEPS = 30, 2000

_PREDICATE = re.compile(r"(!?)(U?P\d+)$")
_SOURCE = re.compile(r"!?(U?[RP]\d+)(?:\.reuse)?$")
_FROM_LANES = ("LOP3", "ISETP", "PLOP3", "SEL", "MOV", "P2R", "R2P", "IMAD.MOV", "ULOP3", "VOTE", "R2UR")

Condition = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What holds at one point of one path."""

    stack: tuple[int, ...] = ()
    tokens: frozenset[int] = frozenset()
    facts: frozenset[tuple[Condition, bool]] = frozenset()


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
    moves = {}
    for record in records:
        if record.id == abi.ID_POP or kinds.get(record.id or 0) in (EventKind.RANGE, EventKind.TOKEN_RANGE):
            moves[record.trigger] = record.id or 0
    return _Follower(flow, moves, kinds).run() if moves else Balance()


class _TooMany(Exception):
    """More states than are followed."""


class _Follower:
    def __init__(self, flow: Flow, moves: dict[int, int], kinds: dict[int, EventKind]) -> None:
        self.flow, self.moves, self.kinds = flow, moves, kinds
        self.faults: dict[tuple[str, int, int | None], Imbalance] = {}
        self.came_from: dict[tuple[int, State], tuple[int, State]] = {}
        self.conditions = self._conditions()
        self.forgets: dict[int, list[Condition]] = {}
        for condition in set(self.conditions.values()):
            for index in _definitions_in(condition):
                self.forgets.setdefault(index, []).append(condition)
        self.leader_cache: dict[int, bool] = {}

    def run(self) -> Balance:
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
                states = [self._forget(state, index) for state in states]
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
            if len(popping) == 1:
                yield popping[0], state
                return
        target = self.flow.block_of(jumps[0])
        for holds, split in self._split(last, state) if falls else [(True, state)]:
            successors = [target] if holds else [successor for successor in block.successors if successor != target]
            yield from ((successor, split) for successor in successors)

    # --- Conditions -----------------------------------------------------------------------------------------

    def _conditions(self) -> dict[int, Condition]:
        """Return the conditions that are tested at more than one place, by the testing instruction."""
        found = {}
        for index in sorted({*self.moves, *self.flow.jumps()}):
            condition = self._condition(index)
            if condition is not None:
                found[index] = condition
        often = Counter(found.values())
        return {index: condition for index, condition in found.items() if often[condition] > 1}

    def _test(self, index: int) -> tuple[str, bool] | None:
        """Return the predicate that an instruction tests and the value at which it acts."""
        instruction = self.flow.instructions[index]
        tests = [instruction.predicate.lstrip("@")] if instruction.predicate else []
        if self.flow.targets(index)[0]:
            tests += [part for part in split_operands(instruction.operands) if not part.startswith("0x")]
        match = _PREDICATE.match(tests[0]) if len(tests) == 1 else None
        return (match.group(2), match.group(1) == "") if match else None

    def _condition(self, index: int) -> Condition | None:
        """Name the condition that an instruction tests by what computes it."""
        test = self._test(index)
        if test is None:
            return None
        definitions, entry = self.flow.reaching(test[0], index)
        if entry or len(definitions) != 1:
            return None
        (definition,) = definitions
        instruction = self.flow.instructions[definition]
        operands = list(split_operands(instruction.operands))
        sources = [(part, self._origin(part, definition)) for part in operands[1:]]
        position = operands.index(test[0]) if test[0] in operands else 0
        return (instruction.opcode, instruction.predicate, position, tuple(sources))

    def _origin(self, operand: str, at: int) -> object:
        match = _SOURCE.match(operand)
        if match is None:
            return None
        definitions, entry = self.flow.reaching(match.group(1), at)
        return frozenset(definitions), entry

    def _split(self, index: int, state: State) -> Iterator[tuple[bool, State]]:
        """Yield whether the instruction acts, with the state that holds then."""
        test = self._test(index)
        if test is None:
            conditional = bool(self.flow.instructions[index].predicate) or bool(self.flow.targets(index)[0])
            yield True, state
            if conditional:
                yield False, state
            return
        condition, acts_at = self.conditions.get(index), test[1]
        # Which lane leads says nothing of the warp's path.
        if condition is None or self._by_leader(index):
            yield True, state
            yield False, state
            return
        for value in (True, False):
            if (condition, not value) not in state.facts:
                yield value is acts_at, State(state.stack, state.tokens, state.facts | {(condition, value)})

    def _forget(self, state: State, index: int) -> State:
        gone = self.forgets[index]
        facts = frozenset(fact for fact in state.facts if fact[0] not in gone)
        return state if len(facts) == len(state.facts) else State(state.stack, state.tokens, facts)

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
            test = self._test(index)
            self.leader_cache[index] = test is not None and self._from_lane_mask(test[0], index)
        return self.leader_cache[index]

    def _from_lane_mask(self, register: str, before: int) -> bool:
        """Follow what a register may hold back to where it comes from, each instruction once."""
        seen: set[int] = set()
        work = [(register, before)]
        while work:
            definitions, _ = self.flow.reaching(*work.pop())
            for index in definitions - seen:
                seen.add(index)
                instruction = self.flow.instructions[index]
                if "SR_LTMASK" in instruction.operands:
                    return True
                if instruction.opcode.startswith(_FROM_LANES):
                    sources = list(split_operands(instruction.operands))[1:]
                    work += [(name.group(1), index) for name in map(_SOURCE.match, sources) if name is not None]
        return False

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


def _definitions_in(condition: Condition) -> Iterator[int]:
    """Return the instructions on whose results a condition depends."""
    sources = condition[3]
    assert isinstance(sources, tuple)
    for _, origin in sources:
        if origin is not None:
            yield from origin[0]
