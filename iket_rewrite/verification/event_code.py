# SPDX-License-Identifier: Apache-2.0
"""Which instructions of a function are there for its events alone: what would be dead if the records were gone.

Alive is what has an effect, and whatever its operands, predicate included, can come from.  What is left are the records
and what computes their addresses, elections and payloads only.  Jumps count as alive, but those of an election: where
lanes may have diverged, ptxas gathers them in a few instructions out of line (BRA.DIV leads there).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .flow import Flow
from .instruction_classes import InstructionClass, classify, is_pure
from .records import Record
from .sass import Instruction

#: What an election in divergent code is made of out of line; how many instructions at most.
_GATHERS = ("BSSY", "BSYNC", "WARPSYNC", "ELECT", "MOV", "ENDCOLLECTIVE", "NOP")
_LONGEST_GATHERING = 12
_NAME = re.compile(r"(?<![\w.])(U?[RP])(\d+)(\.64)?")


def event_instructions(flow: Flow, records: tuple[Record, ...]) -> frozenset[int]:
    """Return the indices of the instructions that only events need."""
    if not records:
        return frozenset()
    own = {record.trigger for record in records} | {store.index for record in records for store in record.stores}
    dead = _dead(flow, own)
    gathered = _elections(flow, dead)
    return _dead(flow, own | gathered) if gathered else dead


def _dead(flow: Flow, own: set[int]) -> frozenset[int]:
    """Return the given instructions with all that only they need."""
    alive = _Liveness(flow, own).alive()
    code = flow.instructions
    return frozenset(index for index, one in enumerate(code) if not alive[index] and one.opcode != "NOP")


class _Liveness:
    """Which instructions something needs, worked out backwards, block by block, until nothing changes.

    Registers are bits.  What only instructions under one predicate need is kept apart, by predicate: an earlier result
    under the same one is all that they can see.

    Args:
        flow: the function.
        own: instructions that count as needing nothing.
    """

    def __init__(self, flow: Flow, own: set[int]) -> None:
        self.flow, self.own = flow, own
        self.bits: dict[str, int] = {}
        self.writes = [self._mask(results) for results in flow.results]
        self.reads: dict[int, int] = {}
        self.needed = bytearray(len(flow.instructions))

    def alive(self) -> bytearray:
        """Return for each instruction whether it is needed."""
        blocks = self.flow.blocks
        entries = [0] * len(blocks)
        work = list(range(len(blocks)))
        waiting = set(work)
        while work:
            number = work.pop()
            waiting.discard(number)
            live = -1 if blocks[number].unknown_successor else 0
            for successor in blocks[number].successors:
                live |= entries[successor]
            live = self._through(number, live)
            if live != entries[number]:
                entries[number] = live
                again = [one for one in blocks[number].predecessors if one not in waiting]
                work += again
                waiting.update(again)
        return self.needed

    def _through(self, number: int, live: int) -> int:
        """Follow a block backwards; return what is needed at its start."""
        block, under = self.flow.blocks[number], dict[str, int]()
        for index in range(block.end - 1, block.start - 1, -1):
            if index in self.own:
                continue
            instruction, writes = self.flow.instructions[index], self.writes[index]
            wanted = writes & live or any(writes & mask for mask in under.values())
            if not wanted and not self._acts(index):
                continue
            self.needed[index] = 1
            predicate = instruction.predicate
            for other in list(under):
                if self._mask((other.lstrip("@!"),)) & writes:
                    live |= under.pop(other)
                elif other == predicate or not predicate:
                    under[other] &= ~writes
            if not predicate:
                live &= ~writes
                live |= self._reads(index)
            else:
                under[predicate] = under.get(predicate, 0) | self._reads(index)
                live |= self._mask((predicate.lstrip("@!"),))
        for mask in under.values():
            live |= mask
        return live

    def _acts(self, index: int) -> bool:
        """Say whether an instruction does more than compute its result."""
        instruction = self.flow.instructions[index]
        return instruction.opcode != "NOP" and not (self.writes[index] and is_pure(instruction))

    def _reads(self, index: int) -> int:
        if index not in self.reads:
            self.reads[index] = self._mask(_read(self.flow, index))
        return self.reads[index]

    def _mask(self, names: Iterable[str]) -> int:
        mask = 0
        for name in names:
            mask |= 1 << self.bits.setdefault(name, len(self.bits))
        return mask


def _elections(flow: Flow, dead: frozenset[int]) -> set[int]:
    """Return what gathers diverged lanes for an election that only events need, with the jump that leads there."""
    found: set[int] = set()
    for jump in flow.jumps():
        if not flow.instructions[jump].opcode.startswith("BRA.DIV"):
            continue
        for target in flow.targets(jump)[0]:
            run = _gathering(flow, target)
            elections = [index for index in run if flow.instructions[index].opcode == "ELECT"]
            if elections and dead.issuperset(elections):
                found |= {jump, *run}
    return found


def _gathering(flow: Flow, start: int) -> range:
    """Return the instructions from `start` to the jump back, where nothing else is done there; else none."""
    for index in range(start, min(start + _LONGEST_GATHERING, len(flow.instructions))):
        stem = flow.instructions[index].opcode.split(".", 1)[0]
        if stem == "BRA" and not flow.instructions[index].predicate:
            return range(start, index + 1)
        if stem not in _GATHERS:
            break
    return range(0)


def _read(flow: Flow, index: int) -> set[str]:
    """Return the registers and predicates that an instruction can read; rather one too many than one too few."""
    instruction, results = flow.instructions[index], flow.results[index]
    if instruction.opcode.startswith(("CALL", "RET")):
        return {name for written in flow.results for name in written}
    operands = instruction.operands.split(",")
    # A result may be a source as well, so only the leading operand is its name; a predicate may stand with it.
    first, second = (operands[0].removesuffix(".64"), operands[1] if len(operands) > 1 else "")
    if results and (first in results or first.endswith("PT")):
        pair = second in results and ("P" in first or "P" in second)
        del operands[: 2 if pair else 1]
    read = {instruction.predicate.lstrip("@!")} if instruction.predicate else set()
    for kind, number, wide in _NAME.findall(",".join(operands)):
        count = 1 if "P" in kind else _registers(instruction, kind, bool(wide))
        read.update(f"{kind}{int(number) + more}" for more in range(count))
    return read


def _registers(instruction: Instruction, kind: str, wide: bool) -> int:
    """Return how many registers from the named one on an operand can mean."""
    opcode = instruction.opcode
    found = classify(instruction)
    if "GMMA" in opcode:
        return 4 if kind == "UR" else 128
    if found in (InstructionClass.MMA, InstructionClass.COPY, InstructionClass.TENSOR_MEMORY):
        return 8
    if "128" in opcode or opcode.startswith("STSM"):
        return 4
    if wide or kind == "UR" or "64" in opcode or ".WIDE" in opcode or opcode.startswith("D"):
        return 2
    return 1
