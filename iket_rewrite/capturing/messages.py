# SPDX-License-Identifier: Apache-2.0
"""What the runtime says: it prints into the process's standard output and error, beside what it returns.

While one of its functions runs, both go to files, are searched for its words, and everything else goes on where it
belongs.  The program's own code is not redirected.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

#: For example: [2026-11-29 20:52:22.617] [IketInjectionManager] [error] IKET could not ...
_LINE = re.compile(r"^\[[-0-9: .]+\] \[(?:Iket\w*|iket\w*|SModel\w*)\] \[(?:warning|warn|error|critical)\] (.*)$")
#: Lines of the runtime without that head start so.
_PLAIN = ("IKET ", "Trace incomplete:")
#: The runtime's words for warps that had more events than the budget allows.
_DROPPED = re.compile(r"Trace incomplete: (\d+) warp record.*?maxTsCntPerWarp=(\d+) .*?kernel: (.+?)\. Raise")
_BUFFER = re.compile(r"trace buffer is too small.*?at least (\d+) bytes")


@dataclass(frozen=True, slots=True)
class Dropped:
    """Warps whose record is missing, since they had more events than the budget allows.

    Attributes:
        kernel: whose they are.
        warps: how many.
        budget: how many events a warp was allowed.
    """

    kernel: str
    warps: int
    budget: int


def dropped_warps(messages: Sequence[str]) -> list[Dropped]:
    """Return what the runtime says of warps that it dropped."""
    found = [match for line in messages if (match := _DROPPED.search(line))]
    return [Dropped(match.group(3), int(match.group(1)), int(match.group(2))) for match in found]


def wanted_buffer(messages: Sequence[str]) -> int | None:
    """Return how many bytes of device memory the runtime asks for, or None where it has not complained."""
    sizes = [int(match.group(1)) for line in messages if (match := _BUFFER.search(line))]
    return max(sizes, default=None)


def words_of(line: str) -> str | None:
    """Return what the runtime says in a line, or None where the line is not its own."""
    match = _LINE.match(line)
    if match:
        return match.group(1)
    return line if line.startswith(_PLAIN) else None


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Collect what the runtime prints meanwhile."""
    words: list[str] = []
    held = [held for number in (1, 2) if (held := _hold(number)) is not None]
    try:
        yield words
    finally:
        if held:
            # The C library's own buffers must be empty before the files are exchanged again.
            ctypes.CDLL(None).fflush(None)
        for number, original, file in held:
            os.dup2(original, number)
            os.close(original)
            words += _sort(file, number)


def _hold(number: int) -> tuple[int, int, IO[bytes]] | None:
    """Put a file in the place of a descriptor; None where it is closed."""
    try:
        original = os.dup(number)
    except OSError:
        return None
    file = tempfile.TemporaryFile()  # noqa: SIM115  (closed when it has been sorted)
    os.dup2(file.fileno(), number)
    return number, original, file


def _sort(file: IO[bytes], number: int) -> list[str]:
    """Return the runtime's lines, and pass the others on."""
    words = []
    with file:
        file.seek(0)
        for line in file:
            said = words_of(line.decode("utf-8", "replace").rstrip("\r\n"))
            if said is not None:
                words.append(said)
            else:
                with contextlib.suppress(OSError):
                    os.write(number, line)
    return words
