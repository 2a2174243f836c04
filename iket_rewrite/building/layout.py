# SPDX-License-Identifier: Apache-2.0
"""The overlay: which files of a program are copied, where the copies lie, and how includes find them.

A copy lies where its original lies below the common root.  A compiler looks into the overlay's folder before each
original folder, and for a quoted include that is not beside the copy, into the folders of the originals.  Where that
would find an original in place of its copy, the include itself names the copy; where it would find another file than
before, a forwarding file beside the copy names the right one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..rewriting.found import Include
from .reading import Text
from .search import Search


@dataclass(frozen=True, slots=True)
class Copy:
    """One file of the overlay.

    Attributes:
        original: the file that it stands for, as the compiler would spell it.
        path: where it lies, relative to the overlay.
        data: its content; empty for a link.
        link: what it is a link to, relative to its folder, or an empty string.
    """

    original: str
    path: str
    data: bytes = b""
    link: str = ""


@dataclass(frozen=True, slots=True)
class IncludeFolders:
    """The folders to look into, in order, each for the overlay `{overlay}` or an original folder.

    Attributes:
        quoted: for quoted includes only.
        pairs: (folder inside the overlay or None, original folder) for all includes.
    """

    quoted: tuple[str, ...]
    pairs: tuple[tuple[str | None, str], ...]


NO_FOLDERS = IncludeFolders((), ())


class Layout:
    """Where the copies lie.

    Args:
        copied: the files that are copied, by place.
        aliases: by the place of a second name, the place of the file's first name.
        search: where includes lead without the overlay.
        roots: places that belong to the layout whether copied or not: the sources.
    """

    def __init__(
        self, copied: Mapping[str, Text], aliases: Mapping[str, str], search: Search, roots: Iterable[str]
    ) -> None:
        self.copied, self.search = copied, search
        self.aliases = {alias: first for alias, first in aliases.items() if first in copied}
        self.root = common_root([*roots, *copied, *self.aliases])
        #: By the place where a forwarding file stands, the file that it names.
        self.forwarded: dict[str, str] = {}
        #: By the place of a file and an include in it, the path from there to the copy that it has to name.
        self.renamed: dict[tuple[str, Include], str] = {}
        self.folders = self._folders()
        self._lead()
        if not all(is_below(place, self.root) for place in self.forwarded):
            # An include climbs above the root: so does the root, for nothing is written outside the overlay.
            self.root = os.path.commonpath([self.root, *map(os.path.dirname, self.forwarded)])
            self.folders = self._folders()

    def relative(self, place: str) -> str:
        """Return the path inside the overlay of what lies at a place."""
        return os.path.relpath(place, self.root)

    def _folders(self) -> IncludeFolders:
        own = dict.fromkeys(text.file.folder or "." for text in self.copied.values())
        quoted = tuple(dict.fromkeys([*own, *self.search.quoted]))
        pairs: list[tuple[str | None, str]] = []
        for folder in self.search.folders:
            real = self.search.real_folder(folder)
            holds = any(is_below(place, real) for place in (*self.copied, *self.aliases))
            pairs.append((self.relative(real) if holds else None, folder))
        return IncludeFolders(quoted, tuple(pairs))

    def _lead(self) -> None:
        """See that every include leads to the file that it led to, or to its copy."""
        inside = {self.relative(place): place for place in (*self.copied, *self.aliases)}
        folders = {parent for path in inside for parent in _parents(path)}
        for text in self.copied.values():
            folder = os.path.dirname(text.file.place)
            for include in text.found:
                before = self.search.resolve_any(include.name, include.angled, text.file.folder)
                if before is None or include.next:
                    continue
                place = self.search.place(before)
                after = self._found(include, folder, inside, folders)
                if place in self.copied or place in self.aliases:
                    if place != after:
                        self.renamed[text.file.place, include] = os.path.relpath(place, folder)
                elif after not in (None, place) and not include.angled:
                    self.forwarded[self.search.place(os.path.join(folder, include.name))] = before

    def _found(self, include: Include, folder: str, inside: Mapping[str, str], folders: Collection[str]) -> str | None:
        """Return the place of the file that an include in a copied file leads to, as a compiler looks for it.

        An empty string for the original of a copy.
        """

        def copy(base: str) -> str | None:
            path = _walked(os.path.join(base, include.name), folders)
            return None if path is None else inside.get(path)

        def original(base: str) -> str | None:
            path = os.path.join(base, include.name)
            if not self.search.is_file(path):
                return None
            place = self.search.place(path)
            return "" if place in self.copied or place in self.aliases else place

        if os.path.isabs(include.name):
            return original("")
        tries = [] if include.angled else [copy(self.relative(folder)), *map(original, self.folders.quoted)]
        for overlaid, path in self.folders.pairs:
            tries += [None if overlaid is None else copy(overlaid), original(path)]
        return next((found for found in tries if found is not None), None)


def _parents(path: str) -> Iterator[str]:
    """Return the folders above a path, which is relative and normal."""
    while path := os.path.dirname(path):
        yield path


def _walked(path: str, folders: Collection[str]) -> str | None:
    """Return the normal form of a path that a system walks step by step; None where there is no such folder."""
    walked = ""
    *steps, last = path.split("/")
    for step in steps:
        if step == "..":
            if not walked:
                return None
            walked = os.path.dirname(walked)
        elif step not in ("", "."):
            walked = os.path.join(walked, step)
            if walked not in folders:
                return None
    return os.path.join(walked, last)


def quoted_folders(folders: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the options by which nvcc looks into folders for quoted includes: the first ones, and the last ones."""
    first, last = [], []
    for folder in folders:
        # What nvcc hands on to the host compiler is split at commas, and a shell reads it.  ccache would move the value
        # if it were a word of its own.
        if all(char.isalnum() or char in "/._-+@" for char in folder):
            first.append(f"-Xcompiler=-iquote,{folder}")
        else:
            last.append(f"-I{folder}")
    return first, last


def is_below(place: str, folder: str) -> bool:
    """Say whether a place lies in a folder or below it."""
    return place == folder or place.startswith(folder.rstrip("/") + "/")


def common_root(places: Sequence[str]) -> str:
    """Return the working folder where everything lies below it, else the folder that everything has in common."""
    here = os.path.realpath(".")
    if all(is_below(place, here) for place in places):
        return here
    return os.path.commonpath([os.path.dirname(place) for place in places])
