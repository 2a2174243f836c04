# SPDX-License-Identifier: Apache-2.0
"""Name what an operand holds by where it comes from: the same name, the same value.

What never changes in a thread (its index, a kernel parameter) and what is computed from that alone has a name of its
own, wherever it is computed; the rest is named by the instructions whose results it can be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .flow import Flow
from .operands import REGISTERS, immediate, split_operands
from .sass import Instruction

_PREDICATE = re.compile(r"U?P\d+$")
#: What has one value in a thread as long as its kernel runs.
_FIXED_REGISTER = re.compile(r"^SR_(TID|CTAID|NTID|NCTAID|LANEID|CgaCtaId)\b")
CONSTANT = re.compile(r"^c\[0x[0-9a-f]+\]\[0x[0-9a-f]+\]$")
_LOADS_CONSTANT = ("LDC", "ULDC", "LDCU", "MOV", "UMOV")
#: The results of these depend on their operands and on nothing else.
_PURE = ("SHF", "USHF", "LOP3", "ULOP3", "IADD3", "UIADD3", "VIADD", "UVIADD", "IMAD", "UIMAD", "LEA", "ULEA")
_COPIES = ("MOV", "UMOV", "R2UR")
#: How far a value is followed before it counts as one of its own.
_DEPTH = 6
#: What is seen through where it is of one value and constants.
_OF_ONE = ("VIADD", "IADD3", "LOP3.LUT", "SHF.R.U32.HI", "SHF.R.S32.HI")
_NOTHING = ("PT", "UPT", "RZ", "URZ")
#: How many instructions may compute one value.
_MOST_DEFINITIONS = 4


class Origins:
    """Where the operands of a function's instructions come from.

    Args:
        flow: the function.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow = flow

    def of(self, operand: str, at: int, depth: int = 0) -> object:
        """Name what an operand holds: by its registers' definitions, or wholly where those never change."""
        operand = operand.removesuffix(".reuse")
        literal = 0 if operand in ("RZ", "URZ") else immediate(operand)
        if literal is not None:
            return ("literal", literal)
        registers = REGISTERS.findall(operand)
        return (
            REGISTERS.sub("_", operand),
            tuple(self.register(register, at, depth) for register in registers),
        )

    def register(self, register: str, at: int, depth: int = 0) -> object:
        """Name what a register holds."""
        definitions, entry = self.flow.reaching(register, at)
        if len(definitions) <= _MOST_DEFINITIONS and not entry and depth < _DEPTH:
            # ptxas reads a parameter once more on another way to one place.
            fixed = {self.fixed(self.flow.instructions[one], register, one, depth) for one in definitions}
            if len(fixed) == 1 and None not in fixed:
                return fixed.pop()
            if len(definitions) == 1 and (derived := self._derived(register, next(iter(definitions)), at)) is not None:
                return derived
        return ("results", tuple(sorted(definitions)), entry)

    def _derived(self, register: str, index: int, at: int) -> object:
        """Name what is computed of one value and constants, where the value is not written anew before it is read.

        Returns:
            ("of", opcode, names of the operands); None for others.
        """
        instruction = self.flow.instructions[index]
        operands = [part.removesuffix(".reuse") for part in split_operands(instruction.operands)]
        opcode = without_unit(instruction.opcode)
        if instruction.predicate or opcode not in _OF_ONE or operands[0] != register or at < index:
            return None
        sources = {part for part in operands[1:] if REGISTERS.fullmatch(part)}
        if len(sources) != 1 or any(part.startswith(("-R", "-UR", "~", "|")) for part in operands):
            return None
        (source,) = sources
        reached = self.flow.reaching(source, index)
        if reached != self.flow.reaching(source, at) or any(index < one < at for one in reached[0]):
            return None
        value = ("_", (("results", tuple(sorted(reached[0])), reached[1]),))
        if opcode == "IADD3":
            # Of three, one is nothing; carries stand before them.
            opcode, operands = "VIADD", [register, *(part for part in operands[1:] if part not in _NOTHING)]
        return ("of", opcode, tuple(value if part == source else self.of(part, index) for part in operands[1:]))

    def fixed(self, instruction: Instruction, register: str, index: int, depth: int = 0) -> object:
        """Name what an instruction computes, where that is the same wherever it is computed; None where it is not."""
        operands = list(split_operands(instruction.operands))
        stem = instruction.opcode.split(".", 1)[0]
        if stem in ("LOP3", "ULOP3") and _PREDICATE.match(operands[0]) and operands[-1] in ("!PT", "!UPT"):
            operands = operands[1:]
        if len(operands) < 2 or operands[0] != register:
            return None
        if stem in ("S2R", "S2UR") and _FIXED_REGISTER.match(operands[1]):
            return ("fixed", operands[1])
        if instruction.opcode in _LOADS_CONSTANT and len(operands) == 2 and CONSTANT.match(operands[1]):
            return ("fixed", operands[1])
        # A product of nothing is how ptxas copies with the multiplier.
        copies = stem in _COPIES or (stem == "IMAD" and operands[1:3] == ["RZ", "RZ"] and len(operands) == 4)
        if stem not in _PURE and not copies:
            return None
        sources = tuple(self.of(operand, index, depth + 1) for operand in operands[1:])
        if any(True for source in sources for _ in definitions_in(source)):
            return None
        if copies:
            match sources[-1]:
                case ("_", (source,)):
                    return source
            return sources[-1]
        return ("fixed", without_unit(instruction.opcode), sources)


def definitions_in(name: object) -> Iterator[int]:
    """Return the instructions on whose results a condition depends."""
    if isinstance(name, tuple):
        if len(name) == 3 and name[0] == "results":
            yield from name[1]
        else:
            for part in name:
                yield from definitions_in(part)


def without_unit(opcode: str) -> str:
    """Return an opcode without the letter of the uniform unit, which computes the same."""
    return opcode[1:] if opcode.startswith(("UISETP", "USHF", "ULOP3", "UIADD3", "UVIADD", "UIMAD", "ULEA")) else opcode
