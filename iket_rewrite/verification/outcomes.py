# SPDX-License-Identifier: Apache-2.0
"""What becomes of the paths through a function: from which points some path still comes right."""

from __future__ import annotations

from functools import cached_property

from .paths import Node, Paths, State, Way


class Outcomes:
    """The outcomes of paths.

    Args:
        paths: every path through a function.
    """

    def __init__(self, paths: Paths) -> None:
        self.paths = paths

    @cached_property
    def safe(self) -> set[Node]:
        """The nodes from which some path comes to its end without a fault, or may where it is not followed."""
        before: dict[Node, list[Node]] = {}
        safe = set()
        for node, ways in self.paths.ways.items():
            for way in ways:
                if way.faults and not self.unfinished(node, way):
                    continue
                if way.to is None:
                    safe.add(node)
                else:
                    before.setdefault(way.to, []).append(node)
        work = list(safe)
        while work:
            for node in before.get(work.pop(), ()):
                if node not in safe:
                    safe.add(node)
                    work.append(node)
        return safe

    @cached_property
    def _lowest(self) -> dict[Node, int]:
        """How few ranges are open at some place that is reached from each node."""
        before: dict[Node, list[Node]] = {}
        for node, ways in self.paths.ways.items():
            for way in ways:
                if way.to is not None:
                    before.setdefault(way.to, []).append(node)
        lowest: dict[Node, int] = {}
        for start in sorted(self.paths.ways, key=lambda node: len(node[1].stack)):
            work = [start]
            while work:
                node = work.pop()
                if node not in lowest:
                    lowest[node] = len(start[1].stack)
                    work += before.get(node, ())
        return lowest

    def unfinished(self, node: Node, way: Way) -> bool:
        """Say whether a way that is followed no further could come right: all that it has open could be closed.

        What a loop opens and no path closes again in its first passes is not closed in later ones: with more ranges
        open below, the code does the same.
        """
        if not way.unfinished:
            return False
        at, state = node
        depths = range(len(state.stack))
        passes = [(at, State(state.stack[:depth], state.tokens, state.facts)) for depth in depths]
        for one in passes:
            opened = [way.to for way in self.paths.ways.get(one, ()) if way.to and _deeper(one, way.to)]
            if opened and all(self._lowest[to] > len(one[1].stack) for to in opened):
                return False
        return True

    def goes_wrong(self, node: Node) -> bool:
        """Say whether no path comes right on some way from a node."""
        return any(self.wrong(node, way) for way in self.paths.ways[node])

    def wrong(self, node: Node, way: Way) -> bool:
        """Say whether no path that goes this way comes right."""
        fails = bool(way.faults) and not self.unfinished(node, way)
        return fails or (way.to is not None and way.to not in self.safe)


def _deeper(node: Node, to: Node) -> bool:
    return len(to[1].stack) > len(node[1].stack)
