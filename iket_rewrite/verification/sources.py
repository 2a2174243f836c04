# SPDX-License-Identifier: Apache-2.0
"""What a condition is computed from, wherever that happened: whether it may go together with another one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .conditions import LOADS, Conditions, results_of
from .operands import REGISTERS, immediate, split_operands
from .origins import CONSTANT, definitions_in
from .spans import Condition

_SOURCE = re.compile(r"!?(U?[RP]\d+)$")
_FROM_LANES = ("LOP3", "ISETP", "PLOP3", "SEL", "MOV", "IMAD.MOV", "ULOP3", "VOTE", "R2UR")
_CARRIES = ("SEL", "FSEL", "USEL", "LDL")
_READS = ("LD", "ATOM", "RED", "S2", "CS2", "SHFL", "VOTE", "SYNCS")
#: The results of these of one value and constants are as many as the value's.
_ONE_TO_ONE = ("IADD", "VIADD", "IMAD", "MOV", "UMOV", "R2UR", "FADD", "FMUL", "FFMA", "I2F", "F2F")
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[([^\]]+)\]")
#: The bank of constants that holds a kernel's parameters and its launch's sizes.
PARAMETERS = "0x0"
_SPECIAL = re.compile(r"SR_(\w+)")
#: Special registers that tell of one another, and instructions whose results tell of the same.
_ONE_ANOTHERS = {
    ("TID", "LANEID", "WARP", "VIRT", "EQMASK", "LTMASK", "LEMASK", "GTMASK", "GEMASK"): "thread",
    ("CTAID", "CgaCtaId", "CLUSTER", "CGA", "NCTAID"): "block",
}
_COLLECTIVE = {"ELECT": "thread", "B2R": "barrier"}


class Sources:
    """What the conditions of a function come from.

    Args:
        conditions: of the function.
    """

    def __init__(self, conditions: Conditions) -> None:
        self.flow, self.conditions = conditions.flow, conditions
        self.predicates, self.origins = conditions.predicates, conditions.origins
        self._found: dict[int, frozenset[object]] = {}

    def carried(self, index: int) -> bool:
        """Say whether the condition that an instruction tests is one that a variable carries.

        So it is where one of the values that it is computed from has several places of origin, was selected, or was put
        away in local memory.  What is read from other memory is a value of its own.
        """
        work = [(register, index) for register, _ in self.predicates.tests(index)]
        seen: set[int] = set()
        while work:
            register, before = work.pop()
            definitions, _ = self.flow.reaching(register, before)
            if len(definitions) > 1 and not self._one_value(register, before):
                return True
            for found in definitions - seen:
                seen.add(found)
                instruction = self.flow.instructions[found]
                if instruction.opcode.startswith(_CARRIES):
                    return True
                if not instruction.opcode.startswith(_READS):
                    operands = f"{instruction.predicate} {instruction.operands.partition(',')[2]}"
                    work += [(register, found) for register in set(REGISTERS.findall(operands))]
        return False

    def _one_value(self, register: str, before: int) -> bool:
        """Say whether a register holds the same, whichever instruction has written it."""
        if "P" in register:
            return self.conditions.name(register, before, True) is not None
        return not any(True for _ in definitions_in(self.origins.register(register, before)))

    def of(self, index: int) -> frozenset[object]:
        """Return what the condition that an instruction tests is computed from, wherever it was computed.

        Returns:
            Special registers by names, constants by (bank, address), and ("read", address) for what is read from
            memory, by where the address comes from: what is read once more from one place may be the same value.
        """
        if index not in self._found:
            found: set[object] = set()
            instruction = self.flow.instructions[index]
            seen: set[tuple[str, int]] = set()
            work = [(register, index) for register in _registers(f"{instruction.predicate} {instruction.operands}")]
            while work:
                register, before = work.pop()
                for definition in self.flow.reaching(register, before)[0]:
                    if (register, definition) in seen:
                        continue
                    seen.add((register, definition))
                    one = self.flow.instructions[definition]
                    read = f"{one.predicate} {one.operands.partition(',')[2]}"
                    if LOADS.match(one.opcode):
                        found.add(self._read(definition))
                    else:
                        found.update(_unchanging(one.opcode, read))
                        work += [(name, definition) for name in _registers(read)]
            self._found[index] = frozenset(found)
        return self._found[index]

    def deciding(self, condition: Condition) -> frozenset[object]:
        """Return which reads of memory can make a condition hold and not hold, whatever else it is computed from.

        So it is where a comparison, alone, is of what was read, or of what is computed from that and constants.
        """
        found: set[object] = set()
        work = list(results_of(condition))
        while work:
            definition = work.pop()
            one = self.flow.instructions[definition]
            read = _registers(one.operands.partition(",")[2])
            if LOADS.match(one.opcode):
                found.add(self._read(definition))
            elif one.opcode.startswith(_ONE_TO_ONE) and len(read) == 1:
                definitions, entry = self.flow.reaching(read.pop(), definition)
                work += definitions if len(definitions) == 1 and not entry else ()
        return frozenset(found)

    def _read(self, index: int) -> object:
        """Name what is read from memory by where the address comes from."""
        addresses = [part for part in split_operands(self.flow.instructions[index].operands) if "[" in part]
        return ("read", *(self.origins.of(part, index) for part in addresses))

    def any_value(self, value: object) -> bool:
        """Say whether what is compared is read from memory, or a kernel's parameter: nothing is known of its values."""
        match value:
            case ("_", (("results", (int(index),), False),)):
                return re.match(r"^LD[GSL]?(\.\w+)*$", self.flow.instructions[index].opcode) is not None
            case (str(text), ()) | ("_", (("fixed", str(text)),)):
                return CONSTANT.match(text) is not None
        return False

    def from_lane_mask(self, register: str, before: int) -> bool:
        """Follow what a register may hold back to where it comes from; say whether that is the lane mask."""
        seen: set[int] = set()
        work = [(register, before)]
        while work:
            name, at = work.pop()
            definitions, _ = self.flow.reaching(name, at)
            for index in definitions - seen:
                seen.add(index)
                instruction = self.flow.instructions[index]
                if "SR_LTMASK" in instruction.operands:
                    return True
                if (kept := self.predicates.kept(name, index)) is not None:
                    work.append((kept[0], kept[2]))
                elif instruction.opcode.startswith(_FROM_LANES):
                    sources = list(split_operands(instruction.operands))[1:]
                    found = (_SOURCE.match(source.removesuffix(".reuse")) for source in sources)
                    work += [(match.group(1), index) for match in found if match is not None]
        return False


def _unchanging(opcode: str, operands: str) -> Iterator[object]:
    """Name what an instruction reads that never changes: what may be the same value has one name."""
    for opcodes, name in _COLLECTIVE.items():
        if opcode.startswith(opcodes):
            yield name
    for special in _SPECIAL.findall(operands):
        yield next((name for kinds, name in _ONE_ANOTHERS.items() if special.startswith(kinds)), special)
    for bank, offset in _CONSTANT.findall(operands):
        words = 4 if ".128" in opcode else 2 if ".64" in opcode else 1
        address = immediate(offset)
        yield from ((bank, offset if address is None else address + 4 * word) for word in range(words))


def _registers(operands: str) -> set[str]:
    return set(REGISTERS.findall(operands))
