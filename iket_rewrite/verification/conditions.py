# SPDX-License-Identifier: Apache-2.0
"""Name the condition that an instruction tests, so that it is known again where the code tests it once more.

A condition is named by the comparison that computes it and by where its operands come from.  The names see through what
compilers do to one condition of the source: another comparison with the same outcome (`> 31`, `>= 32`), the opposite
one, computing it anew from what never changes in a thread, keeping a predicate in a register, and computing two
conditions in one (`w == 4 && c`): that one is named by its parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

from .flow import Flow
from .operands import split_operands
from .origins import Origins, definitions_in, without_unit
from .predicates import Predicates
from .spans import Condition, parts_of

#: What reads memory; LDC and its like read what never changes.
LOADS = re.compile(r"^(LD(?!C|CU)|ATOM|SYNCS|RED(?!UX))")
#: What computes a predicate from its operands alone.
_COMPARES = re.compile(r"^(U?ISETP|FSETP|DSETP|HSETP2|U?LOP3|U?PLOP3)\b")
_TRUE = ("PT", "UPT")
#: Comparisons of floating-point numbers that hold for NaN, and those of which they are the opposites.
_UNORDERED = {"LEU": "GT", "LTU": "GE", "GEU": "LT", "GTU": "LE", "NEU": "EQ", "EQU": "NE", "NAN": "NUM"}
#: How many conditions in one are told apart.
_DEPTH = 6


class Conditions:
    """The conditions of a function.

    Args:
        flow: the function.
    """

    def __init__(self, flow: Flow) -> None:
        self.flow, self.predicates, self.origins = flow, Predicates(flow), Origins(flow)
        self._names: dict[int, tuple[Condition, bool] | None] = {}
        self._depth = 0

    def named(self, index: int) -> tuple[Condition, bool] | None:
        """Return the condition that an instruction tests and the value of it at which it acts."""
        if index not in self._names:
            tests = self.predicates.tests(index)
            if len(tests) > 1:
                self._names[index] = self._all([self._part(register, index, value) for register, value in tests]), True
            else:
                self._names[index] = self.name(tests[0][0], index, tests[0][1]) if tests else None
        return self._names[index]

    def act_together(self, first: int, second: int) -> bool:
        """Say whether a predicated instruction acts wherever another one further down does.

        So it is where both test one condition, kept or computed anew, and nothing between them writes what it is
        computed from.
        """
        if not self.flow.instructions[first].predicate or not self.flow.instructions[second].predicate:
            return False
        name = self.named(first)
        if name is None or name != self.named(second):
            return False
        computed = self._computing(first) | self._computing(second)
        if len(computed) > 1 and not self._compare(computed):
            return False
        return not any(first < definition < second for definition in definitions_in(name))

    def copied(self, index: int) -> tuple[Condition, bool] | None:
        """Return the condition that an instruction copies to its predicate, and whether as it is or as its opposite."""
        table = self.predicates.table(index)
        if table is None or not len(table[0]) == len(table[1]) == 1:
            return None
        return self.name(table[0][0], index, (True,) in table[1])

    def _computing(self, index: int) -> set[int]:
        """Return the instructions that compute the predicate which an instruction tests."""
        found = (self.predicates.computations(one, index, value) for one, value in self.predicates.tests(index))
        return {one for computed in found for _, one, _ in computed}

    def _compare(self, indices: set[int]) -> bool:
        return all(_COMPARES.match(self.flow.instructions[index].opcode) for index in indices)

    def name(self, register: str, before: int, value: bool) -> tuple[Condition, bool] | None:
        """Name what a predicate holds before an instruction; the flag is the condition's value where it has `value`."""
        names = set()
        for computed, index, result in self.predicates.computations(register, before, value):
            condition, holds = self._comparison(computed, index)
            names.add((condition, holds is result))
        # A loop computes the same before it and again in it.
        return names.pop() if len(names) == 1 else None

    # --- Comparisons ------------------------------------------------------------------------------------------

    def _comparison(self, register: str, index: int) -> tuple[Condition, bool]:
        """Name what computes a predicate; the flag says whether the predicate is that condition or its opposite."""
        instruction = self.flow.instructions[index]
        operands = list(split_operands(instruction.operands))
        if not instruction.predicate and operands[0] == register:
            parts = self._combined(index) or self._compared_beside(index, operands)
            if parts is not None:
                return parts
        return self._single(register, index, instruction.opcode, operands)

    def _single(self, register: str, index: int, opcode: str, operands: list[str]) -> tuple[Condition, bool]:
        """Name a comparison that has no other condition in it."""
        instruction, how = self.flow.instructions[index], without_unit(opcode).split(".")
        plain = operands[0] == register and operands[1] in _TRUE and operands[4:] in (["PT"], ["UPT"])
        if how[0] == "ISETP" and how[-1] == "AND" and plain and not instruction.predicate:
            left, right = (self.origins.of(operand, index) for operand in operands[2:4])
            named = _ordered(how[1], "U32" in how, left, right)
            if named is not None:
                return named
        if how[0] == "LOP3" and operands[0] == register and operands[-1] == "!PT" and not instruction.predicate:
            # The predicate says whether the result beside it is another value than 0.
            value = self.origins.fixed(instruction, operands[1], index)
            if value is not None:
                return ("equal", ("_", (value,)), ("literal", 0)), False
        same = True
        if how[0] in ("FSETP", "DSETP") and how[1] in _UNORDERED and plain:
            opcode, same = opcode.replace(f".{how[1]}.", f".{_UNORDERED[how[1]]}.", 1), False
        position = operands.index(register) if register in operands else 0
        sources = [self.origins.of(operand, index) for operand in operands[1:]]
        if LOADS.match(opcode):
            # Memory may hold something else the next time.
            sources.append(("results", (index,), False))
        return (opcode, instruction.predicate, position, tuple(sources)), same

    def _compared_beside(self, index: int, operands: list[str]) -> tuple[Condition, bool] | None:
        """Name a comparison whose outcome is combined with another predicate: `x == 4 && p`, `x != 4 || p`."""
        opcode, _, how = self.flow.instructions[index].opcode.rpartition(".")
        other = operands[-1]
        if "SETP" not in opcode or how not in ("AND", "OR") or operands[1] not in _TRUE or other.lstrip("!") in _TRUE:
            return None
        compared, holds = self._single(operands[0], index, f"{opcode}.AND", [*operands[:-1], "PT"])
        both = how == "AND"
        # Either of two holds unless neither does.
        beside = self._part(other.lstrip("!"), index, both is not other.startswith("!"))
        return self._all([(compared, holds is both), beside]), both

    def _combined(self, index: int) -> tuple[Condition, bool] | None:
        """Name what combines predicates, where it holds for one set of their values only, or for all but one."""
        table = self.predicates.table(index)
        if table is None or len(table[0]) < 2:
            return None
        read, holds = table
        fails = {*product((True, False), repeat=len(read))} - holds
        few = holds if len(holds) == 1 else fails
        if len(few) != 1:
            return None
        (values,) = few
        parts = [self._part(register, index, value) for register, value in zip(read, values, strict=True)]
        return self._all(parts), few is holds

    def _part(self, register: str, index: int, value: bool) -> tuple[Condition, bool]:
        """Name a predicate that is a part of another condition."""
        name = None
        computed = {one for _, one, _ in self.predicates.computations(register, index, value)}
        if self._depth < _DEPTH and self._compare(computed):
            self._depth += 1
            name = self.name(register, index, value)
            self._depth -= 1
        return name or (("predicate", self.origins.register(register, index)), value)

    @staticmethod
    def _all(parts: list[tuple[Condition, bool]]) -> Condition:
        """Name the condition that several ones have the values given."""
        flat: set[tuple[Condition, bool]] = set()
        for condition, holds in parts:
            flat.update(parts_of(condition) if holds and parts_of(condition) else [(condition, holds)])
        return ("and", tuple(sorted(flat, key=repr)))


def results_of(condition: Condition) -> Iterator[int]:
    """Return the instructions whose results a comparison compares, each as it is; nothing for other conditions."""
    match condition:
        case ("equal", left, right) | ("less", _, left, right):
            operands: tuple[object, ...] = (left, right)
        case (str(opcode), "", 0, (_, left, right, ("PT" | "UPT", ()))) if "SETP" in opcode:
            operands = (left, right)
        case _:
            return
    for operand in operands:
        match operand:
            case ("_", (("results", (int(index),), False),)) | (
                "_",
                (("of", "VIADD", (("_", (("results", (int(index),), False),)), _)),),
            ):
                yield index


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
