# SPDX-License-Identifier: Apache-2.0
"""Find and run NVIDIA's binary tools.  The one module of this package that starts processes.

Looked for in this order: the variable that names the tool (`IKET_NVDISASM`, `IKET_CUOBJDUMP`), the wheel
(`nvidia-cuda-nvdisasm`, `nvidia-cuda-cuobjdump`), PATH, and the toolkit that CUDA_HOME or CUDA_PATH names.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from typing import IO

from ..errors import ToolError

_WHEELS = {"nvdisasm": "nvidia-cuda-nvdisasm", "cuobjdump": "nvidia-cuda-cuobjdump"}
#: Where the wheels of CUDA 13 and of CUDA 12 keep their programs, below site-packages.
_WHEEL_FOLDERS = ("nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin", "nvidia/cuda_cuobjdump/bin")
#: Seconds after which a tool counts as hanging; a file of 5 MB takes it six.
TIMEOUT = float(os.environ.get("IKET_TOOL_TIMEOUT", "300"))


@cache
def find_tool(name: str) -> str:
    """Return the path of a tool.

    Raises:
        ToolError: it is nowhere.
    """
    variable = f"IKET_{name.upper()}"
    named = os.environ.get(variable)
    if named:
        if shutil.which(named) is None:
            raise ToolError(f"{variable} names {named}, which can not be run")
        return named
    for candidate in (_in_wheel(name), shutil.which(name), *_in_toolkits(name)):
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise ToolError(f"{name} is not installed", remedy=f"pip install {_WHEELS[name]}, or set {variable} to its path")


def _in_wheel(name: str) -> str | None:
    """Look where the wheels put it; asking the packaging metadata would take longer than the tool's start."""
    paths = (os.path.join(entry, folder, name) for entry in sys.path for folder in _WHEEL_FOLDERS)
    return next((path for path in paths if os.path.isfile(path)), None)


def _in_toolkits(name: str) -> list[str]:
    roots = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    return [os.path.join(root, "bin", name) for root in roots if root]


class RunningTool:
    """A tool that was started; its output goes to files, so that no pipe fills while we do something else.

    Args:
        command: the program and its arguments.
        folder: where it runs; None for here.
    """

    def __init__(self, command: Sequence[str], folder: str | None = None) -> None:
        self.command = list(command)
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed with this object)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=self._output, stderr=self._errors, cwd=folder
            )
        except OSError as error:
            raise ToolError(f"{self.command[0]} can not be started: {error.strerror or error}") from None

    def result(self) -> bytes:
        """Wait for the end and return what it printed.

        Raises:
            ToolError: it failed, or did not end in time.
        """
        try:
            code = self._wait()
        except subprocess.TimeoutExpired:
            self.stop()
            raise ToolError(
                f"{os.path.basename(self.command[0])} did not end within {TIMEOUT:.0f} s",
                remedy="set IKET_TOOL_TIMEOUT to more seconds, or try another release of it",
            ) from None
        if code != 0:
            name = os.path.basename(self.command[0])
            raise ToolError(f"{name} failed with status {code}: {self._tail() or 'it said nothing'}")
        return _content(self._output)

    def _wait(self) -> int:
        """Wait for the end; where the system can tell of it, without asking again and again as `wait` does."""
        try:
            handle = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            return self._process.wait(timeout=TIMEOUT)
        try:
            select.select([handle], [], [], TIMEOUT)
        finally:
            os.close(handle)
        return self._process.wait(timeout=0.1)

    def stop(self) -> None:
        """End the tool, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _tail(self) -> str:
        text = _content(self._errors).decode("utf-8", "replace").strip()
        return " ".join(text.split())[-500:]


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def run_tool(name: str, arguments: Sequence[str], folder: str | None = None) -> bytes:
    """Run a tool to its end and return what it printed.

    Raises:
        ToolError: it is missing, failed, or did not end in time.
    """
    return RunningTool([find_tool(name), *arguments], folder).result()


@cache
def version_of(name: str) -> str:
    """Return the release of a tool, for example "13.5.37", or "unknown"."""
    for word in run_tool(name, ["--version"]).decode("utf-8", "replace").split():
        if word.startswith("V") and word[1:2].isdigit():
            return word[1:]
    return "unknown"
