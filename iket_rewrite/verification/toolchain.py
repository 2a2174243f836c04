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
import time
from collections.abc import Iterator, Sequence
from functools import cache
from typing import IO

from ..errors import ToolError

_WHEELS = {"nvdisasm": "nvidia-cuda-nvdisasm", "cuobjdump": "nvidia-cuda-cuobjdump"}
#: Where the wheels of CUDA 13 and of CUDA 12 keep their programs, below site-packages.
_WHEEL_FOLDERS = ("nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin", "nvidia/cuda_cuobjdump/bin")
#: Seconds after which a tool counts as hanging; a file of 5 MB takes it six.
TIMEOUT = float(os.environ.get("IKET_TOOL_TIMEOUT", "300"))
_CHUNK = 1 << 16


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
    """A tool that was started; what it prints can be read while it works.

    Args:
        command: the program and its arguments.
        folder: where it runs; None for here.
    """

    def __init__(self, command: Sequence[str], folder: str | None = None) -> None:
        self.command = list(command)
        self._name = os.path.basename(self.command[0])
        self._deadline = time.monotonic() + TIMEOUT
        # Complaints go to a file, so that no second pipe can fill while the first one is read.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed with this object)
        try:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors, cwd=folder
            )
        except OSError as error:
            raise ToolError(f"{self.command[0]} can not be started: {error.strerror or error}") from None

    def chunks(self) -> Iterator[bytes]:
        """Yield what the tool prints, as it comes.

        Raises:
            ToolError: it failed, or did not end in time.
        """
        assert self._process.stdout is not None
        handle = self._process.stdout.fileno()
        while True:
            ready, _, _ = select.select([handle], [], [], max(0.0, self._deadline - time.monotonic()))
            if not ready:
                self.stop()
                raise ToolError(
                    f"{self._name} did not end within {TIMEOUT:.1f} s",
                    remedy="set IKET_TOOL_TIMEOUT to more seconds, or try another release of it",
                )
            data = os.read(handle, _CHUNK)
            if not data:
                break
            yield data
        code = self._process.wait()
        if code != 0:
            raise ToolError(f"{self._name} failed with status {code}: {self._complaint() or 'it said nothing'}")

    def result(self) -> bytes:
        """Wait for the end and return everything that it printed.

        Raises:
            ToolError: it failed, or did not end in time.
        """
        return b"".join(self.chunks())

    def stop(self) -> None:
        """End the tool, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _complaint(self) -> str:
        self._errors.seek(0)
        text = self._errors.read().decode("utf-8", "replace").strip()
        return " ".join(text.split())[-500:]


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
