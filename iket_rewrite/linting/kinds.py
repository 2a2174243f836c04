# SPDX-License-Identifier: Apache-2.0
"""Which types the variables of a file are declared with, as far as its text tells."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property

#: A word and the one that it declares; words may be both, so nothing is consumed but the first.
_DECLARED = re.compile(r"\b([A-Za-z_]\w*)(?=[ \t]*(?:<[^<>;{}()\n]*>[ \t]*)?(?:[&*]+[ \t]*|(?<=[> \t]))([A-Za-z_]\w*))")
_ALIAS = re.compile(r"\b(?:using|typename|class)\s+([A-Za-z_]\w*)\s*[=,>]|\btypedef\b[^;{}]*?\b([A-Za-z_]\w*)\s*;")
#: Words before a name that are no type of it.
_NO_TYPES = frozenset(
    ["auto", "const", "return", "else", "typename", "class", "struct", "case", "goto", "new", "delete", "typedef"]
)


class Kinds:
    """The declarations of one text, which is read when it is first asked for.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _declared(self) -> dict[str, set[str]]:
        result: dict[str, set[str]] = {}
        for kind, name in _DECLARED.findall(self.text):
            if kind not in _NO_TYPES:
                result.setdefault(name, set()).add(kind)
        return result

    @cached_property
    def _aliases(self) -> set[str]:
        return {word for words in _ALIAS.findall(self.text) for word in words if word}

    def may_be(self, name: str, classes: Collection[str]) -> bool:
        """Say whether a variable may be of one of the classes: it is, or what it is declared with is not known."""
        kinds = self._declared.get(name, set())
        return not kinds or not kinds.isdisjoint(classes) or not kinds.isdisjoint(self._aliases)
