# SPDX-License-Identifier: Apache-2.0
"""What a program prints: passed through as it comes, its end kept.  On a terminal a line tells how long it takes."""

from __future__ import annotations

import codecs
import json
import sys
import time
import warnings
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..errors import CaptureWarning

_TAIL_LINES = 100
_SHOW_EVERY_S = 0.5


class Tail:
    """The last lines of a stream of bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[str] = deque(maxlen=_TAIL_LINES)
        self._open = ""

    def take(self, data: bytes) -> str:
        """Take what comes; return it as text."""
        text = self._decoder.decode(data)
        *whole, self._open = (self._open + text).split("\n")
        self._lines.extend(line.rstrip("\r") for line in whole)
        return text

    @property
    def text(self) -> str:
        """Return the last lines."""
        return "\n".join([*self._lines, *([self._open] if self._open else [])])

    @property
    def lines(self) -> list[str]:
        """Return them one by one."""
        return self.text.splitlines()


@dataclass
class Pass:
    """One run of the profiled program.

    Attributes:
        tool: what run-iket injected: "tracker" counts, "iket" records.
        status: how it ended, a signal as a negative number; None while it runs.
    """

    tool: str | None
    status: int | None = None


def read_passes(record: Path) -> list[Pass]:
    """Read what the relay wrote down."""
    passes: list[Pass] = []
    if not record.exists():
        return passes
    for line in record.read_text(encoding="utf-8").splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            continue  # a line that is being written
        if values["event"] == "begin":
            passes.append(Pass(values["tool"]))
        elif passes:
            passes[-1].status = values["status"]
    return passes


class Screen:
    """Where the program's output goes, with a line of our own below it on a terminal.

    Args:
        output: gets the program's output; None drops it.
        status: gets our line, where it is a terminal; None is standard error.
    """

    def __init__(self, output: TextIO | None, status: TextIO | None = None) -> None:
        self._output = output
        self._status = sys.stderr if status is None else status
        self._live = self._status is not None and self._status.isatty()
        self._began = time.monotonic()
        self._shown = 0.0
        self._drawn = False
        self._at_line_start = True

    def write(self, text: str) -> None:
        """Pass the program's output on."""
        if self._output is None or not text:
            return
        self._clear()
        try:
            self._pass_on(text, self._output)
        except (OSError, ValueError) as error:
            # Who reads it has gone, or its disk is full: what is recorded is worth the rest of the run all the same.
            self._output = None
            if not isinstance(error, BrokenPipeError):
                warnings.warn(CaptureWarning(f"the command's output is not shown any more: {error}"), stacklevel=6)
        self._at_line_start = text.endswith("\n")

    @staticmethod
    def _pass_on(text: str, output: TextIO) -> None:
        try:
            output.write(text)
        except UnicodeEncodeError as error:
            # The stream knows fewer letters than the program prints.
            output.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
        output.flush()

    def show(self, what: str) -> None:
        """Say what goes on and for how long, now and then."""
        now = time.monotonic()
        if not self._live or now - self._shown < _SHOW_EVERY_S or not self._at_line_start:
            return
        self._shown = now
        self._clear()
        self._status.write(f"{what}, {now - self._began:.0f} s")
        self._status.flush()
        self._drawn = True

    def close(self) -> None:
        """Take our line away."""
        self._clear()

    def _clear(self) -> None:
        if self._drawn:
            self._status.write("\r\x1b[K")
            self._status.flush()
            self._drawn = False
