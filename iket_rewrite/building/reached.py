# SPDX-License-Identifier: Apache-2.0
"""The files that a translation unit may include, and whether any of them can hold an annotation.

A quick and generous look at bytes: includes in comments count too, and so does every branch of an `#if`.  It decides
whether there is anything to do, before the rewriter is even imported; what it finds is then read with care.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from .search import Search

_GAP = rb"(?:[ \t\f\v]|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|\\[ \t]*\r?\n)*"
_INCLUDE = re.compile(rb"#" + _GAP + rb"(?:include|include_next|import)" + _GAP + rb"(?:\"([^\"\n]+)\"|<([^>\n]+)>)")
_CUT_WORD = re.compile(rb"[\w$./+-]\\[ \t]*[\r\n]")
_SPLICE = re.compile(rb"\\[ \t]*(?:\r\n|\n|\r)")
#: Every annotation holds it.
_HINT = b"IKET"


class Reached:
    """One file that is reached.

    Attributes:
        path: its name as the compiler would spell it.
        place: its absolute path, its folder's links resolved.
        data: its bytes.
        hinted: whether its letters allow an annotation.
        names: what its includes name, each once: (name, in angle brackets).
        leads_to: by that, the place of the file.
    """

    __slots__ = ("data", "hinted", "leads_to", "names", "path", "place")

    def __init__(self, path: str, place: str, data: bytes) -> None:
        self.path, self.place, self.data = path, place, data
        text = _SPLICE.sub(b"", data) if b"\\" in data and _CUT_WORD.search(data) else data
        self.hinted = _HINT in text
        # Quoted and angled names in the order of the text, without repetition.
        self.names = tuple(dict.fromkeys((quoted or angled, not quoted) for quoted, angled in _INCLUDE.findall(text)))
        self.leads_to: dict[tuple[str, bool], str] = {}

    def holds(self, word: str) -> bool:
        """Say whether the letters of a word stand in it."""
        return word.encode() in self.data

    @property
    def folder(self) -> str:
        """Return its folder, as the compiler would spell it."""
        return os.path.dirname(self.path)


class Tree:
    """The files that the roots may include, and the roots.

    Attributes:
        files: by place, in the order in which they were found.
        aliases: by the place of a second name, the place of the same file's first name.
    """

    def __init__(self, search: Search, given: Mapping[str, bytes] | None = None) -> None:
        self.search = search
        self.files: dict[str, Reached] = {}
        self.aliases: dict[str, str] = {}
        self._given = given or {}
        self._identities: dict[tuple[int, int], str] = {}

    def add(self, root: str) -> str:
        """Add a file and all that it may include; return its place.

        Raises:
            OptionError: it can not be read.
        """
        place, waiting = self._enter(root)
        while waiting:
            file = waiting.pop()
            for name, angled in file.names:
                decoded = os.fsdecode(name)
                target = self.search.resolve(decoded, angled, file.folder)
                if target is not None:
                    file.leads_to[decoded, angled], new = self._enter(target)
                    waiting += new
        return place

    def _enter(self, path: str) -> tuple[str, list[Reached]]:
        """Return the place of a file, and the file where it is new."""
        place = self.search.place(path)
        place = self.aliases.get(place, place)
        if place in self.files:
            return place, []
        if path in self._given:
            data = self._given[path]
        else:
            data, identity = read(path)
            first = self._identities.setdefault(identity, place)
            if first != place:
                self.aliases[place] = first
                return first, []
        file = self.files[place] = Reached(path, place, data)
        return place, [file]

    def hinted(self) -> list[str]:
        """Return the places of the files that may hold an annotation."""
        return [file.place for file in self.files.values() if file.hinted]

    def leading_to(self, targets: Iterable[str]) -> set[str]:
        """Return the targets and all files from which one of them is reached, by place."""
        includers: dict[str, list[str]] = {}
        for file in self.files.values():
            for place in file.leads_to.values():
                includers.setdefault(place, []).append(file.place)
        result: set[str] = set()
        waiting = list(targets)
        while waiting:
            place = waiting.pop()
            if place not in result:
                result.add(place)
                waiting += includers.get(place, ())
        return result


def read(path: str) -> tuple[bytes, tuple[int, int]]:
    """Return the bytes of a file, and what tells it from every other file.

    Raises:
        OptionError: it can not be read.
    """
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            return file.read(), (status.st_dev, status.st_ino)
    except OSError as error:
        from ..errors import OptionError

        raise OptionError(f"{path}: can not be read: {error.strerror or error}") from None
