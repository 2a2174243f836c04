# SPDX-License-Identifier: Apache-2.0
"""The control-flow graph of a function, and where the values of registers come from.

Opcodes are understood only as far as records need it: what moves, shifts, adds and ors; every other instruction makes a
value of its own that nothing is known of.  Registers that an instruction writes are told from its operands' form.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .sass import Instruction

_REGISTER = re.compile(r"^(-|~|\||!)?(U?R(?:Z|\d+)|U?P(?:T|\d+))(\.\w+)*\|?$")
_TARGET = re.compile(r"^0x[0-9a-f]+$")
_NO_RESULT = re.compile(
    r"^(ST|BRA|BRX|JMP|JMX|EXIT|RET|BSSY|BSYNC|BREAK|NOP|BAR|MEMBAR|FENCE|PMTRIG|RED|WARPSYNC|YIELD|ERRBAR|CCTL|DEPBAR|"
    r"LDGDEPBAR|LDGSTS|UTMA|UBLK|UCGABAR|CALL|NANOSLEEP|BPT|KILL|SYNCS\.ARRIVE|ACQBULK|ENDCOLLECTIVE|WARPGROUP|UTC|"
    r"PREEXIT|RPCMOV|BMOV|UGETNEXT|ARRIVES|CGAERRBAR|UVIRTCOUNT|STT|UTCBAR)"
)
#: Matrix instructions write as many registers as their tile has.
_MANY_RESULTS = re.compile(r"^(HGMMA|QGMMA|IGMMA|BGMMA|LDT|LDTM|HMMA|IMMA|DMMA|QMMA|OMMA)")
_JUMPS = ("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU")
_ENDS = ("EXIT", "RET", "KILL", "BPT")
_LEAVING = (*_JUMPS, *_ENDS)
_GOES_ON: tuple[list[int], bool, bool] = ([], False, True)
#: How far a value is followed before it counts as unknown.
_DEPTH = 24


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


class Flow:
    """A function's instructions with their graph.

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
        #: What each instruction may write.
        self.results = [written(instruction) for instruction in instructions]
        self._definitions = self._find_definitions()
        self._values: dict[tuple[int, str], Linear] = {}

    def block_of(self, index: int) -> int:
        """Return the block of an instruction."""
        position = bisect_left(self._block_starts, index + 1)
        return position - 1

    # --- Graph ----------------------------------------------------------------------------------------------

    def targets(self, index: int) -> tuple[list[int], bool, bool]:
        """Return where an instruction jumps: known targets, whether one is unknown, whether it can fall through."""
        return self._jumps.get(index, _GOES_ON)

    def jumps(self) -> Iterable[int]:
        """Return the instructions that may lead elsewhere than to the next one."""
        return self._jumps

    def _targets(self, index: int) -> tuple[list[int], bool, bool]:
        instruction = self.instructions[index]
        stem = instruction.opcode.split(".", 1)[0]
        conditional = bool(instruction.predicate) and instruction.predicate not in ("@PT", "@UPT")
        if stem in _ENDS:
            return [], False, conditional
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

    # --- Values ---------------------------------------------------------------------------------------------

    def _find_definitions(self) -> dict[str, list[int]]:
        definitions: dict[str, list[int]] = {}
        for index, results in enumerate(self.results):
            for register in results:
                definitions.setdefault(register, []).append(index)
        return definitions

    def definitions(self, register: str) -> Sequence[int]:
        """Return every instruction that may write a register."""
        return self._definitions.get(register, ())

    def reaching(self, register: str, before: int) -> tuple[set[int], bool]:
        """Return the instructions whose result a register can hold when an instruction reads it.

        A predicated result counts as certain where the reader has the same predicate.  The flag says that the register
        can also hold what it held on entry.
        """
        positions = self._definitions.get(register, [])
        found: set[int] = set()
        entry = False
        seen: set[int] = set()
        work = [(self.block_of(before), before)]
        while work:
            number, limit = work.pop()
            block = self.blocks[number]
            index = bisect_left(positions, limit)
            while index > 0 and positions[index - 1] >= block.start:
                index -= 1
                found.add(positions[index])
                if self._certain(positions[index], before):
                    break
            else:
                if not block.predecessors:
                    entry = True
                for predecessor in block.predecessors:
                    if predecessor not in seen:
                        seen.add(predecessor)
                        work.append((predecessor, self.blocks[predecessor].end))
        return found, entry

    def _certain(self, index: int, reader: int) -> bool:
        """Say whether an instruction has been executed wherever a reader behind it is."""
        predicate = self.instructions[index].predicate
        if not predicate:
            return True
        if predicate != self.instructions[reader].predicate:
            return False
        # The same predicate register, and not written in between.
        positions = self._definitions.get(predicate.lstrip("@!"), [])
        return index < reader and bisect_left(positions, index) == bisect_left(positions, reader)

    def value(self, operand: str, before: int, depth: int = 0) -> Linear:
        """Return what is known of an operand's value before an instruction."""
        operand = operand.removesuffix(".reuse")
        if operand in ("RZ", "URZ"):
            return Linear(None, 0)
        literal = _number(operand)
        if literal is not None:
            return Linear(None, literal)
        match = _REGISTER.match(operand)
        if match is None or match.group(1):
            return Linear(("operand", before, operand), 0)
        register = match.group(2)
        definitions, entry = self.reaching(register, before)
        if len(definitions) != 1 or entry or depth > _DEPTH:
            values = set()
            if not entry and depth <= _DEPTH and len(definitions) <= 8:
                values = {self._result(index, register, depth + 1) for index in definitions}
            if len(values) == 1:
                return values.pop()
            return Linear(("merge", register, frozenset(definitions), entry), 0)
        return self._result(next(iter(definitions)), register, depth + 1)

    def _result(self, index: int, register: str, depth: int) -> Linear:
        key = (index, register)
        if key not in self._values:
            # A loop leads back here: until more is known, the value is its own symbol.
            self._values[key] = Linear(("def", index, register), 0)
            self._values[key] = self._evaluate(index, register, depth) or self._values[key]
        return self._values[key]

    def _evaluate(self, index: int, register: str, depth: int) -> Linear | None:
        instruction = self.instructions[index]
        operands = [part.strip() for part in split_operands(instruction.operands)]
        if not operands or operands[0].removesuffix(".64") != register:
            return None
        opcode, sources = instruction.opcode, [part for part in operands[1:] if not _is_predicate(part)]

        def known(operand: str) -> Linear:
            return self.value(operand, index, depth)

        stem = opcode.split(".", 1)[0]
        if stem in ("S2R", "S2UR", "CS2R", "CS2UR", "S2UR_") and sources:
            if sources[0] == "SR_CgaCtaId":
                return Linear(("rank", 1), 0)
            return Linear(("timer", 0), 0) if sources[0] == "SR_GLOBALTIMERLO" else None
        if stem in ("MOV", "UMOV", "R2UR") and len(sources) == 1:
            return known(sources[0])
        if stem in ("MOV", "UMOV") and sources:
            return known(sources[0])
        if stem == "HFMA2" and len(sources) == 4 and sources[:2] == ["-RZ", "RZ"]:
            return _halves(sources[2], sources[3])
        if opcode.startswith(("LOP3", "ULOP3")) and len(sources) >= 4:
            return _or(known(sources[0]), known(sources[1]), known(sources[2]), _number(sources[3]))
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


