# SPDX-License-Identifier: Apache-2.0
"""What the tests of capturing share: how the stand-in is told what to do, and looks at processes and folders."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from toolbox import FIXTURES

from iket_rewrite.capturing import around_command
from iket_rewrite.capturing.devices import Device, Driver

TRACE = FIXTURES / "trace" / "native_all_payloads.trace.json"
H200 = Driver(13000, (Device("NVIDIA H200", (9, 0)),), None)


@dataclass
class StandIn:
    """How the stand-in is told what to do."""

    patch: pytest.MonkeyPatch
    folder: Path

    def does(self, *words: str) -> None:
        self.patch.setenv("STAND_IN", ",".join(words))

    def has(self, driver: Driver) -> None:
        class Told:
            def __init__(self, environment=None) -> None:
                pass

            def answer(self) -> Driver:
                return driver

            def close(self) -> None:
                pass

        self.patch.setattr(around_command, "Asking", Told)


def python(code: str) -> list[str]:
    """Return a command that runs Python code."""
    return [sys.executable, "-c", code]


#: In code: which pass this is.
WHICH = "import json, os; tool = json.load(open(os.environ['IKET_INJECTION_CONFIG']))['toolName']; "


def alive(pid: int) -> bool:
    """Say whether a process lives; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def listing(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))
