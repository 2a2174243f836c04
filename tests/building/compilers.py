# SPDX-License-Identifier: Apache-2.0
"""Run our compiler commands for tests, with the real nvcc behind them or a stand-in that writes down its call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from toolbox import INCLUDE, NVCC

STAND_IN = """\
#!{python}
import json, os, sys
json.dump({{"arguments": sys.argv[1:], "pid": os.getpid(), "environment": dict(os.environ), "folder": os.getcwd(),
            "files": {{path: open(path).read() for path in sys.argv[1:] if os.path.isfile(path)}}}},
          open({log!r}, "w"))
{then}
"""


def command(name: str, *arguments: str) -> list[str]:
    """Return the command line of one of our commands."""
    return [sys.executable, "-m", f"iket_rewrite.cli.{name}", *arguments]


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of this process without those that change a compilation, and with others."""
    dropped = ("IKET", "IKET_PLAN", "IKET_NVCC", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "IKET_NVCC": NVCC or "nvcc", **variables}


def iket_nvcc(*arguments: str, stdin: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `iket-nvcc` on the real nvcc."""
    line = command("nvcc_command", f"-I{INCLUDE}", *arguments)
    return subprocess.run(line, capture_output=True, text=True, check=False, input=stdin, env=environment(**variables))


def plain_nvcc(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the real nvcc."""
    line = [NVCC or "nvcc", f"-I{INCLUDE}", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=environment(**variables))


class StandIn:
    """A program in nvcc's place that writes down how it was called.

    Args:
        folder: where it lies.
        then: what it does afterwards, in Python.
    """

    def __init__(self, folder: Path, then: str = "") -> None:
        self.path, self.log = folder / "nvcc", folder / "call.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.path.write_text(STAND_IN.format(python=sys.executable, log=str(self.log), then=then))
        self.path.chmod(0o755)

    @property
    def call(self) -> dict:
        """The last call."""
        return json.loads(self.log.read_text())
