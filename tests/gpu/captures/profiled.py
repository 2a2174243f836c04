# SPDX-License-Identifier: Apache-2.0
"""Programs that others capture: run as `python profiled.py NAME`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]


def counted(rounds: int = 3) -> None:
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin())
    kernels.count(rounds)
    print("sum", kernels.result(1)[0])


def two() -> None:
    """Two processes, each with a launch of its own."""
    children = [subprocess.Popen([sys.executable, __file__, "counted", str(rounds)]) for rounds in (2, 5)]
    sys.exit(max(child.wait() for child in children))


def plain() -> None:
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin(), annotated=False)
    kernels.count(3)
    kernels.result(1)


def no_launch() -> None:
    from gpu.captures.launching import begin

    begin()


def parent() -> None:
    """A process that uses CUDA and launches nothing, and its child."""
    no_launch()
    sys.exit(subprocess.run([sys.executable, __file__, "counted"], check=False).returncode)


def nothing() -> None:
    print("no CUDA here")


def second_fails() -> None:
    """It ends well while events are counted, and not while they are recorded."""
    counted()
    with open(os.environ["IKET_INJECTION_CONFIG"], encoding="utf-8") as file:
        if json.load(file)["toolName"] == "iket":
            print("not again", flush=True)
            sys.exit(5)


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(int, sys.argv[2:]))
