# SPDX-License-Identifier: Apache-2.0
"""The order of the memory operations of two builds of a kernel: the same, or what moved, came and went.

Registers differ between builds, so an operation is known by its opcode and its source line; where not both binaries
have lines, by its opcode and the constant in its address; where even those are others, by its opcode alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from .instruction_classes import InstructionClass, classify
from .sass import Instruction

#: By space, the classes whose operations it orders; a copy reads one and writes the other.
SPACES = {
    "global": (InstructionClass.GLOBAL, InstructionClass.GENERIC, InstructionClass.COPY),
    "shared": (InstructionClass.SHARED, InstructionClass.GENERIC, InstructionClass.COPY),
    "global and shared": (
        InstructionClass.GLOBAL,
        InstructionClass.SHARED,
        InstructionClass.GENERIC,
        InstructionClass.COPY,
    ),
}
_OFFSET = re.compile(r"\[[^\]]*?(-?0x[0-9a-f]+)\](?!.*\[)")
_LOAD = re.compile(r"LD(G|S|SM|GMC)?\b")
#: Beyond it the first difference is named and no more: finding the shortest way takes the square of it.
_MOST_COMPARED = 3000


@dataclass(frozen=True, slots=True)
class OrderChange:
    """One operation that stands elsewhere.

    Attributes:
        kind: "moved", "added", "gone", or "from here on" where there are too many to tell apart.
        operation: what it is known by.
        before, after: its place among the operations, from 0; None where it is not there.
    """

    kind: str
    operation: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Order:
    """The operations of one space in two builds.

    Attributes:
        space: "global", "shared", or both together.
        before, after: how many there are.
        known_by: "line", "offset" or "opcode".
        changes: what differs; empty where the order is the same.
        loads_only: what differs are places of loads among loads: none passed a store, a copy or an atomic operation.
    """

    space: str
    before: int
    after: int
    known_by: str
    changes: tuple[OrderChange, ...]
    loads_only: bool

    @property
    def same(self) -> bool:
        """Say whether the same operations stand in the same order."""
        return not self.changes


def compare_orders(before: Sequence[Instruction], after: Sequence[Instruction]) -> tuple[Order, ...]:
    """Compare two builds of a kernel, space by space; of the instrumented one without what is the events' own."""
    found = []
    for space, classes in SPACES.items():
        pair = [[one for one in code if classify(one) in classes] for code in (before, after)]
        known_by, name = _naming(*pair)
        old, new = ([name(one) for one in operations] for operations in pair)
        if known_by == "line":
            _shorten(old, new)
        changes = tuple(_changes(old, new))
        loads_only = bool(changes) and _between_stores(old) == _between_stores(new)
        found.append(Order(space, len(old), len(new), known_by, changes, loads_only))
    return tuple(found)


def _naming(before: list[Instruction], after: list[Instruction]) -> tuple[str, Callable[[Instruction], str]]:
    """Choose what operations are known by: the most telling of what both builds have."""
    if (before or after) and all(one.line for one in (*before, *after)):
        # What NVRTC compiles has a name of the moment: then the numbers of the lines have to do.
        named = {*_files(before)} == {*_files(after)}
        return "line", _with_lines if named else _with_numbers
    if Counter(map(_with_offset, before)) == Counter(map(_with_offset, after)):
        return "offset", _with_offset
    return "opcode", lambda one: one.opcode


def _shorten(old: list[str], new: list[str]) -> None:
    """Leave out where code was inlined for those operations of which ptxas wrote it down in one build only."""
    often = Counter(old), Counter(new)
    whole: dict[str, set[str]] = {}
    for name in {*old, *new}:
        whole.setdefault(name.split(" < ", 1)[0], set()).add(name)
    short = {
        start
        for start, names in whole.items()
        if start in names and any(often[0][one] != often[1][one] for one in names)
    }
    for names in (old, new):
        names[:] = [start if (start := name.split(" < ", 1)[0]) in short else name for name in names]


def _files(operations: list[Instruction]) -> Iterator[str]:
    return (file.rpartition("/")[2] for one in operations for file, _ in one.chain)


def _with_lines(one: Instruction) -> str:
    return f"{one.opcode} " + " < ".join(f"{file.rpartition('/')[2]}:{line}" for file, line in one.chain)


def _with_numbers(one: Instruction) -> str:
    return f"{one.opcode} line " + " < ".join(str(line) for _, line in one.chain)


def _with_offset(one: Instruction) -> str:
    found = _OFFSET.search(one.operands)
    return f"{one.opcode} +{found.group(1)}" if found else one.opcode


def _between_stores(operations: list[str]) -> list[Counter[str] | str]:
    """Return what is no load, in its order, and between each two the loads, whatever their order."""
    found: list[Counter[str] | str] = [Counter()]
    for operation in operations:
        loads = found[-1]
        if _LOAD.match(operation) and isinstance(loads, Counter):
            loads[operation] += 1
        else:
            found += [operation, Counter()]
    return found


def _changes(before: list[str], after: list[str]) -> list[OrderChange]:
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    if first == len(before) == len(after):
        return []
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    if max(len(old), len(new)) > _MOST_COMPARED:
        return [OrderChange("from here on", (old or new)[0], first, first)]
    gone: list[tuple[str, int]] = []
    added: dict[str, list[int]] = {}
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            gone += [(old[at], first + at) for at in range(i, j)]
            for at in range(k, m):
                added.setdefault(new[at], []).append(first + at)
    changes = []
    for operation, at in gone:
        places = added.get(operation)
        to = places.pop(0) if places else None
        changes.append(OrderChange("gone" if to is None else "moved", operation, at, to))
    changes += [OrderChange("added", operation, None, at) for operation, rest in added.items() for at in rest]
    return sorted(changes, key=lambda one: one.before if one.before is not None else one.after or 0)
