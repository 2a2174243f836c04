# SPDX-License-Identifier: Apache-2.0
"""Which instructions of a function are there for its events alone: what would be dead if the records were gone.

Alive is what has an effect, and whatever its operands, predicate included, can come from.  What is left are the records
and what computes their addresses, elections and payloads only.  Jumps count as alive, so what ptxas builds for an
election in divergent code (BRA.DIV) stays the kernel's.
"""

from __future__ import annotations

import re

from .flow import Flow
from .instruction_classes import InstructionClass, classify, is_pure
from .records import Record
from .sass import Instruction

_NAME = re.compile(r"(?<![\w.])(U?[RP])(\d+)(\.64)?")


def event_instructions(flow: Flow, records: tuple[Record, ...]) -> frozenset[int]:
    """Return the indices of the instructions that only events need."""
    if not records:
        return frozenset()
    own = {record.trigger for record in records} | {store.index for record in records for store in record.stores}
    alive = {
        index
        for index, instruction in enumerate(flow.instructions)
        if index not in own and not (flow.results[index] and is_pure(instruction)) and instruction.opcode != "NOP"
    }
    work = list(alive)
    while work:
        index = work.pop()
        for name in _read(flow, index):
            for definition in flow.reaching(name, index)[0]:
                if definition not in alive and definition not in own:
                    alive.add(definition)
                    work.append(definition)
    return frozenset(
        index
        for index, instruction in enumerate(flow.instructions)
        if index not in alive and instruction.opcode != "NOP"
    )


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
