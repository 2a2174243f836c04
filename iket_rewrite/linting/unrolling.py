# SPDX-License-Identifier: Apache-2.0
"""How often `#pragma unroll` repeats the body of a loop, where constants tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable

from ..rewriting.tokens import skip_blank, without_comments
from .masking import Directive
from .parsing import Node

_CONSTANT = re.compile(r"\bconstexpr\b[\w\s:]*?\b(\w+)\s*=\s*([^;,{}]+);")
_UNROLL = re.compile(r"\s*(?:unroll|nv_unroll|GCC\s+unroll)\b\s*\(?([^()]*)\)?")
_HEAD = re.compile(r"for\s*\(([^;{}]*);([^;{}]*);")
_START = re.compile(r"(\w+)\s*=\s*(.+)\Z")
_BOUND = re.compile(r"(\w+)\s*(<=|<|!=)\s*(.+)\Z")
_STEP = re.compile(r"(\w+)\s*\+=\s*(.+)\Z")
_SUFFIX = re.compile(r"(?<=\d)[uUlL]+\b")
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
}
_LONGEST, _LARGEST = 200, 1 << 31


class Unrolling:
    """The loops with `#pragma unroll` in one text.

    Args:
        text: the masked text.
        original: the text itself.
        directives: the directives of the text.
    """

    def __init__(self, text: str, original: str, directives: Iterable[Directive]) -> None:
        self.original = original
        self.constants: dict[str, str] = dict(_CONSTANT.findall(without_comments(original)))
        self.pragmas: dict[int, str] = {}
        for one in directives:
            if one.word == "define" and (words := one.rest.split(None, 1))[1:]:
                self.constants.setdefault(words[0], words[1])
            found = _UNROLL.match(one.rest) if one.word == "pragma" else None
            if found is not None:
                self.pragmas[skip_blank(text, one.end)] = found.group(1).strip()

    def copies(self, loop: Node) -> int:
        """Return how often the body is repeated; 1 where that is not known."""
        asked = self.pragmas.get(loop.start_byte)
        if asked is None or loop.type != "for_statement":
            return 1
        trips = self._trips(loop)
        if trips is None:
            return 1
        limit = self.value(asked) if asked else None
        return max(1, min(trips, limit) if limit is not None else trips if not asked else 1)

    def _trips(self, loop: Node) -> int | None:
        head = _HEAD.match(self.original, loop.start_byte, loop.end_byte)
        update = loop.child_by_field_name("update")
        if head is None or update is None:
            return None
        first, bound = _START.search(head.group(1).strip()), _BOUND.search(head.group(2).strip())
        if first is None or bound is None:
            return None
        begin, end = self.value(first.group(2)), self.value(bound.group(3))
        text = self.original[update.start_byte : update.end_byte].strip()
        step = _STEP.match(text)
        width = self.value(step.group(2)) if step is not None else 1 if "++" in text else None
        if begin is None or end is None or not width or width < 0:
            return None
        return max(0, -(-(end + (bound.group(2) == "<=") - begin) // width))

    def value(self, text: str, depth: int = 0) -> int | None:
        """Return the value of a constant expression of integers, or None."""
        text = _SUFFIX.sub("", text.strip())
        if len(text) > _LONGEST or depth > 8:
            return None
        names = {
            name: self.value(self.constants[name], depth + 1) for name in _WORD.findall(text) if name in self.constants
        }
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return _evaluated(tree.body, names)


def _evaluated(node: ast.expr, names: dict[str, int | None]) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluated(node.left, names), _evaluated(node.right, names)
        if left is None or right is None or (not right and isinstance(node.op, (ast.Div, ast.Mod))):
            return None
        value = _OPERATORS[type(node.op)](left, right)
        return value if abs(value) < _LARGEST else None
    return None
