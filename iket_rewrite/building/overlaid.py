# SPDX-License-Identifier: Apache-2.0
"""One compilation of an annotated program by nvcc, on an overlay that is gone when it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from ..errors import OptionError
from ..rewriting.core import ONLY_SECOND_PREFIX
from ..rewriting.event import NOTHING_KEPT
from .child import run_child, stopping
from .claiming import claimed
from .command_line import SEARCHED, Command, Origin, Word, split_value
from .dependencies import mapped, written_to
from .laying import lay_out
from .layout import quoted_folders
from .plan_file import load_plan
from .program import DEFINITIONS, Program, Settings, program_of
from .reached import Tree
from .search import Search

#: A shell's way to say that a signal ended a program.
_BY_SIGNAL = 128


def program_of_command(command: Command, tree: Tree) -> Program:
    """Rewrite what a command compiles.

    Raises:
        IketError: it can not be rewritten.
    """
    kept = command.environment.get("IKET_PLAN")
    settings = Settings(
        second_prefix=any(macro.partition("=")[0] == ONLY_SECOND_PREFIX for macro in command.macros),
        hints=False,
        kept=load_plan(kept, closed=True) if kept else NOTHING_KEPT,
        name=DEFINITIONS,
    )
    forced = [tree.search.place(path) for path in command.forced_files(tree.search).values()]
    sources = tuple(word.text for word in command.sources)
    units = [[tree.aliases.get(place, place) for place in (*forced, tree.search.place(path))] for path in sources]
    return program_of(tree, units, sources, settings)[0]


def compile_overlaid(
    nvcc: Sequence[str], command: Command, search: Search, program: Program, say: Callable[[str], None]
) -> int:
    """Write the overlay, run nvcc on it, and make what nvcc writes name the originals; return its exit status.

    Raises:
        OptionError: the overlay can not be written.
        ToolError: nvcc can not be started.
    """
    with stopping(), claimed(_folder(command)) as folder:
        try:
            lay_out(program.copies, folder)
        except OSError as error:
            raise OptionError(f"{folder}: can not be written: {error.strerror or error}") from None
        arguments, environment = _redirected(command, search, program, folder)
        originals = _Originals(program, folder)
        status = run_child(
            [*nvcc, *arguments],
            environment,
            complaints=originals.in_message,
            output=originals.in_rules if command.flags & {"M", "MM"} and not _rule_files(command) else None,
        )
        if status > _BY_SIGNAL:
            say(f"{nvcc[-1]} was ended by signal {status - _BY_SIGNAL}")
        for path in _rule_files(command):
            originals.rewrite_rules(path)
    return status


def _rule_files(command: Command) -> list[str]:
    """Return the dependency files that the command writes."""
    sources = [word.text for word in command.inputs]
    if command.flags & {"MD", "MMD"}:
        return written_to(command.output, command.output_folder, command.dependencies, sources)
    named = command.output or command.dependencies
    return [named] if command.flags & {"M", "MM"} and named else []


def _folder(command: Command) -> str:
    """Return where the overlay's folder should lie: beside the output."""
    first = command.sources[0].text
    output = command.output or os.path.join(command.output_folder or "", os.path.basename(first))
    return os.path.join(os.path.dirname(output), f".iket-{os.path.basename(output)}")


def _redirected(command: Command, search: Search, program: Program, folder: str) -> tuple[list[str], dict[str, str]]:
    """Return the arguments and the variables by which nvcc compiles the copies, and looks for includes there first."""
    copies = {copy.original: os.path.join(folder, copy.path) for copy in program.copies if copy.original}
    inside = {
        original: os.path.normpath(os.path.join(folder, path))
        for path, original in program.folders.pairs
        if path is not None
    }
    forced = command.forced_files(search)
    changes: dict[Origin, str] = {}

    def change(word: Word, new: Callable[[str], str]) -> None:
        lead, values = split_value(word.text)
        text = lead + ",".join(map(new, values))
        if text != word.text:
            changes[word.origin] = text

    for word in command.sources:
        if word.text in copies:
            changes[word.origin] = copies[word.text]
    for word in command.forced:
        change(word, lambda path: copies.get(forced.get(path, path), path))
    for word in command.folder_words:
        change(word, lambda path: f"{inside[path]},{path}" if path in inside else path)

    def save(number: int, text: str) -> str:
        path = os.path.join(folder, f"options-{number}.txt")
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        return path

    arguments, environment = command.with_words(changes, save)
    for name in SEARCHED:
        paths = environment.get(name, "").split(os.pathsep)
        if not inside.keys().isdisjoint(paths):
            both = (f"{inside[path]}{os.pathsep}{path}" if path in inside else path for path in paths)
            environment[name] = os.pathsep.join(both)
    # What the command names itself comes behind: the folders of the originals were looked into first.
    own = (path for path in program.folders.quoted if path not in command.quoted)
    first, last = quoted_folders(own)
    for option, path in command.host_folders:
        if path in inside:
            first.append(f"-Xcompiler={option},{inside[path]}")
    return [*first, *arguments, *last], environment


class _Originals:
    """Names originals where nvcc has named copies."""

    def __init__(self, program: Program, folder: str) -> None:
        self.folder = os.path.normpath(folder)
        self.originals = {copy.path: copy.original for copy in program.copies}
        self.plan_file = [program.kept.path] if program.kept.path else []

    def of(self, path: str) -> str | None:
        """Return the original of a path; the path itself where it is none of the overlay."""
        if path == DEFINITIONS:
            return None
        relative = os.path.relpath(os.path.normpath(path), self.folder)
        if relative.startswith(".."):
            return path
        return self.originals.get(relative, path) or None

    def in_message(self, line: bytes) -> bytes:
        """Return a line of nvcc's with originals in place of copies."""
        lead = os.fsencode(self.folder)
        if lead not in line:
            return line
        for copy, original in self.originals.items():
            if original:
                line = line.replace(os.path.join(lead, os.fsencode(copy)), os.fsencode(original))
        return line

    def in_rules(self, text: bytes) -> bytes:
        """Return make rules with originals in place of copies."""
        return os.fsencode(mapped(os.fsdecode(text), self.of, self.plan_file))

    def rewrite_rules(self, path: str) -> None:
        """Put originals into a dependency file, if nvcc has written it."""
        try:
            with open(path, "rb") as file:
                before = file.read()
        except OSError:
            return
        if os.fsencode(self.folder) not in before:
            return
        status = os.stat(path)
        with open(path, "wb") as file:
            file.write(self.in_rules(before))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
