# SPDX-License-Identifier: Apache-2.0
"""How many more ranges the paths from a place on can close than they open: whether a deep stack could be emptied."""

from __future__ import annotations

from functools import cached_property

from .. import abi
from ..abi import EventKind
from .flow import Flow

#: More than any stack is deep: what a loop closes has no end.
_NO_END = 1 << 16


class Closing:
    """What paths close.

    Args:
        flow: the function.
        moves: the event of each trigger that opens or closes a range, by the trigger's index.
        kinds: the kind of each declared event, by id.
    """

    def __init__(self, flow: Flow, moves: dict[int, int], kinds: dict[int, EventKind]) -> None:
        self.flow = flow
        self.effects = {
            index: 1 if number == abi.ID_POP else -1
            for index, number in moves.items()
            if number == abi.ID_POP or kinds[number] is not EventKind.TOKEN_RANGE
        }

    def behind(self, index: int) -> int:
        """Return how many more ranges some path behind an instruction closes than it opens, at the most."""
        number = self.flow.block_of(index)
        return self._closed(index + 1, number, self._behind_block(number, self._blocks))

    @cached_property
    def _blocks(self) -> list[int]:
        """What is closed at the most from the start of each block on."""
        blocks = self.flow.blocks
        most = [-_NO_END] * len(blocks)
        # A path without a loop is no longer than there are blocks: what grows after as many passes grows in a loop.
        for turn in range(2 * len(blocks) + 2):
            before = list(most)
            for number in reversed(range(len(blocks))):
                closed = self._closed(blocks[number].start, number, self._behind_block(number, most))
                if closed > most[number]:
                    most[number] = _NO_END if turn > len(blocks) else closed
            if most == before:
                break
        return most

    def _behind_block(self, number: int, most: list[int]) -> int:
        return max((most[successor] for successor in self.flow.blocks[number].successors), default=0)

    def _closed(self, start: int, number: int, behind: int) -> int:
        """Add what a block closes from an instruction on to what is closed behind it."""
        for index in reversed(range(start, self.flow.blocks[number].end)):
            conditional = self.flow.conditional(index)
            if self.flow.instructions[index].opcode.startswith("EXIT"):
                behind = max(behind, 0) if conditional else 0
            elif index in self.effects and not (conditional and self.effects[index] < 0):
                behind = max(-_NO_END, min(behind + self.effects[index], _NO_END))
        return behind
