# SPDX-License-Identifier: Apache-2.0
"""Tell which parameters of a kernel certainly keep their value, so that payloads built of them are uniform."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache

from .found import Kernel
from .known_names import PURE
from .tokens import without_comments

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
                known = name in PURE or name in _VALUE_BRACKETS or name.startswith(_ANNOTATION_PREFIXES)
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