def split_operands(text: str) -> Iterator[str]:
    """Split operands at their commas, which never stand inside brackets."""
    return iter(text.split(",")) if text else iter(())


def _is_predicate(operand: str) -> bool:
    return re.fullmatch(r"!?U?P(?:T|\d+)", operand) is not None


def _number(text: str) -> int | None:
    try:
        return int(text, 0) & 0xFFFFFFFF
    except ValueError:
        return None


def written(instruction: Instruction) -> tuple[str, ...]:
    """Return the registers and predicates that an instruction may write."""
    first, _, rest = instruction.operands.partition(",")
    # Results stand first; a second one is a predicate, or follows one.
    second = rest.partition(",")[0]
    if instruction.opcode == "R2P":
        second = rest.rpartition(",")[2]
    elif not second.startswith(("P", "UP")) and "P" not in first[:2]:
        second = ""
    return _results(instruction.opcode, first, second)


@lru_cache(maxsize=65536)
def _results(opcode: str, first: str, second: str) -> tuple[str, ...]:
    if _NO_RESULT.match(opcode):
        return ()
    if opcode == "R2P":
        # The mask names the predicates that are written.
        return tuple(f"P{bit}" for bit in range(7) if (_number(second) or 0) >> bit & 1)
    result: list[str] = []
    for operand in (first, second):
        match = _REGISTER.match(operand)
        if match is None or match.group(1):
            break
        name = match.group(2)
        # PT and RZ swallow a result.
        if not name.endswith(("T", "Z")):
            result += [name] if "P" in name else _width(opcode, name)
    return tuple(result)


def _width(opcode: str, name: str) -> list[str]:
    """Return the registers from `name` on that a result of this opcode fills."""
    stem, number = name.rstrip("0123456789"), int(name.lstrip("UR"))
    if _MANY_RESULTS.match(opcode):
        count = 128 if "GMMA" in opcode or opcode.startswith("LDT") else 8
    elif ".128" in opcode or (opcode.startswith("LDSM") and ".4" in opcode):
        count = 4
    elif ".64" in opcode or ".WIDE" in opcode or opcode.startswith(("DADD", "DMUL", "DFMA", "I2F.F64", "F2F.F64")):
        count = 2
    elif opcode.startswith(("LDSM", "TEX", "TLD", "SULD")):
        count = 4
    elif opcode == "CS2R":
        count = 2
    else:
        count = 1
    return [f"{stem}{number + index}" for index in range(count)]
