# SPDX-License-Identifier: Apache-2.0
"""Name the condition that an instruction tests, so that it is known again where the code tests it once more.

A condition is named by the comparison that computes it and by where its operands come from.  The names see through what
compilers do to one condition of the source: another comparison with the same outcome (`> 31`, `>= 32`), the opposite
one, computing it anew from what never changes in a thread (its index, a kernel parameter), and keeping a predicate in a
register over a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .flow import Flow
from .operands import split_operands
from .sass import Instruction
from .spans import Condition

_PREDICATE = re.compile(r"(!?)(U?P\d+)$")
_SOURCE = re.compile(r"!?(U?[RP]\d+)$")
_REGISTERS = re.compile(r"(?<![\w.])U?[RP]\d+")
_FROM_LANES = ("LOP3", "ISETP", "PLOP3", "SEL", "MOV", "IMAD.MOV", "ULOP3", "VOTE", "R2UR")
#: What has one value in a thread as long as its kernel runs.
_FIXED_REGISTER = re.compile(r"^SR_(TID|CTAID|NTID|NCTAID|LANEID|CgaCtaId)\b")
_CONSTANT = re.compile(r"^c\[0x[0-9a-f]+\]\[0x[0-9a-f]+\]$")
_LOADS_CONSTANT = ("LDC", "ULDC", "LDCU", "MOV", "UMOV")
#: The results of these depend on their operands and on nothing else.
_PURE = ("SHF", "USHF", "LOP3", "ULOP3", "IADD3", "UIADD3", "VIADD", "UVIADD", "IMAD", "UIMAD", "LEA", "ULEA", "MOV")
_CARRIES = ("SEL", "FSEL", "USEL", "LDL")
_READS = ("LD", "ATOM", "RED", "S2", "CS2", "SHFL", "VOTE", "SYNCS")
_PURE_COPIES = ("UMOV", "R2UR")
#: What reads memory; LDC and its like read what never changes.
_LOADS = re.compile(r"^(LD(?!C|CU)|ATOM|SYNCS|RED)")
#: What computes a predicate from its operands alone.
_COMPARES = re.compile(r"^(U?ISETP|FSETP|DSETP|HSETP2|U?LOP3|U?PLOP3)\b")
_NEVER_CHANGES = re.compile(r"c\[0x[0-9a-f]+\]\[[^\]]+\]|SR_\w+(?:\.\w+)?")
_NON_ZERO = re.compile(r"^ISETP\.(NE|EQ)(\.[US]32)?\.AND$")
#: How far a value is followed before it counts as one of its own.
_DEPTH = 6
#: How many instructions may compute one condition.
_MOST_DEFINITIONS = 4


class Conditions:
    """The conditions of a function.

    Args:
        flow: the function.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._sources: dict[int, frozenset[object]] = {}

    def test(self, index: int) -> tuple[str, bool] | None:
        """Return the predicate that an instruction tests and the value at which it acts."""
        instruction = self.flow.instructions[index]
        tests = [instruction.predicate.lstrip("@")] if instruction.predicate else []
        if self.flow.targets(index)[0] and not instruction.opcode.startswith(("BRX", "JMX")):
            tests += [part for part in split_operands(instruction.operands) if not part.startswith("0x")]
        match = _PREDICATE.match(tests[0]) if len(tests) == 1 else None
        return (match.group(2), match.group(1) == "") if match else None

    def named(self, index: int) -> tuple[Condition, bool] | None:
        """Return the condition that an instruction tests and the value of it at which it acts."""
        test = self.test(index)
        return self._name(test[0], index, test[1]) if test else None

    def act_together(self, first: int, second: int) -> bool:
        """Say whether a predicated instruction acts wherever another one further down does.

        So it is where both test one condition, kept or computed anew, and nothing between them writes what it is
        computed from.
        """
        name = self.named(first)
        if name is None or name != self.named(second):
            return False
        tests = [(index, *test) for index in (first, second) if (test := self.test(index))]
        computed = {one[1] for index, register, value in tests for one in self._computations(register, index, value)}
        anew = len(computed) > 1
        if anew and not all(_COMPARES.match(self.flow.instructions[definition].opcode) for definition in computed):
            return False
        return not any(first < definition < second for definition in definitions_in(name))

    def _name(self, register: str, before: int, value: bool) -> tuple[Condition, bool] | None:
        """Name what a predicate holds before an instruction; the flag is the condition's value where it has `value`."""
        names = set()
        for computed, index, result in self._computations(register, before, value):
            condition, holds = self._comparison(computed, index)
            names.add((condition, holds is result))
        # A loop computes the same before it and again in it.
        return names.pop() if len(names) == 1 else None

    def _computations(self, register: str, before: int, value: bool) -> frozenset[tuple[str, int, bool]]:
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
                kept = self._kept(register, one[1])
                if kept is None:
                    found.add(one)
                else:
                    # With more conditions than predicates, one is put away and taken back again and again.
                    work.append((kept[0], kept[2], kept[1] is value))
        return frozenset(found)

    def constant(self, index: int) -> bool | None:
        """Return what an instruction sets its predicate to, where that is a constant."""
        register, when_true, when_false = self._of_one(index)
        return when_true if register is None and when_true is when_false else None

    def copied(self, index: int) -> tuple[Condition, bool] | None:
        """Return the condition that an instruction copies to its predicate, and whether as it is or as its opposite."""
        register, when_true, when_false = self._of_one(index)
        named = self._name(register, index, True) if register and when_true is not when_false else None
        return (named[0], named[1] is when_true) if named else None

    def _of_one(self, index: int) -> tuple[str | None, bool | None, bool | None]:
        """Read PLOP3 of one predicate at the most: that one, and the result where it holds and where it does not."""
        instruction = self.flow.instructions[index]
        operands = list(split_operands(instruction.operands))
        table = _literal(operands[5]) if len(operands) == 7 else None
        if instruction.opcode not in ("PLOP3.LUT", "UPLOP3.LUT") or instruction.predicate or table is None:
            return None, None, None
        inputs = [part.removesuffix(".reuse") for part in operands[2:5]]
        read = {part.lstrip("!") for part in inputs} - {"PT", "UPT"}
        if len(read) > 1:
            return None, None, None

        def result(value: bool) -> bool:
            bits = ((value if part.lstrip("!") in read else True) is not part.startswith("!") for part in inputs)
            return bool(table >> int("".join("01"[bit] for bit in bits), 2) & 1)

        return next(iter(read), None), result(True), result(False)

    def carried(self, index: int) -> bool:
        """Say whether the condition that an instruction tests is one that a variable carries.

        So it is where one of the values that it is computed from has several places of origin, was selected, or was put
        away in local memory.  What is read from other memory is a value of its own.
        """
        test = self.test(index)
        work = [(test[0], index)] if test else []
        seen: set[int] = set()
        while work:
            definitions, _ = self.flow.reaching(*work.pop())
            if len(definitions) > 1:
                return True
            for found in definitions - seen:
                seen.add(found)
                instruction = self.flow.instructions[found]
                if instruction.opcode.startswith(_CARRIES):
                    return True
                if not instruction.opcode.startswith(_READS):
                    operands = f"{instruction.predicate} {instruction.operands.partition(',')[2]}"
                    work += [(register, found) for register in set(_REGISTERS.findall(operands))]
        return False

    def sources(self, index: int) -> frozenset[object]:
        """Return what the condition that an instruction tests is computed from, wherever it was computed.

        Returns:
            Special registers and constants by their names, and ("read", address) for what is read from memory, by where
            the address comes from: what is read once more from one place may be the same value.
        """
        if index not in self._sources:
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
                    if _LOADS.match(one.opcode):
                        addresses = [part for part in split_operands(one.operands) if "[" in part]
                        found.add(("read", *(self._origin(part, definition, 0) for part in addresses)))
                    else:
                        found.update(_NEVER_CHANGES.findall(read))
                        work += [(name, definition) for name in _registers(read)]
            self._sources[index] = frozenset(found)
        return self._sources[index]

    def any_value(self, value: object) -> bool:
        """Say whether what is compared is read from memory, or a kernel's parameter: nothing is known of its values."""
        match value:
            case ("_", (("results", (int(index),), False),)):
                return re.match(r"^LD[GSL]?(\.\w+)*$", self.flow.instructions[index].opcode) is not None
            case (str(text), ()) | ("_", (("fixed", str(text)),)):
                return _CONSTANT.match(text) is not None
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
                if (kept := self._kept(name, index)) is not None:
                    work.append((kept[0], kept[2]))
                elif instruction.opcode.startswith(_FROM_LANES):
                    sources = list(split_operands(instruction.operands))[1:]
                    found = (_SOURCE.match(source.removesuffix(".reuse")) for source in sources)
                    work += [(match.group(1), index) for match in found if match is not None]
        return False

    # --- Predicates that are kept in registers ----------------------------------------------------------------

    def _definition(self, register: str, before: int) -> int | None:
        """Return the one instruction whose result a register holds."""
        definitions, entry = self.flow.reaching(register, before)
        return next(iter(definitions)) if len(definitions) == 1 and not entry else None

    def _kept(self, register: str, index: int) -> tuple[str, bool, int] | None:
        """Where an instruction takes a predicate back out of a register, say what was put there.

        Returns:
            The predicate, whether it comes back as it was, and the instruction that put it there.
        """
        instruction = self.flow.instructions[index]
        operands = list(split_operands(instruction.operands))
        if instruction.predicate or len(operands) < 3:
            return None
        same = True
        if instruction.opcode == "R2P":
            source, bit = operands[1], int(register[1:])
        elif _NON_ZERO.match(instruction.opcode) and operands[0] == register and operands[3:] == ["RZ", "PT"]:
            source, bit, same = operands[2], -1, ".NE" in instruction.opcode
        elif instruction.opcode == "LOP3.LUT" and operands[:2] == [register, "RZ"] and operands[4:6] == ["RZ", "0xc0"]:
            source, mask = operands[2], _literal(operands[3])
            if mask is None or mask.bit_count() != 1:
                return None
            bit = mask.bit_length() - 1
        else:
            return None
        return self._put(source.removesuffix(".reuse"), bit, same, index)

    def _put(self, source: str, bit: int, same: bool, before: int) -> tuple[str, bool, int] | None:
        """Find the P2R that put a predicate into a bit of a register; -1 is any bit, of one alone."""
        if _SOURCE.match(source) is None or (definition := self._definition(source, before)) is None:
            return None
        instruction = self.flow.instructions[definition]
        operands = list(split_operands(instruction.operands))
        mask = _literal(operands[3]) if instruction.opcode == "P2R" and len(operands) == 4 else None
        if mask is None or instruction.predicate or operands[1] != "PR":
            return None
        if bit < 0:
            if mask.bit_count() != 1 or operands[2] != "RZ":
                return None
            bit = mask.bit_length() - 1
        return (f"P{bit}", same, definition) if mask >> bit & 1 else None

    # --- Comparisons ------------------------------------------------------------------------------------------

    def _comparison(self, register: str, index: int) -> tuple[Condition, bool]:
        """Name what computes a predicate; the flag says whether the predicate is that condition or its opposite."""
        instruction = self.flow.instructions[index]
        operands = list(split_operands(instruction.operands))
        parts = _without_unit(instruction.opcode).split(".")
        plain = operands[:2] in ([register, "PT"], [register, "UPT"]) and operands[4:] in (["PT"], ["UPT"])
        if parts[0] == "ISETP" and parts[-1] == "AND" and plain and not instruction.predicate:
            left, right = (self._origin(operand, index, 0) for operand in operands[2:4])
            named = _ordered(parts[1], "U32" in parts, left, right)
            if named is not None:
                return named
        if parts[0] == "LOP3" and operands[0] == register and operands[-1] == "!PT" and not instruction.predicate:
            # The predicate says whether the result beside it is another value than 0.
            value = self._fixed(instruction, operands[1], index, 0)
            if value is not None:
                return ("equal", ("_", (value,)), ("literal", 0)), False
        position = operands.index(register) if register in operands else 0
        sources = tuple(self._origin(operand, index, 0) for operand in operands[1:])
        return (instruction.opcode, instruction.predicate, position, sources), True

    def _origin(self, operand: str, at: int, depth: int) -> object:
        """Name what an operand holds: by its registers' definitions, or wholly where those never change."""
        operand = operand.removesuffix(".reuse")
        literal = 0 if operand in ("RZ", "URZ") else _literal(operand)
        if literal is not None:
            return ("literal", literal)
        registers = _REGISTERS.findall(operand)
        return (
            _REGISTERS.sub("_", operand),
            tuple(self._register(register, at, depth) for register in registers),
        )

    def _register(self, register: str, at: int, depth: int) -> object:
        definitions, entry = self.flow.reaching(register, at)
        if len(definitions) == 1 and not entry and depth < _DEPTH:
            (definition,) = definitions
            fixed = self._fixed(self.flow.instructions[definition], register, definition, depth)
            if fixed is not None:
                return fixed
        return ("results", definitions_key(definitions), entry)

    def _fixed(self, instruction: Instruction, register: str, index: int, depth: int) -> object:
        """Name a value that is the same wherever it is computed; None where it is none."""
        operands = list(split_operands(instruction.operands))
        stem = instruction.opcode.split(".", 1)[0]
        if stem in ("LOP3", "ULOP3") and _PREDICATE.match(operands[0]) and operands[-1] in ("!PT", "!UPT"):
            operands = operands[1:]
        if instruction.predicate or len(operands) < 2 or operands[0] != register:
            return None
        if stem in ("S2R", "S2UR") and _FIXED_REGISTER.match(operands[1]):
            return ("fixed", operands[1])
        if instruction.opcode in _LOADS_CONSTANT and len(operands) == 2 and _CONSTANT.match(operands[1]):
            return ("fixed", operands[1])
        if stem not in _PURE + _PURE_COPIES:
            return None
        sources = tuple(self._origin(operand, index, depth + 1) for operand in operands[1:])
        if any(True for source in sources for _ in definitions_in(source)):
            return None
        return sources[0] if stem in _PURE_COPIES else ("fixed", _without_unit(instruction.opcode), sources)


