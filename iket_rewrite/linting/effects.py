# SPDX-License-Identifier: Apache-2.0
"""What the functions of a file do to the ranges of their callers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..rewriting.annotation import SiteKind
from .flow import Flow
from .parsing import Function, Node
from .paths import Effect, Paths
from .sites import Site

#: How many ranges of the caller a function ends, and how many it leaves open.
Shape = tuple[int, int]
_NOTHING: frozenset[Shape] = frozenset([(0, 0)])


def effect_of(paths: Paths) -> Effect | None:
    """Return what all ways out of a function have in common, or None where they differ."""
    effects = {effect for found in paths.left.values() for effect in found}
    return next(iter(effects)) if len(_shapes(paths)) == 1 else None


def _shapes(paths: Paths) -> frozenset[Shape]:
    return frozenset((len(one.below), len(one.left)) for found in paths.left.values() for one in found)


class Effects:
    """What each helper of a file does to the stack of its caller.

    Attributes:
        known: by name, the effect of the helpers that leave ranges open, or end some, on every path alike.
        classes: of each of these, the names of the classes whose methods it names; "" for a function.
        unknown: the names of helpers of which that depends on something, or on which of several is called.

    Args:
        found: every function of the file.
        owned: the sites of each.
        flows: those whose paths were followed.
        text: the masked text.
        kernels: the offsets at which the bodies of kernels start; no function calls one of them.
    """

    def __init__(
        self,
        found: Iterable[Function],
        owned: Mapping[Function, Collection[Site]],
        flows: Mapping[Function, tuple[Flow, Paths]],
        text: str,
        kernels: frozenset[int],
    ) -> None:
        self.known: dict[str, Effect] = {}
        self.unknown: set[str] = set()
        self.shapes: dict[str, frozenset[Shape]] = {}
        self.everywhere = frozenset(shape for _, paths in flows.values() for shape in _shapes(paths))
        by_name: dict[str, list[Function]] = {}
        for function in found:
            if function.name and function.start not in kernels:
                by_name.setdefault(function.name, []).append(function)
        for name, functions in by_name.items():
            shapes = frozenset[Shape]()
            for one in functions:
                shapes |= _shapes(flows[one][1]) if one in flows else _NOTHING
            if shapes - _NOTHING:
                self.shapes[name] = shapes
            effects = [effect_of(flows[one][1]) for one in functions if one in flows]
            lost = any(one not in flows and _may_matter(owned.get(one, ())) for one in functions)
            chosen = len(shapes) > 1 and all(_is_chosen(*flows[one]) for one in functions if one in flows)
            if lost or (chosen and self._has_counterpart(shapes)):
                self.unknown.add(name)
            elif len(shapes) == 1 and shapes - _NOTHING and effects[0] is not None:
                self.known[name] = effects[0]
        # What a destructor ends depends on what the other methods have left open.
        guards = {_class_at(one) for name in self.shapes if name.startswith("~") for one in by_name[name]} - {None}
        for name in list(self.known):
            if f"~{name}" in self.shapes or any(_class_at(one) in guards for one in by_name[name]):
                del self.known[name]
                self.unknown.add(name)

        self.classes = {name: frozenset(_class_name(one, text) for one in by_name[name]) for name in self.known}

    @property
    def names(self) -> set[str]:
        """Return the names of the helpers that may leave ranges open, or end some."""
        return self.unknown | self.known.keys()

    @property
    def opposed(self) -> bool:
        """Say whether some helpers leave ranges open and others end some."""
        ends = {below > left for shapes in self.shapes.values() for below, left in shapes if below != left}
        return len(ends) > 1

    def has_counterpart(self, function: Function) -> bool:
        """Say whether a helper leaves ranges open that another function may end, or the other way round."""
        return self._has_counterpart(self.shapes.get(function.name, _NOTHING))

    def _has_counterpart(self, shapes: frozenset[Shape]) -> bool:
        return any((left, below) in self.everywhere for below, left in shapes if below != left)

    def is_guard(self, function: Function) -> bool:
        """Say whether a function is a constructor or a destructor whose counterpart does the opposite."""
        other = function.name[1:] if function.name.startswith("~") else f"~{function.name}"
        ours, theirs = self.shapes.get(function.name), self.shapes.get(other)
        return ours is not None and theirs is not None and frozenset((left, below) for below, left in ours) == theirs


def _is_chosen(flow: Flow, paths: Paths) -> bool:
    """Say whether branches decide of every range that a function leaves open, or ends for its caller."""
    effects = [effect for found in paths.left.values() for effect in found]
    points = {point for effect in effects for point in (*effect.below, *effect.left)}
    if len(_shapes(paths)) < 2:
        return True
    return all(any(not one.loop for one in flow.around[point].conditions) for point in points if point in flow.around)


def _class_of(function: Function) -> Node | None:
    """Return the node of the class that a method stands in, or None."""
    node = function.body.parent
    while node is not None and node.type in ("function_definition", "template_declaration"):
        node = node.parent
    return node.parent if node is not None and node.type == "field_declaration_list" else None


def _class_at(function: Function) -> int | None:
    node = _class_of(function)
    return node.start_byte if node is not None else None


def _class_name(function: Function, text: str) -> str:
    node = _class_of(function)
    name = node.child_by_field_name("name") if node is not None else None
    return text[name.start_byte : name.end_byte].partition("<")[0].strip() if name is not None else ""


def _may_matter(sites: Iterable[Site]) -> bool:
    return any(point.kind in (SiteKind.PUSH, SiteKind.POP) for site in sites for point in site.points)
