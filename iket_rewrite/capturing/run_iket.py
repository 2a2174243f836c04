# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's `run-iket`: how it is started here, which options it has, and its command line.

The wheel that brings it installs a script that can not import its own package; so the package is started by this
interpreter, with the package's folder on its path and not on the profiled program's.  Options are read from what it
prints for --help: releases differ.  IKET_RUN_IKET names another executable.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import CaptureError
from . import failures
from .runtime import find_runtime

VARIABLE = "IKET_RUN_IKET"
_OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
_TIMEOUT_S = 60.0
#: Python imports the package from its folder and runs its entry point; nothing of it reaches the program's environment.
_START = "import sys; sys.path.append(sys.argv.pop(1)); from iket.cli.main import entrypoint; entrypoint()"


@dataclass(frozen=True, slots=True)
class RunIket:
    """A `run-iket` that can be started.

    Attributes:
        command: how it is started.
        version: the runtime's release, or "unknown".
        options: the options before and after the word profile.
    """

    command: tuple[str, ...]
    version: str
    options: frozenset[str]


def find_command() -> tuple[tuple[str, ...], str]:
    """Return how run-iket is started, and the runtime's release.

    Raises:
        CaptureError: it is nowhere.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise failures.runtime_missing(VARIABLE, f"is not where {VARIABLE} says: {named} is no program")
        # It is started in the command's folder.
        return (os.path.abspath(found),), "unknown"
    try:
        runtime = find_runtime()
    except CaptureError:
        script = shutil.which("run-iket")
        if script is None:
            raise
        return _of_script(script)
    return (sys.executable, "-c", _START, str(runtime.folder)), runtime.version


def _of_script(script: str) -> tuple[tuple[str, ...], str]:
    """Start the run-iket of another environment with that environment's interpreter."""
    python = Path(script).resolve().parent / "python"
    for folder in Path(script).resolve().parents[1].glob("lib/python*/site-packages"):
        if python.exists():
            runtime = find_runtime([str(folder)])
            return (str(python), "-c", _START, str(runtime.folder)), runtime.version
    return (script,), "unknown"


def find_run_iket() -> RunIket:
    """Return run-iket with its options.

    Raises:
        CaptureError: it is nowhere, or does not start.
    """
    command, version = find_command()
    return RunIket(command, version, _options(command))


@cache
def _options(command: tuple[str, ...]) -> frozenset[str]:
    """Read the options from the help of both levels."""
    both = [_started(command, *words, "--help") for words in ((), ("profile",))]
    return frozenset(option for text in (_finished(one) for one in both) for option in _OPTION.findall(text))


def _started(command: tuple[str, ...], *arguments: str) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise unusable(f"{command[0]}: {error.strerror}") from None


def _finished(process: subprocess.Popen[str]) -> str:
    try:
        text, _ = process.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        text, _ = process.communicate()
        raise unusable(f"{text}\nit does not end when asked for --help") from None
    if process.returncode != 0:
        raise unusable(text[-2000:])
    return text


def unusable(printed: str) -> CaptureError:
    """Say that it does not start, with what it printed or why."""
    named = os.environ.get(VARIABLE)
    if named:
        return failures.runtime_missing(VARIABLE, f"does not start: {VARIABLE} names {named}", printed)
    return failures.runtime_missing(why="is installed, and its run-iket does not start", printed=printed)


def arguments(
    found: RunIket,
    command: Sequence[str],
    *,
    folder: Path,
    postprocess: str,
    max_events_per_warp: int | None,
    cluster: Sequence[int] | None,
    warp_lifetimes_only: bool,
) -> list[str]:
    """Return the whole command line.

    Raises:
        CaptureError: this release lacks an option that is needed.
    """

    def option(name: str, *values: str, wanted: str = "", since: str = "") -> list[str]:
        if name in found.options:
            return [name, *values]
        if wanted:
            raise failures.runtime_too_old(found.version, wanted, since)
        return []

    line = [*found.command, "--output-dir", str(folder), *option("--clobber"), *option("--log-level", "warn")]
    line += ["profile", "--postprocess", postprocess, *option("--keep")]
    if max_events_per_warp is not None:
        line += option("--max-ts-cnt-per-warp", str(max_events_per_warp), wanted="max_events_per_warp", since="4.6.0")
    if cluster is not None:
        line += option("--enabled-cluster", ",".join(map(str, cluster)), wanted="one cluster", since="4.8.0")
    if warp_lifetimes_only:
        line += option("--warp-trace", wanted="warp lifetimes only", since="4.6.0")
    return [*line, "--", *command]