def _registers(operands: str) -> set[str]:
    return set(_REGISTERS.findall(operands))


def definitions_key(definitions: set[int]) -> tuple[int, ...]:
    """Return instructions in a fixed order, so that equal sets are equal names."""
    return tuple(sorted(definitions))


def definitions_in(name: object) -> Iterator[int]:
    """Return the instructions on whose results a condition depends."""
    if isinstance(name, tuple):
        if len(name) == 3 and name[0] == "results":
            yield from name[1]
        else:
            for part in name:
                yield from definitions_in(part)


def _ordered(comparison: str, unsigned: bool, left: object, right: object) -> tuple[Condition, bool] | None:
    """Write a comparison as `less` or `equal`; the flag says whether it is that or its opposite."""
    if comparison in ("EQ", "NE"):
        return ("equal", left, right), comparison == "EQ"
    if comparison not in ("LT", "LE", "GT", "GE"):
        return None
    same = comparison in ("LT", "LE")
    if comparison in ("LE", "GT"):
        if not (isinstance(right, tuple) and right[0] == "literal"):
            left, right, same = right, left, not same
        else:
            right = ("literal", right[1] + 1)
    if unsigned and right == ("literal", 1):
        return ("equal", left, ("literal", 0)), same
    return ("less", unsigned, left, right), same


def _without_unit(opcode: str) -> str:
    """Return an opcode without the letter of the uniform unit, which computes the same."""
    return opcode[1:] if opcode.startswith(("UISETP", "USHF", "ULOP3", "UIADD3", "UVIADD", "UIMAD", "ULEA")) else opcode


def _literal(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None
