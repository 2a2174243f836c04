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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from .scan import Kernel
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


#: Built-in variables with one value per block, which is more than one per warp.
_BLOCK_WIDE = frozenset(("blockIdx", "blockDim", "gridDim", "warpSize"))
_CONSTANTS = frozenset(("true", "false", "nullptr", "NULL"))
#: Types that CUDA sources name without declaring them in the expression.  They parse as `int`: nothing but "is this a
#: type" matters here.
_TYPES = frozenset(
    [
        "bool",
        "half",
        "half_t",
        "half2",
        "__half",
        "__half2",
        "bfloat16_t",
        "bfloat16",
        "__nv_bfloat16",
        "__nv_bfloat162",
        "nv_bfloat16",
        "bf16",
        "fp16",
        "uchar",
        "ushort",
        "uint",
        "ulong",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
        "size_t",
        "ssize_t",
        "ptrdiff_t",
        "intptr_t",
        "uintptr_t",
        "char8_t",
        "char16_t",
        "char32_t",
        "wchar_t",
        "longlong",
        "ulonglong",
        "float_t",
        "double_t",
        "tfloat32_t",
        "float_e4m3_t",
        "float_e5m2_t",
        "__nv_fp8_e4m3",
        "__nv_fp8_e5m2",
        "fp8_e4_t",
        "fp8_e5_t",
        "cutlass__half_t",
        "cutlass__bfloat16_t",
        "std__size_t",
        "std__int8_t",
        "std__int16_t",
        "std__int32_t",
        "std__int64_t",
        "std__uint8_t",
        "std__uint16_t",
        "std__uint32_t",
        "std__uint64_t",
        "std__ptrdiff_t",
        "std__uintptr_t",
    ]
)
#: Functions whose value depends on their arguments alone and that change nothing.
_PURE = (
    frozenset(
        [
            "__cast",
            "int",
            "unsigned",
            "float",
            "double",
            "char",
            "short",
            "long",
            "min",
            "max",
            "abs",
            "fabs",
            "fabsf",
            "fminf",
            "fmaxf",
            "fmin",
            "fmax",
            "sqrtf",
            "sqrt",
            "rsqrtf",
            "expf",
            "exp",
            "exp2f",
            "exp2",
            "logf",
            "log",
            "log2f",
            "log2",
            "floorf",
            "floor",
            "ceilf",
            "ceil",
            "roundf",
            "round",
            "truncf",
            "trunc",
            "fmaf",
            "fma",
            "powf",
            "pow",
            "umin",
            "umax",
            "llmin",
            "llmax",
            "ullmin",
            "ullmax",
            "__float_as_uint",
            "__float_as_int",
            "__uint_as_float",
            "__int_as_float",
            "__double_as_longlong",
            "__longlong_as_double",
            "__half2float",
            "__float2half",
            "__bfloat162float",
            "__float2bfloat16",
            "__float2half_rn",
            "__float2bfloat16_rn",
            "__half_as_ushort",
            "__bfloat16_as_ushort",
            "__popc",
            "__popcll",
            "__clz",
            "__clzll",
            "__ffs",
            "__ffsll",
            "__brev",
            "__mul24",
            "__umul24",
            "__mulhi",
            "__umulhi",
            "__fdividef",
            "__expf",
            "__logf",
            "__cvta_generic_to_shared",
            "std__min",
            "std__max",
            "std__abs",
        ]
    )
    | _TYPES
)

_TEMPLATE_CALL = re.compile(r"<[\s\S]*>\s*\(")
_NAMED_CAST = re.compile(r"\b(?:static_cast|reinterpret_cast|const_cast)\s*<([^<>()]*)>\s*\(")
_CASTABLE = re.compile(r"[\w\s:*&]+\Z")
_TYPE_WORD = re.compile(r"\b(?:" + "|".join(sorted(_TYPES, key=len, reverse=True)) + r")\b(?!\s*\()")
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
        if node.name in _BLOCK_WIDE:
            self.block_wide = True
        elif node.name not in _CONSTANTS:
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
        if type(node.name).__name__ != "ID" or node.name.name not in _PURE:
            self._unknown()
        if node.args is not None:
            self._children(node.args)


