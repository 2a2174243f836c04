# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph of a function."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .sass import Instruction

_TARGET = re.compile(r"^0x[0-9a-f]+$")
_PREDICATE = re.compile(r"^!?U?P\d+$")
_JUMPS = ("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU")
_ENDS = ("EXIT", "RET", "KILL", "BPT")
_LEAVING = (*_JUMPS, *_ENDS)
_ALWAYS = ("", "@PT", "@UPT")
_GOES_ON: tuple[list[int], bool, bool] = ([], False, True)


@dataclass(slots=True)
class Block:
    """A run of instructions without a jump into it or out of it but at its ends.

    Attributes:
        start, end: indices of its first instruction and behind its last.
        successors: indices of the blocks that follow; None among them where a jump's target is not known.
    """

    start: int
    end: int
    successors: list[int] = field(default_factory=list)
    predecessors: list[int] = field(default_factory=list)
    unknown_successor: bool = False


class Graph:
    """A function's instructions in blocks.

    Args:
        instructions: in the order of their addresses.
        branches: addresses to which indirect jumps lead, by the jump's address.
    """

    def __init__(
        self, instructions: Sequence[Instruction], branches: Mapping[int, tuple[int, ...]] | None = None
    ) -> None:
        self.instructions = instructions
        self._branches = branches or {}
        self.index_of = {instruction.address: index for index, instruction in enumerate(instructions)}
        self._jumps = {
            index: self._targets(index)
            for index, instruction in enumerate(instructions)
            if instruction.opcode.startswith(_LEAVING)
        }
        self.blocks = self._blocks()
        self._block_starts = [block.start for block in self.blocks]

    def block_of(self, index: int) -> int:
        """Return the block of an instruction."""
        position = bisect_left(self._block_starts, index + 1)
        return position - 1

    def targets(self, index: int) -> tuple[list[int], bool, bool]:
        """Return where an instruction jumps: known targets, whether one is unknown, whether it can fall through."""
        return self._jumps.get(index, _GOES_ON)

    def conditional(self, index: int) -> bool:
        """Say whether an instruction acts on some of the paths that reach it only."""
        falls = self._jumps[index][2] if index in self._jumps else False
        return falls or self.instructions[index].predicate not in _ALWAYS

    def jumps(self) -> Iterable[int]:
        """Return the instructions that may lead elsewhere than to the next one."""
        return self._jumps

    def _targets(self, index: int) -> tuple[list[int], bool, bool]:
        instruction = self.instructions[index]
        stem = instruction.opcode.split(".", 1)[0]
        conditional = instruction.predicate not in _ALWAYS
        if stem in _ENDS:
            return [], False, conditional or _PREDICATE.match(instruction.operands) is not None
        if stem not in _JUMPS:
            return [], False, True
        if instruction.address in self._branches:
            addresses = self._branches[instruction.address]
            known = [self.index_of[address] for address in addresses if address in self.index_of]
            return known, len(known) < len(addresses) or not known, conditional
        operands = [part for part in instruction.operands.split(",") if part]
        known = [
            self.index_of[int(part, 16)] for part in operands if _TARGET.match(part) and int(part, 16) in self.index_of
        ]
        # A predicate or a register among the operands makes the jump conditional (BRA.DIV, BRA.U).
        conditional = conditional or (bool(known) and len(operands) > 1)
        return known, not known, conditional

    def _blocks(self) -> list[Block]:
        count = len(self.instructions)
        leaders = {0}
        for index, (known, _, _) in self._jumps.items():
            leaders.update(known)
            if index + 1 < count:
                leaders.add(index + 1)
        starts = sorted(leaders) if count else []
        # A listing without instructions has no block.
        blocks = [Block(start, end) for start, end in zip(starts, [*starts, count][1:], strict=True)]
        number = {block.start: index for index, block in enumerate(blocks)}
        for index, block in enumerate(blocks):
            known, unknown, falls = self.targets(block.end - 1)
            block.unknown_successor = unknown
            block.successors = [number[target] for target in known]
            if falls and index + 1 < len(blocks) and index + 1 not in block.successors:
                block.successors.append(index + 1)
        for index, block in enumerate(blocks):
            for successor in block.successors:
                blocks[successor].predecessors.append(index)
        return blocks
