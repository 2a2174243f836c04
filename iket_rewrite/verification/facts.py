# SPDX-License-Identifier: Apache-2.0
"""What a path learns of a function's conditions, where it forgets it, and what follows from it.

Conditions that are tested at one place only, and tell of no other one, are not followed: they are numbered where a path
can make use of them.  A fact is such a number with the value that the condition has on the path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from .conditions import Conditions
from .flow import Flow
from .origins import definitions_in
from .spans import EVERY, Claim, Condition, Span, both, claims_of, parts_of

#: Conditions by number, with the value that each has.
Known = frozenset[tuple[int, bool]]
NOTHING: Known = frozenset()


class Facts:
    """The conditions of a function that paths learn of.

    Args:
        flow: the function.
        names: of its conditions.
        tests: indices of the instructions that test them.

    Attributes:
        tested: by the testing instruction, the condition and the value of it at which the instruction acts.
        forgets: by instruction, the conditions that it changes.
        compared: of conditions that compare one value with a constant, that value.
    """

    def __init__(self, flow: Flow, names: Conditions, tests: Iterable[int]) -> None:
        self.flow, self.names = flow, names
        self.forgets: dict[int, list[int]] = {}
        self.compared: dict[int, object] = {}
        self._learns: dict[int, tuple[int, bool]] = {}
        #: Where a predicate becomes a copy: what it holds, the condition that is copied, whether as it is.
        self._copies: dict[int, tuple[int, int, bool]] = {}
        self._claims: dict[int, tuple[Claim, ...]] = {}
        #: Of conditions that are several at once: each of them with its value; those that have a number.
        self._parts: dict[int, tuple[tuple[int, bool], ...]] = {}
        #: Those of them all of whose parts have one.
        self._whole: set[int] = set()
        self.tested = self._number(sorted(tests))
        self._related = self._relate()
        self.needed = self._needed()

    # --- Numbers --------------------------------------------------------------------------------------------

    def _number(self, tests: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """Number the conditions that are tested at more than one place, and those that tell of one another."""
        found: dict[int, tuple[Condition, bool]] = {}
        predicates = {}
        for index in tests:
            test, named = self.names.predicates.test(index), self.names.named(index)
            if named is not None:
                found[index] = named
            elif test is not None:
                # What has no name of its own is still the same until its predicate is written again.
                found[index] = (("held", test[0]), test[1])
                predicates[test[0]] = self.flow.definitions(test[0])
        held: dict[Condition, Sequence[int]] = {("held", one): indices for one, indices in predicates.items()}
        copied = {one: copy for indices in held.values() for one in indices if (copy := self.names.copied(one))}
        constants = self.names.predicates.constant
        learnt = {one for one, indices in held.items() if any(i in copied or constants(i) is not None for i in indices)}
        numbers = _worth_a_number([condition for condition, _ in (*found.values(), *copied.values())], learnt)
        self._numbers = numbers
        for condition, number in numbers.items():
            self._describe(condition, numbers)
            for index in set(definitions_in(condition)) | set(held.get(condition, ())):
                self.forgets.setdefault(index, []).append(number)
        for condition, definitions in held.items():
            for index in definitions:
                self._define(index, condition, copied.get(index), numbers)
        return {index: (numbers[condition], at) for index, (condition, at) in found.items() if condition in numbers}

    def _describe(self, condition: Condition, numbers: dict[Condition, int]) -> None:
        """Note what a condition says of values, and of other conditions."""
        number = numbers[condition]
        self._claims[number] = claims = claims_of(condition)
        parts = parts_of(condition)
        self._parts[number] = tuple((numbers[part], value) for part, value in parts if part in numbers)
        if parts and len(self._parts[number]) == len(parts):
            self._whole.add(number)
        if claims and not parts:
            self.compared[number] = claims[0][0]

    def _define(
        self, index: int, held: Condition, copied: tuple[Condition, bool] | None, numbers: dict[Condition, int]
    ) -> None:
        """Note what a predicate that has no other name is set to."""
        if held not in numbers:
            return
        constant = self.names.predicates.constant(index)
        if constant is not None:
            self._learns[index] = (numbers[held], constant)
        elif copied is not None and copied[0] in numbers:
            self._copies[index] = (numbers[held], numbers[copied[0]], copied[1])

    def _relate(self) -> dict[int, frozenset[int]]:
        """Return by condition those that tell of it: they share a value or a part; itself is one of them."""
        by_key: dict[object, set[int]] = {}
        keys: dict[int, set[object]] = {}
        for number, claims in self._claims.items():
            keys[number] = {("value", claim[0]) for claim in claims}
            keys[number] |= {("condition", part) for part, _ in self._parts[number]} | {("condition", number)}
            for key in keys[number]:
                by_key.setdefault(key, set()).add(number)
        return {number: frozenset().union(*(by_key[key] for key in keys[number])) for number in keys}

    def _needed(self) -> list[frozenset[int]]:
        """Return the conditions that are of use from each block on: they, or others that they tell of, are tested."""
        uses = {index: self._related[number] for index, (number, _) in self.tested.items()}
        uses |= {index: self._related[source] for index, (_, source, _) in self._copies.items()}
        events = sorted({*uses, *self.forgets}, reverse=True)
        of_block: list[list[int]] = [[] for _ in self.flow.blocks]
        for index in events:
            of_block[self.flow.block_of(index)].append(index)
        needed: list[frozenset[int]] = [frozenset() for _ in self.flow.blocks]
        work = list(range(len(self.flow.blocks)))
        while work:
            number = work.pop()
            live = {one for successor in self.flow.blocks[number].successors for one in needed[successor]}
            for index in of_block[number]:
                live.difference_update(self.forgets.get(index, ()))
                live |= uses.get(index, frozenset())
            if live != needed[number]:
                needed[number] = frozenset(live)
                work += self.flow.blocks[number].predecessors
        return needed

    # --- On a path ------------------------------------------------------------------------------------------

    def behind(self, index: int, known: Known) -> Known:
        """Return what is known behind an instruction that changes conditions."""
        gone = self.forgets[index]
        after = frozenset(fact for fact in known if fact[0] not in gone)
        if index in self._learns:
            after |= {self._learns[index]}
        elif index in self._copies:
            condition, source, same = self._copies[index]
            told = [value for value in (True, False) if not self.possible(known, source, not value)]
            after |= {(condition, value is same) for value in told[:1]}
        return after

    def into(self, block: int, known: Known) -> Known:
        """Return what is of use from a block on."""
        needed = self.needed[block]
        return known if all(fact[0] in needed for fact in known) else frozenset(f for f in known if f[0] in needed)

    def possible(self, known: Known, condition: int, value: bool) -> bool:
        """Say whether a condition can have a value, by what is known."""
        told = dict(known)
        work = [(condition, value)]
        work += [part for one, holds in known if holds for part in self._parts[one]]
        while work:
            one, holds = work.pop()
            if told.setdefault(one, holds) is not holds:
                return False
            if holds:
                work += self._parts[one]
        for one, holds in told.items():
            if not holds and one in self._whole and all(told.get(part) is at for part, at in self._parts[one]):
                return False
        values = {claim[0] for claim in self._claims[condition]}
        return all(self._left(told.items(), tested) for tested in values)

    def decided(self, known: Known, condition: Condition) -> bool:
        """Say whether what is known leaves a condition one value only."""
        number = self._numbers.get(condition)
        return number is not None and not all(self.possible(known, number, value) for value in (True, False))

    def left(self, known: Known, condition: int, value: bool) -> Span:
        """Return what a compared value can be where a condition on it has a value, beside what else is known of it."""
        return self._left((*known, (condition, value)), self.compared[condition])

    def _left(self, facts: Iterable[tuple[int, bool]], tested: object) -> Span:
        left = EVERY
        for number, holds in facts:
            for value, when_true, when_false in self._claims[number]:
                if value == tested:
                    left = both(left, when_true if holds else when_false)
        return left


def _worth_a_number(conditions: Sequence[Condition], learnt: set[Condition]) -> dict[Condition, int]:
    """Number what is met more than once, also as a part, speaks of a value that others speak of, or is `learnt`."""
    often = Counter(conditions)
    values = Counter(claim[0] for condition in often for claim in claims_of(condition))
    for condition in list(often):
        often.update(part for part, _ in parts_of(condition))

    def useful(condition: Condition) -> bool:
        return often[condition] > 1 or condition in learnt

    return {
        condition: number
        for number, condition in enumerate(often)
        if useful(condition)
        or any(useful(part) for part, _ in parts_of(condition))
        or any(values[claim[0]] > 1 for claim in claims_of(condition))
    }
