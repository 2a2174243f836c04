# SPDX-License-Identifier: Apache-2.0
"""Where the values of registers come from.

Opcodes are understood only as far as records need it: what moves, shifts, adds and ors; every other instruction makes a
value of its own that nothing is known of.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import partial

from .conditions import Conditions
from .flow import Flow
from .operands import REGISTER, number_of, split_operands

#: A place of the stack.
_ON_STACK = re.compile(r"^\[R1(?:\+(0x[0-9a-f]+))?\]$")
#: How far a value is followed before it counts as unknown.
_DEPTH = 24


@dataclass(frozen=True, slots=True)
class Linear:
    """A symbolic value plus a constant: `symbol` is None for a constant.

    Symbols: ("rank", factor) is factor times the CTA's rank in its cluster, ("timer", bits) the low word of the global
    timer with bits set, ("def", instruction index, register) whatever that instruction wrote.
    """

    symbol: tuple[object, ...] | None
    offset: int

    def plus(self, other: Linear) -> Linear | None:
        """Return the sum, where one of the two is a constant."""
        if self.symbol is None or other.symbol is None:
            return Linear(self.symbol or other.symbol, (self.offset + other.offset) & 0xFFFFFFFF)
        return None


class Values:
    """The values of a function's registers.

    Args:
        flow: the function.
        conditions: what its instructions test.
        stack: follow values that are put away on the stack and taken back.
    """

    def __init__(self, flow: Flow, conditions: Conditions, *, stack: bool = True) -> None:
        self.flow, self.conditions, self.stack = flow, conditions, stack
        self._values: dict[tuple[int, str, int | None], Linear] = {}

    def value(self, operand: str, before: int) -> Linear:
        """Return what is known of the value that an instruction reads: what it is whenever the instruction acts."""
        return self._value(operand, before, before if self.flow.instructions[before].predicate else None, 0)

    def _value(self, operand: str, before: int, user: int | None, depth: int) -> Linear:
        """Return an operand's value before an instruction, as far as a predicated user further down makes use of it."""
        operand = operand.removesuffix(".reuse")
        if operand in ("RZ", "URZ"):
            return Linear(None, 0)
        literal = number_of(operand)
        if literal is not None:
            return Linear(None, literal)
        match = REGISTER.match(operand)
        if match is None or match.group(1):
            return Linear(("operand", before, operand), 0)
        register = match.group(2)
        definitions, entry = self.flow.reaching(register, before, partial(self._certain, user))
        if len(definitions) != 1 or entry or depth > _DEPTH:
            values = set()
            if not entry and depth <= _DEPTH and len(definitions) <= 8:
                values = {self._result(index, register, user, depth + 1) for index in definitions}
            if len(values) == 1:
                return values.pop()
            return Linear(("merge", register, frozenset(definitions), entry), 0)
        return self._result(next(iter(definitions)), register, user, depth + 1)

    def _certain(self, user: int | None, index: int, reader: int) -> bool:
        """Say whether an instruction has been executed wherever a reader behind it, or that one's user, is."""
        if self.flow.certain(index, reader):
            return True
        # With more conditions than predicates, ptxas computes one anew between two instructions that it guards; and
        # what stands between two predicated instructions need not be predicated.
        readers = {reader} if user is None else {reader, user}
        return any(index < one and self.conditions.act_together(index, one) for one in readers)

    def _result(self, index: int, register: str, user: int | None, depth: int) -> Linear:
        key = (index, register, user)
        if key not in self._values:
            # A loop leads back here: until more is known, the value is its own symbol.
            self._values[key] = Linear(("def", index, register), 0)
            self._values[key] = self._evaluate(index, register, user, depth) or self._values[key]
        return self._values[key]

    def _kept(self, index: int, place: str, user: int | None) -> tuple[str, int] | None:
        """Find what was put on the stack at a place that is read from there: with few registers, ptxas keeps values so.

        Returns:
            The operand that was put there, and the instruction that did; None where more than one way leads here, or
            something else may have been put there meanwhile.
        """
        number = self.flow.block_of(index)
        while True:
            block = self.flow.blocks[number]
            for before in range(index - 1, block.start - 1, -1):
                instruction = self.flow.instructions[before]
                if instruction.opcode.startswith("STL"):
                    address, _, value = instruction.operands.partition(",")
                    if address == place and instruction.opcode == "STL":
                        return (value, before) if self._certain(user, before, index) else None
                    if _overlap(instruction.opcode, address, place):
                        return None
                elif instruction.opcode.startswith("CALL") or "R1" in self.flow.results[before]:
                    return None
            if len(block.predecessors) != 1 or block.predecessors[0] >= number:
                return None
            (number,) = block.predecessors
            index = self.flow.blocks[number].end

    def _evaluate(self, index: int, register: str, user: int | None, depth: int) -> Linear | None:
        instruction = self.flow.instructions[index]
        operands = [part.strip() for part in split_operands(instruction.operands)]
        if not operands or operands[0].removesuffix(".64") != register:
            return None
        opcode, sources = instruction.opcode, [part for part in operands[1:] if not _is_predicate(part)]

        def known(operand: str) -> Linear:
            return self._value(operand, index, user, depth)

        stem = opcode.split(".", 1)[0]
        if stem in ("S2R", "S2UR", "CS2R", "CS2UR", "S2UR_") and sources:
            if sources[0] == "SR_CgaCtaId":
                return Linear(("rank", 1), 0)
            return Linear(("timer", 0), 0) if sources[0] == "SR_GLOBALTIMERLO" else None
        if self.stack and opcode in ("LDL", "LDL.LU") and sources:
            kept = self._kept(index, sources[0], user)
            return self._value(*kept, user, depth) if kept else None
        if stem in ("MOV", "UMOV", "R2UR") and len(sources) == 1:
            return known(sources[0])
        if stem in ("MOV", "UMOV") and sources:
            return known(sources[0])
        if stem == "HFMA2" and len(sources) == 4 and sources[:2] == ["-RZ", "RZ"]:
            return _halves(sources[2], sources[3])
        if opcode.startswith(("LOP3", "ULOP3")) and len(sources) >= 4:
            return _or(known(sources[0]), known(sources[1]), known(sources[2]), number_of(sources[3]))
        if stem in ("SHF", "USHF") and ".L" in opcode and len(sources) >= 2:
            return _shifted(known(sources[0]), known(sources[1]))
        if stem in ("LEA", "ULEA") and ".HI" not in opcode and len(sources) == 3:
            shifted = _shifted(known(sources[0]), known(sources[2]))
            return shifted.plus(known(sources[1])) if shifted else None
        if stem in ("IMAD", "UIMAD") and ".WIDE" not in opcode and ".HI" not in opcode and len(sources) == 3:
            product = _product(known(sources[0]), known(sources[1]))
            return product.plus(known(sources[2])) if product else None
        if stem in ("IADD3", "UIADD3", "IADD", "VIADD", "UIADD", "IADD32I", "UVIADD") and ".X" not in opcode:
            total: Linear | None = Linear(None, 0)
            for source in sources:
                total = total.plus(known(source)) if total else None
            return total
        return None


