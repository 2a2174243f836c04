# SPDX-License-Identifier: Apache-2.0
"""Random kernels whose ranges stand under conditions, and an interpreter that says whether they pair up.

Half of the kernels pair up by the way they are drawn: what is opened under a condition is closed under it, in another
spelling at times, or by a flag.  The others lose one end.  The interpreter runs a kernel as one warp on the CPU, with
values drawn at random many times over; it knows nothing of machine code, so where iket-verify says otherwise, it errs.

Run: python tests/verify/conditional_programs.py FIRST LAST    the verdicts on the kernels of these numbers
"""

from __future__ import annotations

import operator
import random
import sys
from collections import Counter
from typing import Any

#: Trees of tuples: the first element says what it is.
Node = tuple[Any, ...]

ROUNDS = 6000
COMPARISONS = {
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
}
PARAMETERS = (-3, -2, -1, *range(10), 512, 513, 514, 515, 1027)
HEAD = """#include <iket_rewrite/iket.cuh>
extern "C" __global__ void k(volatile int* o, int n, int m) {
const int w = WARP;
const bool c0 = o[0] > n, c1 = o[1] > n, c2 = o[2] > n, c3 = o[3] > n;
const float f0 = ((volatile float*)o)[9], f1 = ((volatile float*)o)[10];
"""
WARPS = ("threadIdx.x / 32", "__shfl_sync(~0u, threadIdx.x / 32, 0)")


class Drawn:
    """One kernel, drawn from a number.

    Attributes:
        body: its statements.
        text: its source.
    """

    def __init__(self, number: int) -> None:
        self.random = random.Random(number)
        self.names = self.flags = self.loops = self.works = 0
        self.body = self._block(0)
        if self.random.random() < 0.5:
            self._lose_an_end()
        self.text = HEAD.replace("WARP", self.random.choice(WARPS)) + self._printed(self.body) + "}\n"

    def pairs_up(self, rounds: int = ROUNDS) -> bool:
        """Run it with values at random."""
        return all(Run(self.random).pairs_up(self.body) for _ in range(rounds))

    # --- Drawing --------------------------------------------------------------------------------------------

    def _condition(self, depth: int = 0) -> Node:
        number = self.random.randrange
        kinds = {
            "warp is": lambda: ("compare", "w", "==", number(8)),
            "warp": lambda: ("compare", "w", self.random.choice(("<", ">", "!=", ">=")), number(1, 8)),
            "parameter": lambda: ("compare", "n", self.random.choice(("<", ">", "==")), number(8)),
            "bit": lambda: ("bit", self.random.choice((1, 2, 512))),
            "memory": lambda: ("value", f"c{number(4)}"),
            "float": lambda: ("value", f"f{number(2)} > 2.5f"),
            "turn": lambda: ("value", f"turn{number(2)}" if self.loops else "c0"),
        }
        if depth == 0:
            kinds |= {
                "and": lambda: ("and", self._condition(1), self._condition(1)),
                "or": lambda: ("or", self._condition(1), self._condition(1)),
                "not": lambda: ("not", self._condition(1)),
            }
        return kinds[self.random.choice(list(kinds))]()

    def _same(self, condition: Node) -> Node:
        if condition[0] == "and" and self.random.random() < 0.5:
            return ("and", condition[2], condition[1])
        return ("not", ("not", condition)) if self.random.random() < 0.2 else condition

    def _block(self, depth: int) -> list[Node]:
        return [one for _ in range(self.random.randrange(1, 4 if depth else 6)) for one in self._statements(depth)]

    def _statements(self, depth: int) -> list[Node]:
        kinds = ["work", "work", "scope", "scope"]
        if depth <= 2:
            kinds += ["condition"] * 3 + ["branch", "loop", "flag"]
        if depth == 0:
            kinds += ["return"]
        inside = self._block(depth + 1) if depth < 2 and self.random.random() < 0.6 else []
        condition = self._condition()
        match self.random.choice(kinds):
            case "scope":
                return [self._push(), ("work",), *inside, ("pop",)]
            case "condition":
                closed = ("if", self._same(condition), [("pop",)], [])
                return [("if", condition, [self._push()], []), ("work",), *inside, closed]
            case "branch":
                return [("if", condition, self._block(depth + 1), inside)]
            case "loop" if not self.loops:
                self.loops = 1
                body = self._block(depth + 1)
                self.loops = 0
                return [("loop", body)]
            case "flag":
                self.flags += 1
                flag = f"flag{self.flags}"
                opened = ("if", condition, [self._push(), ("set", flag)], [])
                return [("flag", flag), opened, ("work",), *inside, ("if", ("value", flag), [("pop",)], [])]
            case "return" if not self.loops:
                return [("if", condition, [("return",)], [])]
        return [("work",)]

    def _push(self) -> Node:
        self.names += 1
        return ("push", f"r{self.names}")

    def _lose_an_end(self) -> None:
        found: list[tuple[list[Node], int]] = []

        def look(block: list[Node]) -> None:
            for index, node in enumerate(block):
                if node[0] in ("push", "pop"):
                    found.append((block, index))
                for part in node:
                    if isinstance(part, list):
                        look(part)

        look(self.body)
        if found:
            block, index = self.random.choice(found)
            block[index] = ("work",)

    # --- Printing -------------------------------------------------------------------------------------------

    def _printed(self, block: list[Node]) -> str:
        return "".join(f"{self._line(node)}\n" for node in block)

    def _line(self, node: Node) -> str:
        match node:
            case ("push", name):
                return f'IKET_RANGE_PUSH("{name}");'
            case ("pop",):
                return "IKET_RANGE_POP();"
            case ("flag", name):
                return f"bool {name} = false;"
            case ("set", name):
                return f"{name} = true;"
            case ("return",):
                return "return;"
            case ("if", condition, body, other):
                rest = f" else {{ {self._printed(other)} }}" if other else ""
                return f"if ({_expression(condition)}) {{ {self._printed(body)} }}{rest}"
            case ("loop", body):
                turns = "const bool turn0 = o[j + 400] > 3, turn1 = o[j + 600] > n;"
                return f"for (int j = 0; j < m; ++j) {{ {turns}\n{self._printed(body)} }}"
        self.works += 1
        return f"o[{200 + self.works}] = n * {self.works};"


