# SPDX-License-Identifier: Apache-2.0
"""Dependency files: a compiler that read the overlay names its copies, and a build must know the originals."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

#: A word of a make rule; a backslash keeps a blank in it.
_WORD = re.compile(r"(?:\\[ #\\]|[^\s\\]|\\(?=[^\s]))+")
_CONTINUED = re.compile(r"\\\r?\n")


def mapped(text: str, original: Callable[[str], str | None], more: Iterable[str] = ()) -> str:
    """Return the text of a dependency file with originals in place of copies.

    Args:
        text: make rules.
        original: returns the original of a path, the path itself where it is no copy, or None for one that has none.
        more: further files that the target depends on.
    """
    rules: list[str] = []
    # gcc names both the copies and what their #line says.
    done: set[str | None] = {None}
    for line in _CONTINUED.sub(" ", text).splitlines():
        targets, colon, rest = _split_rule(line)
        if not colon:
            rules.append(line)
            continue
        words = _WORD.findall(rest)
        if not words:
            # An empty rule of -MP, for a file that may go.
            target = original(_plain(targets.strip()))
            if target not in done:
                done.add(target)
                rules.append(f"{_escaped(target or '')}:")
            continue
        found = [path for path in map(original, map(_plain, words)) if path is not None]
        # The source has no empty rule.
        done.add(found[0] if found else None)
        paths = dict.fromkeys((*found, *more))
        rules.append(f"{targets.rstrip()} : " + " \\\n    ".join(map(_escaped, paths)))
    return "".join(f"{rule}\n" for rule in rules)


def _split_rule(line: str) -> tuple[str, str, str]:
    """Split a rule at the colon behind its targets, which stands before a blank or at the end."""
    found = re.search(r":(?=\s|$)", line)
    return (line, "", "") if found is None else (line[: found.start()], ":", line[found.end() :])


def _plain(word: str) -> str:
    return re.sub(r"\\([ #\\])", r"\1", word).replace("$$", "$")


def _escaped(path: str) -> str:
    return re.sub(r"([ #])", r"\\\1", path).replace("$", "$$")


def written_to(output: str | None, folder: str | None, named: str | None, sources: Iterable[str]) -> list[str]:
    """Return the dependency files that nvcc writes beside its output.

    Args:
        output: the value of -o, or None.
        folder: the value of -odir, or None.
        named: the value of -MF, or None.
        sources: the inputs.
    """
    if named is not None:
        return [named]
    if output is not None:
        return [os.path.splitext(output)[0] + ".d"]
    return [os.path.join(folder or "", os.path.splitext(os.path.basename(source))[0] + ".d") for source in sources]
