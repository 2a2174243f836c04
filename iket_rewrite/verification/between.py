# SPDX-License-Identifier: Apache-2.0
"""What lies between the two ends of each range: the instructions that some path runs while the range is open.

The paths are those of `balance`, with what it knows of conditions; here the stack holds the sites at which ranges were
opened, and each instruction learns which of them are open when it is reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .. import abi
from ..abi import EventKind
from .balance import Follower, State
from .flow import Flow
from .records import Record, moves_of


@dataclass(slots=True)
class Region:
    """What is between the ends of the range that one site opens.

    Attributes:
        start: index of the trigger that opens it.
        event: the range's id.
        inside: indices of the instructions that are reached while it is open, those of ranges inside included.
        own: those that are reached while no other range is open inside it.
        ends: indices of the triggers that close it.
    """

    start: int
    event: int
    inside: set[int] = field(default_factory=set)
    own: set[int] = field(default_factory=set)
    ends: set[int] = field(default_factory=set)


def regions(flow: Flow, records: tuple[Record, ...], kinds: dict[int, EventKind]) -> tuple[list[Region], str]:
    """Return the region of every site that opens a range, and why that could not be decided, or "".

    Args:
        flow: the function.
        records: its events.
        kinds: the kind of each declared event, by id.
    """
    moves = moves_of(records, kinds)
    if not moves:
        return [], ""
    watcher = _Watcher(flow, moves, kinds)
    undecided = watcher.run().undecided
    return sorted(watcher.found.values(), key=lambda one: one.start), undecided


class _Watcher(Follower):
    """Follows ranges by the sites that open them, and notes what is reached meanwhile."""

    def __init__(self, flow: Flow, moves: dict[int, int], kinds: dict[int, EventKind]) -> None:
        super().__init__(flow, moves, kinds)
        self.found: dict[int, Region] = {}

    def _through(self, number: int, before: State) -> Iterator[tuple[int, State]]:
        # Where nothing happens to the state, the whole block lies in the same ranges.
        block = self.flow.blocks[number]
        events = [index for index in range(block.start, block.end) if index in self.moves]
        self._note(range(block.start, events[0] if events else block.end), before)
        yield from super()._through(number, before)

    def _event(self, index: int, states: list[State], point: tuple[int, State]) -> list[State]:
        after = super()._event(index, states, point)
        block = self.flow.blocks[self.flow.block_of(index)]
        until = next((at for at in range(index + 1, block.end) if at in self.moves), block.end)
        for state in after:
            self._note(range(index + 1, until), state)
        return after

    def _move(self, index: int, state: State, point: tuple[int, State]) -> State:
        number = self.moves[index]
        if number == abi.ID_POP:
            if state.stack:
                self.found[state.stack[-1]].ends.add(index)
            return State(state.stack[:-1], state.tokens, state.facts)
        if self.kinds[number] is EventKind.TOKEN_RANGE:
            opened = {site for site in state.tokens if self.moves[site] == number}
            if opened:
                for site in opened:
                    self.found[site].ends.add(index)
                return State(state.stack, state.tokens - opened, state.facts)
            self.found.setdefault(index, Region(index, number))
            return State(state.stack, state.tokens | {index}, state.facts)
        self.found.setdefault(index, Region(index, number))
        return State((*state.stack, index), state.tokens, state.facts)

    def _note(self, indices: range, state: State) -> None:
        for site in {*state.stack, *state.tokens}:
            self.found[site].inside.update(indices)
        for site in {*state.stack[-1:], *state.tokens}:
            self.found[site].own.update(indices)
