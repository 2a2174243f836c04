# SPDX-License-Identifier: Apache-2.0
"""A function's graph with what its instructions write, and which of their results an instruction can read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property

from .graph import Graph
from .operands import written


def opposite(guard: str) -> str:
    """Return the guard of what acts where another one does not: "@!P0" for "@P0"."""
    return guard.replace("!", "") if "!" in guard else guard.replace("@", "@!")


class Flow(Graph):
    """A function's instructions with their graph and their results."""

    @cached_property
    def results(self) -> list[tuple[str, ...]]:
        """What each instruction may write."""
        return [written(instruction) for instruction in self.instructions]

    @cached_property
    def _definitions(self) -> dict[str, list[int]]:
        definitions: dict[str, list[int]] = {}
        for index, results in enumerate(self.results):
            for register in results:
                definitions.setdefault(register, []).append(index)
        return definitions

    @cached_property
    def _reached(self) -> dict[tuple[str, int], tuple[frozenset[int], bool]]:
        return {}

    def definitions(self, register: str) -> Sequence[int]:
        """Return every instruction that may write a register."""
        return self._definitions.get(register, ())

    def reaching(
        self, register: str, before: int, certain: Callable[[int, int], bool] | None = None
    ) -> tuple[frozenset[int], bool]:
        """Return the instructions whose result a register can hold when an instruction reads it.

        The flag says that the register can also hold what it held on entry.

        Args:
            register: its name.
            before: index of the reading instruction.
            certain: says of an instruction and a reader whether the one has been executed wherever the other is; left
                out, `certain` of this class.
        """
        if certain is not None:
            return self._reaching(register, before, certain)
        if (register, before) not in self._reached:
            self._reached[register, before] = self._reaching(register, before, self.certain)
        return self._reached[register, before]

    def _reaching(self, register: str, before: int, certain: Callable[[int, int], bool]) -> tuple[frozenset[int], bool]:
        positions = self._definitions.get(register, [])
        found: set[int] = set()
        entry = False
        seen: set[tuple[int, str]] = set()
        work = [(self.block_of(before), before, "")]
        while work:
            number, limit, guard = work.pop()
            block = self.blocks[number]
            index = bisect_left(positions, limit)
            while index > 0 and positions[index - 1] >= block.start:
                index -= 1
                if guard and self._under(opposite(guard), positions[index], limit):
                    continue
                found.add(positions[index])
                if certain(positions[index], before) or (guard and self._under(guard, positions[index], limit)):
                    break
            else:
                if not block.predecessors:
                    entry = True
                for predecessor in block.predecessors:
                    guard = self._guard(predecessor, number)
                    if (predecessor, guard) not in seen:
                        seen.add((predecessor, guard))
                        work.append((predecessor, self.blocks[predecessor].end, guard))
        return frozenset(found), entry

    def _guard(self, number: int, successor: int) -> str:
        """Return the predicate that holds where a block is left for a successor, as it would guard an instruction."""
        last = self.blocks[number].end - 1
        predicate = self.instructions[last].predicate
        targets = self.targets(last)[0]
        taken = self.blocks[successor].start in targets
        if not predicate or not targets or (taken and successor == number + 1):
            return ""
        if taken:
            return predicate
        alone = len(self.instructions[last].operands.split(",")) == 1
        return opposite(predicate) if alone else ""

    def _under(self, guard: str, index: int, limit: int) -> bool:
        """Say whether an instruction is under a predicate that is not written from there on to a place."""
        positions = self._definitions.get(guard.lstrip("@!"), [])
        same = self.instructions[index].predicate == guard
        return same and bisect_left(positions, index) == bisect_left(positions, limit)

    def certain(self, index: int, reader: int) -> bool:
        """Say whether an instruction has been executed wherever a reader behind it is.

        A predicated one counts as that where the reader has the same predicate, and nothing in between writes it.
        """
        predicate = self.instructions[index].predicate
        if not predicate:
            return True
        if predicate != self.instructions[reader].predicate:
            return False
        positions = self._definitions.get(predicate.lstrip("@!"), [])
        return index < reader and bisect_left(positions, index) == bisect_left(positions, reader)
