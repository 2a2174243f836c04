# SPDX-License-Identifier: Apache-2.0
"""The values of constants in one text, as they are seen from one place of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from .macros import definitions
from .masking import Directive
from .parsing import Node

_DEFINED = re.compile(
    r"\bconst(?:expr|eval|init)?\b[\w\s:]*?\b([A-Za-z_]\w*)\s*(?:=\s*([^;,{}]+)|\{([^;{}]*)\})(?=\s*[;,])"
)
_ENUM = re.compile(r"\benum\b[^{};()]*\{([^{}]*)\}")
_ENUMERATOR = re.compile(r"([A-Za-z_]\w*)\s*=\s*([^,]+)")
_SUFFIX = re.compile(r"(?<=\d)[uUlL]+\b")
_NAME = re.compile(r"(?:[A-Za-z_]\w*\s*(?:<[\w\s,]*>)?\s*::\s*)*[A-Za-z_]\w*")
_SEPARATOR, _NUMBER = re.compile(r"(?<=\d)'(?=\d)"), re.compile(r"(?<!\w)\d\w*")
_PLAIN = re.compile(r"(?:\d+|0[xX][0-9a-fA-F]+|0[bB][01]+)\Z")
_BRACE = re.compile(r"[{}]")
_MOST_SHIFTED = 62
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left // right,
    ast.Mod: lambda left, right: left % right,
    ast.LShift: lambda left, right: left << right,
    ast.RShift: lambda left, right: left >> right,
    ast.BitOr: lambda left, right: left | right,
    ast.BitAnd: lambda left, right: left & right,
}
_LONGEST, _LARGEST, _DEEPEST = 200, 1 << 31, 8
#: What gives a name another meaning than the file's constant: parameters of templates, functions and lambdas.
_HEADS = {"template_declaration": "parameters", "function_definition": "declarator", "lambda_expression": "declarator"}


class Constants:
    """The constants of one text.

    Args:
        text: the masked text; names of constants and their values are as in the original.
        directives: the directives of the text.
    """

    def __init__(self, text: str, directives: Iterable[Directive]) -> None:
        self.text = text
        directives = tuple(directives)
        #: By name, where each definition stands and its text; macros are seen everywhere.
        self.found: dict[str, list[tuple[int, str]]] = {}
        for one in _DEFINED.finditer(text):
            self.found.setdefault(one.group(1), []).append((one.start(), one.group(2) or one.group(3) or ""))
        for body in _ENUM.finditer(text):
            for one in _ENUMERATOR.finditer(body.group(1)):
                self.found.setdefault(one.group(1), []).append((body.start(), one.group(2)))
        self.ends: dict[int, int] = {}
        self.macros: dict[str, set[str]] = {}
        for macro in definitions(directives):
            self.macros.setdefault(macro.name, set()).add(macro.body.partition("//")[0].strip())

    def value(self, text: str, at: Node | None = None, depth: int = 0) -> int | None:
        """Return the value of a constant expression of integers, or None; `at` is from where it is seen."""
        text = _SUFFIX.sub("", _SEPARATOR.sub("", text.strip()))
        if len(text) > _LONGEST or depth > _DEEPEST:
            return None
        names: dict[str, int | None] = {}

        def told(match: re.Match[str]) -> str:
            name = f"n{len(names)}_"
            names[name] = self._named("".join(match.group().split()), at, depth + 1)
            return name

        plain = re.sub(r"(?<![\w.])" + _NAME.pattern, told, text)
        # Python warns of a number that letters follow, and reads on.
        if not all(map(_PLAIN.match, _NUMBER.findall(plain))):
            return None
        try:
            tree = ast.parse(plain.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return _evaluated(tree.body, names)

    def _named(self, name: str, at: Node | None, depth: int) -> int | None:
        last = name.rpartition("::")[2]
        if last in self.macros:
            values = self.macros[last]
        elif "::" in name or at is None:
            values = {text for _, text in self.found.get(last, ())}
        else:
            seen = self._seen(last, at)
            values = {seen} if seen is not None else set()
        results = {self.value(text, at, depth) for text in values}
        return results.pop() if len(results) == 1 else None

    def _seen(self, name: str, at: Node) -> str | None:
        """Return the text of the innermost definition of a name that stands before a node and is seen from it."""
        for start, text in reversed(self.found.get(name, ())):
            if start < at.start_byte < self._block_end(start):
                return None if any(_holds(head, name) for head in self._heads(at, start)) else text
        return None

    def _block_end(self, start: int) -> int:
        """Return where the block ends that holds an offset."""
        if start not in self.ends:
            depth, end = 0, len(self.text)
            for brace in _BRACE.finditer(self.text, start):
                depth += 1 if brace.group() == "{" else -1
                if depth < 0:
                    end = brace.start()
                    break
            self.ends[start] = end
        return self.ends[start]

    def _heads(self, at: Node, start: int) -> Iterator[str]:
        """Yield the parameters of what stands around a node and does not hold an offset."""
        node = at.parent
        while node is not None and node.start_byte > start:
            head = node.child_by_field_name(_HEADS[node.type]) if node.type in _HEADS else None
            if head is not None:
                yield self.text[head.start_byte : head.end_byte]
            node = node.parent


def _holds(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _evaluated(node: ast.expr, names: Mapping[str, int | None]) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _evaluated(node.operand, names)
        return -value if value is not None else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluated(node.left, names), _evaluated(node.right, names)
        if left is None or right is None or (not right and isinstance(node.op, (ast.Div, ast.Mod))):
            return None
        if isinstance(node.op, (ast.LShift, ast.RShift)) and not 0 <= right <= _MOST_SHIFTED:
            return None
        value = _OPERATORS[type(node.op)](left, right)
        return value if abs(value) < _LARGEST else None
    return None