# --- Parameters of a kernel ----------------------------------------------------------------------------------

_ASSIGNED = re.compile(r"\s*(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)?=(?!=))")
_PART = re.compile(r"(?:\s*(?:\.\s*\w+|\[[^\]]*\]))*")
_LITERAL_OR_COMMENT = re.compile(r"(//[^\n]*|/\*[\s\S]*?\*/)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
_DEFINE_BODY = re.compile(r"define[ \t]+[\w$]+(\([^()\n]*\))?([^\n]*)")
_WORD_BEFORE = re.compile(r"[A-Za-z_$][\w$]*\Z")
#: Words behind which a value is read; behind any other a name is declared.
_BEFORE_VALUE = frozenset(["return", "case", "else", "do", "and", "or", "not"])
#: Words whose brackets hold a value and bind no reference to it.
_VALUE_BRACKETS = frozenset(["if", "while", "switch", "return", "sizeof"])
_ANNOTATION_PREFIXES = ("IKET_", "IKETR_", "TL_IKET_")
_CAST_BEFORE = re.compile(r"\([\w\s:*]+\)\Z")
_NAMED_CAST_BEFORE = re.compile(r"\b(?:static|reinterpret)_cast\s*<[^<>&]*>\Z")
_INDEX_BEFORE = re.compile(r"(?:([A-Za-z_]\w*)|[)\]])\s*\[\Z")
#: A product for certain: `= a * n`, `a.x * n`, `4 * n`; `(a * n` may declare a pointer.
_PRODUCT_BEFORE = re.compile(
    r"(?:(?:[-=+/%*\[]|\breturn\b)\s*(?!const\b|volatile\b)[A-Za-z_][\w.]*|\w+\.\w+|\b\d\w*|\])\s*\*\Z"
)
#: A reference is bound to what follows: `auto& r = `, `auto& [a, b] = `, `for (auto& x : `.
_REFERENCE_BEFORE = re.compile(r"&\s*(?:\w+|\[[^\]]*\])\s*(?:=(?!=)|:(?!:))")
#: How far back the bracket is looked for in which a name stands.
_NEARBY = 512


class SteadyParameters:
    """The parameters of kernels that certainly keep their value: neither changed, nor hidden, nor passed on.

    Every place where the name stands must be one that reads it; at any doubt it does not count.  A parameter that is
    passed on bare to a function may be changed there through a reference.  Names are looked at when they are asked for.

    Args:
        text: the logical text.
        ends: by the offset of a kernel's `{`, the offset of its `}`.
        elsewhere: gives the words of the macros that other files of the program define.
    """

    def __init__(self, text: str, ends: dict[int, int], elsewhere: Callable[[], frozenset[str]] = frozenset) -> None:
        self._text, self._ends, self._elsewhere = text, ends, elsewhere
        self._bodies: dict[int, str] = {}
        self._known: dict[tuple[int, str], bool] = {}

    @cached_property
    def _in_macros(self) -> frozenset[str]:
        return macro_words([self._text]) | self._elsewhere()

    def holds(self, kernel: Kernel | None, name: str) -> bool:
        """Say whether `name` is such a parameter of the kernel."""
        if kernel is None or kernel.body not in self._ends:
            return False
        key = (kernel.body, name)
        if key not in self._known:
            self._known[key] = self._look(kernel, name)
        return self._known[key]

    def _look(self, kernel: Kernel, name: str) -> bool:
        parameters = _parameters(self._text[slice(*kernel.parameters)])
        if name not in parameters or name in self._in_macros:
            return False
        if kernel.body not in self._bodies:
            body = self._text[kernel.body : self._ends[kernel.body]]
            # Where a raw string ends is not known here.
            self._bodies[kernel.body] = "" if 'R"' in body else _LITERAL_OR_COMMENT.sub(_without_content, body)
        body = self._bodies[kernel.body]
        if not body:
            return False
        places = re.finditer(rf"(?<![\w$]){re.escape(name)}(?![\w$])", body)
        return all(_is_read(body, place.start(), place.end(), parameters[name]) for place in places)


def macro_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of all macros' bodies but their own parameters: a use does not show what happens to them."""
    words: set[str] = set()
    for text in texts:
        for parameters, body in _DEFINE_BODY.findall(text):
            words |= set(_WORD.findall(body)) - set(_WORD.findall(parameters))
    return frozenset(words)


def _without_content(match: re.Match[str]) -> str:
    return " " if match.group(1) else '""'


def _is_read(body: str, start: int, end: int, pointer: bool) -> bool:
    """Say whether the name at this span is certainly read there, or is another thing's member of the same name."""
    before = body[max(0, start - _NEARBY) : start].rstrip()
    last = before[-1:]
    if last == "." or before.endswith(("->", "::")):
        return True
    # What is behind a pointer does not concern its own value.
    end = end if pointer else _PART.match(body, end).end()  # type: ignore[union-attr]  # matches the empty string
    after = body[end : end + 64].lstrip()
    if _ASSIGNED.match(after) or after.startswith(("(", "{")) or before.endswith(("++", "--")):
        return False
    statement = before[_last_end(before) :]
    if _REFERENCE_BEFORE.search(statement):
        return False
    word = _WORD_BEFORE.search(before)
    if word is not None:
        return word.group() in _BEFORE_VALUE
    # In front of an operator a name is a value; bare it can bind to a reference, or be declared.
    operand = after[:1] not in ("", *"),:;]}[")
    if last in tuple("(,"):
        return operand or _holds_values(before)
    if last == "*":
        return operand or _PRODUCT_BEFORE.search(before) is not None
    if last == ">" and not before.endswith(">>"):
        return operand or "<" not in statement
    if last == "{":
        return operand or after.startswith("[")
    if last in tuple("?:>") or before.endswith("&&"):
        return operand
    if last == "[":
        indexed = _INDEX_BEFORE.search(before)
        return indexed is not None and indexed.group(1) not in ("auto", "delete", "const", "volatile")
    if last == ")":
        return _CAST_BEFORE.search(before) is not None
    return last in tuple("=+-/%<|^!~;}")


def _last_end(before: str) -> int:
    """Return where the statement begins in which `before` ends."""
    return max(before.rfind(char) for char in ";{}") + 1


def _holds_values(before: str) -> bool:
    """Say whether the open bracket in which `before` ends passes its arguments on as values."""
    depth = 0
    for index in range(len(before) - 1, -1, -1):
        char = before[index]
        if char in ")]":
            depth += 1
        elif char in "([":
            if not depth:
                head = before[:index].rstrip()
                callee = _WORD_BEFORE.search(head)
                name = callee.group() if callee else ""
                known = name in _PURE or name in _VALUE_BRACKETS or name.startswith(_ANNOTATION_PREFIXES)
                return char == "(" and (known or _NAMED_CAST_BEFORE.search(head) is not None)
            depth -= 1
        elif char in ";{}":
            return False
    return False


@lru_cache(maxsize=1024)
def _parameters(text: str) -> dict[str, bool]:
    """Return the names in a parameter list, and of each whether it is a pointer."""
    found, begin = {}, 0
    opened: list[str] = []
    text = without_comments(text) + ","
    for index, char in enumerate(text):
        if char in "([{" or (char == "<" and opened[-1:] in ([], ["<"])):
            opened.append(char)
        elif char in ")]}":
            while opened and opened.pop() == "<":
                pass  # it was a comparison
        elif char == ">" and opened[-1:] == ["<"]:
            opened.pop()
        elif char == "," and not opened:
            declared = text[begin:index].split("=")[0]
            words = re.findall(r"[A-Za-z_]\w*", declared)
            if len(words) > 1:
                found[words[-1]] = "*" in declared or "[" in declared
            begin = index + 1
    return found