def _expression(condition: Node) -> str:
    match condition:
        case ("compare", name, how, number):
            return f"{name} {how} {number}"
        case ("bit", bit):
            return f"(n & {bit})"
        case ("not", one):
            return f"!({_expression(one)})"
        case ("and", one, other):
            return f"({_expression(one)} && {_expression(other)})"
        case ("or", one, other):
            return f"({_expression(one)} || {_expression(other)})"
    return condition[1]


class _Fault(Exception):
    """A pop with nothing open."""


class _Returned(Exception):
    """The kernel returned."""


class Run:
    """One run of a kernel with values of its own."""

    def __init__(self, drawing: random.Random) -> None:
        self.random = drawing
        self.numbers = {"w": drawing.randrange(16), "n": drawing.choice(PARAMETERS)}
        self.turns = drawing.randrange(4)
        self.values = {name: drawing.random() < 0.5 for name in ("c0", "c1", "c2", "c3", "f0 > 2.5f", "f1 > 2.5f")}
        self.open = 0

    def pairs_up(self, body: list[Node]) -> bool:
        try:
            self._run(body)
        except _Returned:
            pass
        except _Fault:
            return False
        return self.open == 0

    def _run(self, block: list[Node]) -> None:
        for node in block:
            match node:
                case ("push", _):
                    self.open += 1
                case ("pop",):
                    self.open -= 1
                    if self.open < 0:
                        raise _Fault
                case ("flag", name):
                    self.values[name] = False
                case ("set", name):
                    self.values[name] = True
                case ("return",):
                    raise _Returned
                case ("if", condition, body, other):
                    self._run(body if self._holds(condition) else other)
                case ("loop", body):
                    for _ in range(self.turns):
                        self.values |= {name: self.random.random() < 0.5 for name in ("turn0", "turn1")}
                        self._run(body)

    def _holds(self, condition: Node) -> bool:
        match condition:
            case ("compare", name, how, number):
                return COMPARISONS[how](self.numbers[name], number)
            case ("bit", bit):
                return bool(self.numbers["n"] & bit)
            case ("not", one):
                return not self._holds(one)
            case ("and", one, other):
                return self._holds(one) and self._holds(other)
            case ("or", one, other):
                return self._holds(one) or self._holds(other)
        return self.values[condition[1]]


def verdict(text: str, arch: str) -> str:
    """Return what iket-verify says: "paired", "unbalanced", "undecided"; or the rules that are broken."""
    from toolbox import nvrtc

    import iket_rewrite

    report = iket_rewrite.verify(nvrtc(iket_rewrite.rewrite(text).text, arch))
    rules = {finding.rule for finding in report.findings} - {"empty-range", "unused-event", "no-trigger"}
    words = {"unbalanced-range": "unbalanced", "not-decided": "undecided"}
    return " ".join(sorted(words.get(rule, rule) for rule in rules)) or "paired"


def main(first: int, last: int) -> None:
    """Print the verdicts on kernels, and those that are wrong."""
    told: Counter[tuple[str, str]] = Counter()
    for number in range(first, last):
        drawn = Drawn(number)
        if not drawn.names:
            continue
        truth = "paired" if drawn.pairs_up() else "unbalanced"
        for arch in ("sm_90a", "sm_100a"):
            said = verdict(drawn.text, arch)
            told[truth, said] += 1
            if said not in (truth, "undecided"):
                print(f"kernel {number}, {arch}: {said}, and is {truth}", flush=True)
    for (truth, said), count in sorted(told.items()):
        print(f"{truth}: {count} told {said}")


if __name__ == "__main__":
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main(*map(int, sys.argv[1:3]))