def _overlap(opcode: str, address: str, place: str) -> bool:
    """Say whether what a store writes to the stack may reach a word there."""
    written, read = _ON_STACK.match(address), _ON_STACK.match(place)
    if written is None or read is None:
        return True
    start, word = (int(match.group(1) or "0", 16) for match in (written, read))
    width = 16 if ".128" in opcode else 8 if ".64" in opcode else 4
    return start < word + 4 and word < start + width


def _halves(high: str, low: str) -> Linear | None:
    """Evaluate the way in which ptxas loads a constant with the half-precision unit: two halves that add to nothing."""
    try:
        first, second = (struct.unpack("<H", struct.pack("<e", float(text)))[0] for text in (high, low))
    except (ValueError, OverflowError, struct.error):
        return None
    return Linear(None, first << 16 | second)


def _or(first: Linear, second: Linear, third: Linear, table: int | None) -> Linear | None:
    """Evaluate LOP3 where its table is an or of two or three inputs, or a copy of one of them."""
    inputs = {
        0xFE: (first, second, third),
        0xFC: (first, second),
        0xEE: (second, third),
        0xFA: (first, third),
        0xF0: (first,),
        0xCC: (second,),
        0xAA: (third,),
    }.get(table if table is not None else -1)
    if inputs is None:
        return None
    constant, symbols = 0, []
    for value in inputs:
        if value.symbol is None:
            constant |= value.offset
        elif value.symbol[0] == "timer" and value.offset == 0:
            symbols.append(value)
        else:
            symbols.append(value)
    if not symbols:
        return Linear(None, constant)
    if len(symbols) == 1 and symbols[0].symbol is not None and symbols[0].symbol[0] == "timer":
        return Linear(("timer", int(str(symbols[0].symbol[1])) | constant), symbols[0].offset)
    return symbols[0] if len(symbols) == 1 and constant == 0 else None


def _shifted(value: Linear, by: Linear) -> Linear | None:
    if by.symbol is not None:
        return None
    return _product(value, Linear(None, 1 << (by.offset & 31)))


def _product(left: Linear, right: Linear) -> Linear | None:
    if left.symbol is None:
        left, right = right, left
    if right.symbol is not None:
        return None
    if left.symbol is None:
        return Linear(None, left.offset * right.offset & 0xFFFFFFFF)
    if left.symbol[0] == "rank":
        factor = int(str(left.symbol[1])) * right.offset & 0xFFFFFFFF
        return Linear(("rank", factor) if factor else None, left.offset * right.offset & 0xFFFFFFFF)
    return left if right.offset == 1 else (Linear(None, 0) if right.offset == 0 else None)


def _is_predicate(operand: str) -> bool:
    return re.fullmatch(r"!?U?P(?:T|\d+)", operand) is not None
