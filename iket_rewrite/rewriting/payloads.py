# SPDX-License-Identifier: Apache-2.0
"""Judge payload expressions with pycparser: constant, uniform over a warp, free of side effects.

pycparser reads C.  Payload expressions are C for the most part, and generated ones always; what is C++ is rewritten
to C where the meaning is certain (named casts, `::`, digit separators), and is *unknown* otherwise.  C++ that
pycparser would misread is unknown as well: a template call `next<1>(x)` parses as two comparisons, and
`(unknown_t)(x)` as a call.  So an expression with a `<` whose `>` stands before `(` is not parsed, and a call of a
name that is not known to be pure makes the expression unknown.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from .known_names import BLOCK_WIDE, CONSTANTS, PURE, TYPES
from .tokens import without_comments


class Effects(enum.Enum):
    """Whether evaluating an expression changes anything."""

    NONE = "none"
    CERTAIN = "certain"
    UNKNOWN = "unknown"


class Verdict(NamedTuple):
    """What is known of one payload expression.

    Attributes:
        effects: whether evaluating it changes anything.
        constant: it is built of literals only.
        uniform: it has one value for all lanes of a warp, for certain.
    """

    effects: Effects
    constant: bool
    uniform: bool


_TEMPLATE_CALL = re.compile(r"<[\s\S]*>\s*\(")
_NAMED_CAST = re.compile(r"\b(?:static_cast|reinterpret_cast|const_cast)\s*<([^<>()]*)>\s*\(")
_CASTABLE = re.compile(r"[\w\s:*&]+\Z")
_TYPE_WORD = re.compile(r"\b(?:" + "|".join(sorted(TYPES, key=len, reverse=True)) + r")\b(?!\s*\()")
_FUNCTIONAL_CAST = re.compile(r"\b(int|unsigned|float|double|char|short|long)\s*\(")
_DIGIT_SEPARATOR = re.compile(r"(?<=[0-9A-Fa-f])'(?=[0-9A-Fa-f])")
_SCOPE = re.compile(r"\s*::\s*")
_UNREADABLE = re.compile(r"[#@\\`]|R\"|\boperator\b|\bnew\b|\bdelete\b|\bthrow\b|\basm\b|->\s*\*")
#: An expression that is longer, or nested deeper, is not worth the recursion.
_LONGEST = 4096


def judge(expression: str, is_steady: Callable[[str], bool] = lambda name: False) -> Verdict:
    """Judge a payload expression.

    Args:
        expression: logical text; comments are allowed (TileLang writes them).
        is_steady: says of a name whether it is a parameter of the enclosing kernel that is nowhere changed or hidden.
    """
    shape = _shape(expression)
    if shape is None:
        return Verdict(Effects.UNKNOWN, False, False)
    if shape.effects is not Effects.NONE or shape.names is None:
        return Verdict(shape.effects, False, False)
    constant = not shape.names and not shape.block_wide
    return Verdict(shape.effects, constant, all(map(is_steady, shape.names)))


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the syntax tells: effects, and the names whose uniformity decides; None for names where none helps."""

    effects: Effects
    names: frozenset[str] | None
    block_wide: bool


@lru_cache(maxsize=16384)
def _shape(expression: str) -> _Shape | None:
    text = _as_c(expression)
    tree = _parse(text) if text is not None else None
    if tree is None:
        return None
    walk = _Walk()
    try:
        walk.visit(tree)
    except RecursionError:  # a sum of a thousand terms is a tree of a thousand levels
        return None
    return _Shape(walk.effects, frozenset(walk.names) if walk.uniform else None, walk.block_wide)


def _as_c(expression: str) -> str | None:
    """Return the expression as C, or None where that is not certain to mean the same.

    A qualified name becomes one word with `__` in place of `::`, which is no parameter's name.
    """
    text = _DIGIT_SEPARATOR.sub("", without_comments(expression)).strip()
    if not text or len(text) > _LONGEST or _UNREADABLE.search(text):
        return None
    text = _SCOPE.sub("__", text)
    text = _NAMED_CAST.sub(lambda match: "__cast(" if _CASTABLE.match(match.group(1)) else match.group(), text)
    if _TEMPLATE_CALL.search(text):
        return None
    text = _FUNCTIONAL_CAST.sub("__cast(", text)
    return _TYPE_WORD.sub("int", text)


def _parse(text: str) -> Any:
    from pycparser import CParser, c_ast
    from pycparser.c_parser import ParseError

    try:
        unit = CParser().parse(f"int payload = ({text}\n);")
    # A parser of C meets C++ here: whatever it stumbles over, the expression is unknown.
    except (ParseError, AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None
    only = unit.ext[0] if len(unit.ext) == 1 else None
    return only.init if isinstance(only, c_ast.Decl) else None


class _Walk:
    """Walk over an expression's tree, collecting what decides."""

    def __init__(self) -> None:
        self.effects = Effects.NONE
        self.uniform = True
        self.block_wide = False
        self.names: set[str] = set()

    def visit(self, node: Any) -> None:
        handler = getattr(self, "_" + type(node).__name__, None)
        if handler is None:
            self._unknown()
        else:
            handler(node)

    def _unknown(self) -> None:
        self.uniform = False
        if self.effects is Effects.NONE:
            self.effects = Effects.UNKNOWN

    def _children(self, node: Any) -> None:
        for _, child in node.children():
            self.visit(child)

    _BinaryOp = _TernaryOp = _ExprList = _children

    def _Constant(self, node: Any) -> None:
        if node.type == "string":
            self.uniform = False

    def _ID(self, node: Any) -> None:
        if node.name in BLOCK_WIDE:
            self.block_wide = True
        elif node.name not in CONSTANTS:
            self.names.add(node.name)

    def _UnaryOp(self, node: Any) -> None:
        if node.op in ("sizeof", "_Alignof"):
            return
        if node.op in ("++", "--", "p++", "p--"):
            self.effects = Effects.CERTAIN
        if node.op in ("*", "&"):
            self.uniform = False
        self.visit(node.expr)

    def _Assignment(self, node: Any) -> None:
        self.effects, self.uniform = Effects.CERTAIN, False
        self._children(node)

    def _Cast(self, node: Any) -> None:
        self.visit(node.expr)

    def _StructRef(self, node: Any) -> None:
        if node.type == "->":
            self.uniform = False
        self.visit(node.name)

    def _ArrayRef(self, node: Any) -> None:
        self.uniform = False
        self._children(node)

    def _FuncCall(self, node: Any) -> None:
        if type(node.name).__name__ != "ID" or node.name.name not in PURE:
            self._unknown()
        if node.args is not None:
            self._children(node.args)
