# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a source, by tree-sitter-cuda, and the functions and lambdas in it."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..errors import ToolError

#: A node of the tree; the package brings no types that a checker without it could see.
Node = Any

_INSTALL = "pip install 'iket-rewrite[lint]'"
#: How long a parse may take, and how much of the text is handed over at a time.
_PATIENCE_S, _AT_ONCE = 15.0, 1 << 16
_LAST_NAME = re.compile(r"(~?[A-Za-z_$][\w$]*)\s*(?:<[^()]*>)?\s*\Z")
_FUNCTIONS = ("function_definition", "lambda_expression", "constructor_or_destructor_definition")
_HOLDERS = frozenset(
    [
        "translation_unit",
        "namespace_definition",
        "declaration_list",
        "linkage_specification",
        "template_declaration",
        "class_specifier",
        "struct_specifier",
        "union_specifier",
        "field_declaration_list",
        "declaration",
        "ERROR",
    ]
)


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """One function or lambda with a body.

    Attributes:
        name: its last name, or "" where it has none.
        start, end: the span of its body.
        body: the node of its body.
        faulty: something in the body could not be parsed.
    """

    name: str
    start: int
    end: int
    body: Node
    faulty: bool


@lru_cache(maxsize=1)
def _parser() -> Any:
    try:
        import tree_sitter
        import tree_sitter_cuda
    except ImportError as missing:
        raise ToolError(f"linting needs the package {missing.name}", remedy=_INSTALL) from None
    try:
        return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))
    except (TypeError, ValueError) as error:
        raise ToolError(f"tree-sitter and tree-sitter-cuda do not fit together: {error}", remedy=_INSTALL) from None


def parse(text: str) -> Node | None:
    """Return the root of the tree of masked text, whose offsets are the text's; None where that takes too long.

    Raises:
        ToolError: tree-sitter is not installed.
    """
    parser, data = _parser(), memoryview(text.encode("ascii"))
    # Text that is no code takes a hundred times longer than code.
    end = time.monotonic() + _PATIENCE_S
    try:
        tree = parser.parse(
            lambda offset, _: data[offset : offset + _AT_ONCE], progress_callback=lambda *_: time.monotonic() > end
        )
    except ValueError:
        tree = None
    if tree is None:
        parser.reset()
        return None
    return tree.root_node


def functions(root: Node, text: str, offsets: Sequence[int]) -> list[Function]:
    """Return the functions that hold one of the offsets, innermost behind outermost, and those without a site too."""
    found: list[Function] = []
    pending = [(root, False)]
    while pending:
        node, within = pending.pop()
        inside = within and node.type != "field_declaration_list"
        body = node.child_by_field_name("body") if node.type in _FUNCTIONS else None
        # A macro that heads a block looks like a function, where none can be.
        if body is not None and not (inside and node.type == "function_definition"):
            found.append(Function(_name(node, text), body.start_byte, body.end_byte, body, body.has_error))
            inside = True
        elif node.type in _HOLDERS:
            pending += ((child, inside) for child in reversed(node.named_children))
            continue
        if holds(offsets, node.start_byte, node.end_byte):
            pending += ((child, inside) for child in reversed(node.named_children))
    return found


def holds(offsets: Sequence[int], start: int, end: int) -> bool:
    """Say whether one of the sorted offsets lies in the span."""
    index = bisect_left(offsets, start)
    return index < len(offsets) and offsets[index] < end


def _name(node: Node, text: str) -> str:
    if node.type == "lambda_expression":
        parent = node.parent
        declarator = parent.child_by_field_name("declarator") if parent is not None else None
        if parent is None or parent.type != "init_declarator" or declarator is None:
            return ""
        found = _LAST_NAME.search(text[declarator.start_byte : declarator.end_byte])
        return found.group(1) if found else ""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        inner = declarator.child_by_field_name("declarator")
        declarator = inner or next((child for child in declarator.named_children if "declarator" in child.type), None)
    inner = declarator.child_by_field_name("declarator") if declarator is not None else None
    if inner is None or "operator" in inner.type:
        return ""
    found = _LAST_NAME.search(text[inner.start_byte : inner.end_byte])
    return found.group(1) if found else ""


def descend(node: Node) -> Iterator[Node]:
    """Yield a node and all nodes in it in the order of the text, but nothing of functions and classes within."""
    pending = [node]
    while pending:
        one = pending.pop()
        yield one
        if one.type not in ("lambda_expression", "class_specifier", "struct_specifier"):
            pending += reversed(one.named_children)
