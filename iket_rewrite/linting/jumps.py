# SPDX-License-Identifier: Apache-2.0
"""Build the graph of a function: scoped ranges, which end with their block, and jumps, which leave blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from .expressions import Expressions
from .flow import Step, StepKind, Undecided
from .macros import Exits
from .parsing import Node
from .sites import Point
from .steps import Ends, Reading


@dataclass(slots=True)
class Target:
    """Where a jump goes: the dangling ends that it leaves, and how many scoped ranges are open there."""

    scopes: int
    ends: Ends = field(default_factory=list)


@dataclass(slots=True)
class Label:
    """A label: its step, and the scoped ranges that are open at it."""

    step: int
    scopes: tuple[Point, ...]


class Jumps(Expressions):
    """The part of a build that knows scopes and jumps."""

    def __init__(self, reading: Reading) -> None:
        super().__init__(reading)
        self.scopes: list[Point] = []
        self.breaks: list[Target] = []
        self.continues: list[Target] = []
        self.labels: dict[str, Label] = {}
        self.gotos: list[tuple[str, Ends, tuple[Point, ...], int]] = []
        self.loops = 0

    def visit(self, node: Node) -> None:
        """Add a statement."""
        raise NotImplementedError

    def _scoped(self, work: Callable[[], object]) -> None:
        """Add statements whose scoped ranges end behind them."""
        before = len(self.scopes)
        work()
        self._close(before)
        del self.scopes[before:]

    def _close(self, keep: int) -> None:
        """End the scoped ranges that are open, but for the first `keep`."""
        for point in reversed(self.scopes[keep:]):
            self._add(Step(StepKind.CLOSE, point.start, point))

    def _break(self, node: Node) -> None:
        self._jump_from(self.breaks)

    def _continue(self, node: Node) -> None:
        self._jump_from(self.continues)

    def _jump_from(self, targets: list[Target]) -> None:
        if not targets:
            raise Undecided("a jump leaves no loop")
        self._close(targets[-1].scopes)
        targets[-1].ends += self.ends
        self.ends = []

    def _return(self, node: Node) -> None:
        for child in node.named_children:
            self._expression(child)
        self._leave(node.start_byte, "return")

    def _leave(self, at: int, how: str) -> None:
        self._close(0)
        self._add(Step(StepKind.LEAVE, at, name=how))
        self.ends = []

    def _goto(self, node: Node) -> None:
        label = node.child_by_field_name("label")
        if label is None:
            raise Undecided("a goto has no label")
        self.gotos.append((self.text_of(label), self.ends, tuple(self.scopes), node.start_byte))
        self.ends = []

    def _labeled(self, node: Node) -> None:
        label = node.child_by_field_name("label")
        name = self.text_of(label) if label is not None else ""
        self.labels[name] = Label(self._add(Step(StepKind.JOIN, node.start_byte)), tuple(self.scopes))
        for child in node.named_children:
            if label is None or child.id != label.id:
                self.visit(child)

    def _link(self, name: str, ends: Ends, scopes: tuple[Point, ...], at: int) -> None:
        label = self.labels.get(name)
        if label is None:
            raise Undecided(f"the label {name} was not found")
        shared = 0
        while shared < min(len(scopes), len(label.scopes)) and scopes[shared] is label.scopes[shared]:
            shared += 1
        self.ends, self.scopes = ends, list(scopes)
        self._close(shared)
        if (loop := self._backwards(label, at)) is not None:
            self._add(Step(StepKind.AGAIN, at, loop=loop))
        self._connect(label.step)

    def _backwards(self, label: Label, at: int) -> int | None:
        """Return the number of the loop that a goto to an earlier label makes, or None for one that goes forward."""
        step = self.flow.steps[label.step]
        if step.at >= at:
            return None
        if step.loop < 0:
            step.loop, self.loops = self.loops, self.loops + 1
            step.kind = StepKind.ENTER
        return step.loop

    def left(self, exits: Exits, at: int) -> None:
        """Add the ways out of code that is not part of the tree: of a macro, or of what is given to one."""
        for kind in sorted(exits.kinds):
            before = list(self.ends)
            if kind == "return":
                self._leave(at, "return")
            elif kind in ("break", "continue"):
                self._jump_from(self.breaks if kind == "break" else self.continues)
            elif kind.startswith("goto "):
                self.gotos.append((kind[5:], before, tuple(self.scopes), at))
            self.ends = before
        if exits.sure:
            self.ends = []

    def opened(self, point: Point) -> None:
        """Note a scoped range, whose end its block brings."""
        self.scopes.append(point)

    def closed(self, point: Point) -> None:
        """Note that the block of a scoped range ends."""
        self._add(Step(StepKind.CLOSE, point.start, point))
        self.scopes.remove(point)
