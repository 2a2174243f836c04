# SPDX-License-Identifier: Apache-2.0
"""Call nvcc as it was called, on rewritten copies where the sources are annotated.

Without annotations nvcc takes our place at once, with unchanged arguments.  With them the copies lie in a folder beside
the output while nvcc runs, always the same one, so that a compiler cache behind us meets the same names again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from .command_line import Command
from .reached import Tree
from .search import Search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .program import Program


def compile_with(
    nvcc: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]
) -> int:
    """Run nvcc; return its exit status, or do not return where nvcc takes our place.

    Args:
        nvcc: the command that runs the real nvcc.
        arguments: its arguments.
        environment: the variables.
        say: takes what the author should know.

    Raises:
        IketError: the sources can not be rewritten; nvcc was not called.
        ToolError: nvcc can not be started.
    """
    command = Command(arguments, environment)
    sources = [word.text for word in command.sources]
    if "-" in sources:
        return _compile_standard_input(nvcc, command, say)
    tree = tree_of(command, {})
    if tree is None or not tree.hinted():
        become(nvcc, arguments)
    return _compile_tree(nvcc, command, tree, say)


def tree_of(command: Command, given: Mapping[str, bytes]) -> Tree | None:
    """Return the files of a command; None where there is nothing to rewrite, or nvcc has to say what is wrong."""
    sources = [word.text for word in command.sources]
    if not sources or not all(os.path.isfile(path) or path in given for path in sources):
        return None
    tree = Tree(Search(command.quoted, command.folders), given)
    for path in (*command.forced_files(tree.search).values(), *sources):
        if not os.access(path, os.R_OK) and path not in given:
            return None
        tree.add(path)
    return tree


def become(nvcc: Sequence[str], arguments: Sequence[str]) -> NoReturn:
    """Let nvcc take the place of this process.

    Raises:
        ToolError: it can not be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(nvcc[0], [*nvcc, *arguments])
    except OSError as error:
        from ..errors import ToolError

        raise ToolError(f"{nvcc[0]} can not be started: {error.strerror or error}") from None


def _compile_standard_input(nvcc: Sequence[str], command: Command, say: Callable[[str], None]) -> int:
    from .child import run_child

    data = sys.stdin.buffer.read()
    tree = tree_of(command, {"-": data})
    if tree is None or not tree.hinted():
        return run_child([*nvcc, *command.arguments], command.environment, data=data)
    return _compile_tree(nvcc, command, tree, say)


def _compile_tree(nvcc: Sequence[str], command: Command, tree: Tree, say: Callable[[str], None]) -> int:
    from .overlaid import compile_overlaid, program_of_command

    program = program_of_command(command, tree)
    _tell(program, say)
    if not program.changed:
        if "-" not in program.sources:
            become(nvcc, command.arguments)
        from .child import run_child

        (data,) = (file.data for file in tree.files.values() if file.path == "-")
        return run_child([*nvcc, *command.arguments], command.environment, data=data)
    return compile_overlaid(nvcc, command, tree.search, program, say)


def _tell(program: Program, say: Callable[[str], None]) -> None:
    for warning in program.warnings:
        say(str(warning))
