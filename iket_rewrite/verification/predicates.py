# SPDX-License-Identifier: Apache-2.0
"""Which predicate an instruction tests, and which instruction computed what it holds.

With more conditions than predicate registers, and over calls, ptxas keeps a predicate as a bit of a register (P2R) and
takes it back from there (R2P, or a comparison with zero), again and again: it is followed to where it was computed.
"""

from __future__ import annotations

import re
from itertools import product

from .flow import Flow
from .operands import immediate, split_operands

_PREDICATE = re.compile(r"(!?)(U?P\d+)$")
_REGISTER = re.compile(r"U?R\d+$")
_NON_ZERO = re.compile(r"^ISETP\.(NE|EQ)(\.[US]32)?\.AND$")
#: How many instructions may compute one condition.
_MOST_DEFINITIONS = 4


class Predicates:
    """The predicates of a function.

    Args:
        flow: the function.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def test(self, index: int) -> tuple[str, bool] | None:
        """Return the one predicate that an instruction tests and the value at which it acts."""
        tests = self.tests(index)
        return tests[0] if len(tests) == 1 else None

    def tests(self, index: int) -> tuple[tuple[str, bool], ...]:
        """Return the predicates that an instruction tests with the values at which, all together, it acts.

        A jump and an exit can test two (`@!P0 BRA P1, ...`).  Nothing is returned where it tests something else.
        """
        instruction = self.flow.instructions[index]
        tests = [instruction.predicate.lstrip("@")] if instruction.predicate else []
        jumps = bool(self.flow.targets(index)[0]) and not instruction.opcode.startswith(("BRX", "JMX"))
        if jumps or instruction.opcode.startswith("EXIT"):
            tests += [part for part in split_operands(instruction.operands) if not part.startswith("0x")]
        found = [match for match in map(_PREDICATE.match, tests) if match is not None]
        return tuple((match.group(2), match.group(1) == "") for match in found) if len(found) == len(tests) else ()

    def computations(self, register: str, before: int, value: bool) -> frozenset[tuple[str, int, bool]]:
        """Find what computes the value of a predicate, also where it was kept in registers since then.

        Returns:
            The predicate that was computed, the instruction, and its result at which the predicate has `value` before
            the instruction `before`; nothing where one is unknown.
        """
        work = [(register, before, value)]
        found: set[tuple[str, int, bool]] = set()
        seen: set[tuple[str, int, bool]] = set()
        while work:
            register, before, value = work.pop()
            definitions, entry = self.flow.reaching(register, before)
            if entry or len(definitions) > _MOST_DEFINITIONS:
                return frozenset()
            for one in {(register, definition, value) for definition in definitions} - seen:
                seen.add(one)
                kept = self.kept(register, one[1])
                if kept is None:
                    found.add(one)
                else:
                    # With more conditions than predicates, one is put away and taken back again and again.
                    work.append((kept[0], kept[2], kept[1] is value))
        return frozenset(found)

    def table(self, index: int) -> tuple[tuple[str, ...], frozenset[tuple[bool, ...]]] | None:
        """Read an instruction that combines predicates to another (PLOP3).

        Returns:
            The predicates that it reads, and those of their values at which its result holds; None for others.
        """
        instruction = self.flow.instructions[index]
        operands = list(split_operands(instruction.operands))
        bits = immediate(operands[5]) if len(operands) == 7 else None
        if instruction.opcode not in ("PLOP3.LUT", "UPLOP3.LUT") or instruction.predicate or bits is None:
            return None
        inputs = [part.removesuffix(".reuse") for part in operands[2:5]]
        read = tuple(sorted({part.lstrip("!") for part in inputs} - {"PT", "UPT"}))
        holds = set()
        for values in product((True, False), repeat=len(read)):
            given = dict(zip(read, values, strict=True))
            row = (given.get(part.lstrip("!"), True) is not part.startswith("!") for part in inputs)
            if bits >> int("".join("01"[bit] for bit in row), 2) & 1:
                holds.add(values)
        return read, frozenset(holds)

    def constant(self, index: int) -> bool | None:
        """Return what an instruction sets its predicate to, where that is a constant."""
        table = self.table(index)
        return bool(table[1]) if table is not None and not table[0] else None

    def _definition(self, register: str, before: int) -> int | None:
        """Return the one instruction whose result a register holds."""
        definitions, entry = self.flow.reaching(register, before)
        return next(iter(definitions)) if len(definitions) == 1 and not entry else None

    def kept(self, register: str, index: int) -> tuple[str, bool, int] | None:
        """Where an instruction takes a predicate back out of a register, or copies it, say what was put there.

        Returns:
            The predicate, whether it comes back as it was, and the instruction before which it was that.
        """
        instruction = self.flow.instructions[index]
        operands = list(split_operands(instruction.operands))
        if instruction.predicate or len(operands) < 3:
            return None
        table = self.table(index) if operands[0] == register else None
        if table is not None and len(table[0]) == len(table[1]) == 1:
            return table[0][0], (True,) in table[1], index
        same = True
        if instruction.opcode == "R2P":
            source, bit = operands[1], int(register[1:])
        elif _NON_ZERO.match(instruction.opcode) and operands[0] == register and operands[3:] == ["RZ", "PT"]:
            source, bit, same = operands[2], -1, ".NE" in instruction.opcode
        elif instruction.opcode == "LOP3.LUT" and operands[:2] == [register, "RZ"] and operands[4:6] == ["RZ", "0xc0"]:
            source, mask = operands[2], immediate(operands[3])
            if mask is None or mask.bit_count() != 1:
                return None
            bit = mask.bit_length() - 1
        else:
            return None
        return self._put(source.removesuffix(".reuse"), bit, same, index)

    def _put(self, source: str, bit: int, same: bool, before: int) -> tuple[str, bool, int] | None:
        """Find the P2R that put a predicate into a bit of a register; -1 is any bit, of one alone."""
        if _REGISTER.match(source) is None or (definition := self._definition(source, before)) is None:
            return None
        instruction = self.flow.instructions[definition]
        operands = list(split_operands(instruction.operands))
        mask = immediate(operands[3]) if instruction.opcode == "P2R" and len(operands) == 4 else None
        if mask is None or instruction.predicate or operands[1] != "PR":
            return None
        if bit < 0:
            if mask.bit_count() != 1 or operands[2] != "RZ":
                return None
            bit = mask.bit_length() - 1
        return (f"P{bit}", same, definition) if mask >> bit & 1 else None
