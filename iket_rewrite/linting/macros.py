# SPDX-License-Identifier: Apache-2.0
"""What macros of the file do to a path: `#define RETURN_IF(c) if (c) return` leaves the function where it is used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..rewriting.tokens import without_comments
from .masking import Directive

_LITERAL = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\[^'\n]*|[^'\\\n])'")
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)(\([^()]*\))?")
_JUMP = re.compile(r"\b(return|break|continue|goto\s+\w+|(?:__trap|__builtin_trap|__builtin_unreachable|abort)\s*\()")
_BRANCH = re.compile(r"\b(?:if|switch|for|case)\b|\?|&&|\|\||\bwhile\b(?!\s*\(\s*(?:0|false)\s*\))")
#: What gives break and continue another meaning.
_LOOP = re.compile(r"\b(?:for|while|do|switch)\b")
_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\([^(){}]*\))?[^(){};\[\]]*\{")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Exits:
    """How code leaves the path that it stands on.

    Attributes:
        kinds: return, break, continue, stop, or goto with its label.
        sure: no path goes past it.
        called: only where a bracket follows is its name a use of the macro.
    """

    kinds: frozenset[str] = frozenset()
    sure: bool = False
    called: bool = False


class Macro(NamedTuple):
    """One definition: its name, its body, and whether it has parameters, so that only a call uses it."""

    name: str
    body: str
    called: bool


def definitions(directives: Iterable[Directive]) -> list[Macro]:
    """Return the definition of every macro; one that is defined twice is there twice.

    Of one that is undefined and defined anew the new definitions count.
    """
    found: list[Macro] = []
    gone: dict[str, list[Macro]] = {}
    for one in directives:
        named = _NAMED.match(one.rest)
        if named is not None and one.word == "define":
            found.append(Macro(named.group(1), one.rest[named.end() :], named.group(2) is not None))
        elif named is not None and one.word == "undef":
            before = [macro for macro in found if macro.name == named.group(1)]
            gone[named.group(1)] = before or gone.get(named.group(1), [])
            found = [macro for macro in found if macro.name != named.group(1)] if before else found
    kept = {macro.name for macro in found}
    return [*found, *(macro for name, macros in gone.items() if name not in kept for macro in macros)]


def exits_of_macros(defined: Iterable[Macro]) -> dict[str, Exits]:
    """Return the macros whose use may leave the path, also by another such macro."""
    bodies: dict[str, list[str]] = {}
    called: dict[str, bool] = {}
    for name, body, with_call in defined:
        bodies.setdefault(name, []).append(body)
        called[name] = called.get(name, True) and with_call
    result: dict[str, Exits] = {}
    for _ in range(_ROUNDS):
        before = dict(result)
        for name, texts in bodies.items():
            each = [exits_of(text, before) for text in texts]
            kinds = frozenset(kind for one in each for kind in one.kinds)
            if kinds:
                result[name] = Exits(kinds, all(one.sure for one in each), called[name])
        if result == before:
            break
    return result


def exits_of(text: str, macros: Mapping[str, Exits]) -> Exits:
    """Return how code leaves the path that it stands on; what a lambda in it does stays in the lambda."""
    text = _without_lambdas(_LITERAL.sub(" ", without_comments(text)))
    kinds = {"stop" if word.endswith("(") else " ".join(word.split()) for word in _JUMP.findall(text)}
    used = [macros[word] for word in _WORD.findall(text) if word in macros] if macros else []
    if not kinds and not used:
        return Exits()
    if _LOOP.search(text):
        kinds -= {"break", "continue"}
    branches = _BRANCH.search(text) is not None
    sure = not branches and (bool(kinds) or any(one.sure for one in used))
    return Exits(frozenset(kinds.union(*(one.kinds for one in used))), sure)


def _without_lambdas(text: str) -> str:
    while (found := _LAMBDA.search(text)) is not None:
        depth, at = 1, found.end()
        while at < len(text) and depth:
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
        text = f"{text[: found.start()]} 0 {text[at:]}"
    return text
