# SPDX-License-Identifier: Apache-2.0
"""What lies between the two ends of each range: the instructions that some path runs while the range is open.

The paths are those of `paths`, with what it knows of conditions; here the stack holds the sites at which ranges were
opened, and each instruction learns which of them are open when it is reached.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..abi import EventKind
from .flow import Flow
from .paths import Fault, Follower, State, Way
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
        self.events = sorted(moves)

    def _ways(self, at: int, state: State) -> Iterator[Way]:
        block = self.flow.blocks[self.flow.block_of(at)]
        # What is behind an event is noted from there on.
        position = bisect_left(self.events, at)
        until = self.events[position] if position < len(self.events) else block.end
        self._note(range(at, min(until, block.end)), state)
        yield from super()._ways(at, state)

    def _move(self, index: int, state: State) -> tuple[State, Fault | None]:
        after, fault = super()._move(index, state)
        for site in {*state.stack, *state.tokens} - {*after.stack, *after.tokens}:
            self.found[site].ends.add(index)
        for site in {*after.stack, *after.tokens} - {*state.stack, *state.tokens}:
            self.found.setdefault(site, Region(site, self.moves[site]))
        return after, fault

    def _token(self, index: int, state: State) -> State:
        opened = {site for site in state.tokens if self.moves[site] == self.moves[index]}
        return State(state.stack, state.tokens - opened if opened else state.tokens | {index}, state.facts)

    def _opened(self, index: int) -> int:
        return index

    def _event_of(self, opened: int) -> int:
        return self.moves[opened]

    def _note(self, indices: range, state: State) -> None:
        for site in {*state.stack, *state.tokens}:
            self.found[site].inside.update(indices)
        for site in {*state.stack[-1:], *state.tokens}:
            self.found[site].own.update(indices)
