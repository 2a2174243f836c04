# SPDX-License-Identifier: Apache-2.0
"""Find and run NVIDIA's binary tools.  The one module of this package that starts processes.

Looked for in this order: the variable that names the tool (`IKET_NVDISASM`, `IKET_CUOBJDUMP`), the wheel
(`nvidia-cuda-nvdisasm`, `nvidia-cuda-cuobjdump`), PATH, and the toolkit that CUDA_HOME or CUDA_PATH names.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, NoReturn

    from ..errors import ToolError

_WHEELS = {"nvdisasm": "nvidia-cuda-nvdisasm", "cuobjdump": "nvidia-cuda-cuobjdump"}
#: Where the wheels of CUDA 13 and of CUDA 12 keep their programs, below site-packages.
_WHEEL_FOLDERS = ("nvidia/cu13/bin", "nvidia/cuda_nvdisasm/bin", "nvidia/cuda_cuobjdump/bin")
#: Seconds after which a tool counts as hanging: at least, and for each megabyte of its file, which takes it about one.
_PATIENCE, _PATIENCE_PER_MB = 60.0, 30.0
_CHUNK = 1 << 16
#: What Linux grants to everyone.
_PIPE = 1 << 20


def _fault(message: str, *, remedy: str = "") -> ToolError:
    # Imported here: `iket-verify` starts nvdisasm first and imports while it works.
    from ..errors import ToolError

    return ToolError(message, remedy=remedy)


@cache
def find_tool(name: str) -> str:
    """Return the path of a tool.

    Raises:
        ToolError: it is nowhere.
    """
    variable = f"IKET_{name.upper()}"
    named = os.environ.get(variable)
    if named:
        if _on_path(named) is None:
            raise _fault(f"{variable} names {named}, which can not be run")
        return named
    found = _in_wheel(name) or _on_path(name) or _in_toolkits(name)
    if found is None:
        raise _fault(f"{name} is not installed", remedy=f"pip install {_WHEELS[name]}, or set {variable} to its path")
    return found


def _in_wheel(name: str) -> str | None:
    """Look where the wheels put it; asking the packaging metadata would take longer than the tool's start."""
    paths = (os.path.join(entry, folder, name) for entry in sys.path for folder in _WHEEL_FOLDERS)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _on_path(name: str) -> str | None:
    # Imported here: it takes as long as half of Python's start, and most machines have the wheel.
    import shutil

    return shutil.which(name)


def _in_toolkits(name: str) -> str | None:
    roots = (os.environ.get(variable) for variable in ("CUDA_HOME", "CUDA_PATH"))
    paths = (os.path.join(root, "bin", name) for root in roots if root)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def _patience(path: str) -> float:
    """Return after how many seconds a tool that reads a file counts as hanging."""
    named = os.environ.get("IKET_TOOL_TIMEOUT")
    try:
        size = os.path.getsize(path)
    except OSError:
        size = 0
    try:
        return float(named) if named else _PATIENCE + _PATIENCE_PER_MB * size / 1e6
    except ValueError:
        raise _fault(f"IKET_TOOL_TIMEOUT is no number of seconds: {named}") from None


class RunningTool:
    """A tool that was started; what it prints can be read while it works.

    Args:
        command: the program and its arguments.
        folder: where it runs; None for here.
    """

    def __init__(self, command: Sequence[str], folder: str | None = None) -> None:
        self.command = list(command)
        self._name = os.path.basename(self.command[0])
        self.seconds = _patience(self.command[-1])
        self._deadline = time.monotonic() + self.seconds
        self._complaints = bytearray()
        try:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder
            )
        except OSError as error:
            raise _fault(f"{self.command[0]} can not be started: {error.strerror or error}") from None
        _widen(self._process.stdout)

    def chunks(self) -> Iterator[bytes]:
        """Yield what the tool prints, as it comes.

        Raises:
            ToolError: it failed, or did not end in time.
        """
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        printed, complained = self._process.stdout.fileno(), self._process.stderr.fileno()
        # Both are read as they come, so that neither pipe can fill while the other is waited for.
        with selectors.DefaultSelector() as ready:
            ready.register(printed, selectors.EVENT_READ)
            ready.register(complained, selectors.EVENT_READ)
            while ready.get_map():
                events = ready.select(max(0.0, self._deadline - time.monotonic()))
                if not events or (time.monotonic() > self._deadline and self._process.poll() is None):
                    self._give_up()
                for key, _ in events:
                    data = os.read(key.fd, _CHUNK)
                    if not data:
                        ready.unregister(key.fd)
                    elif key.fd == printed:
                        yield data
                    else:
                        self._complaints += data
        code = self._process.wait()
        self.stop()
        if code != 0:
            raise _fault(f"{self._name} failed with status {code}: {self._complaint() or 'it said nothing'}")

    def _give_up(self) -> NoReturn:
        from ..errors import ToolTimeoutError

        self.stop()
        raise ToolTimeoutError(
            f"{self._name} did not end within {self.seconds:.1f} s",
            remedy="set IKET_TOOL_TIMEOUT to more seconds, or try another release of it",
        )

    def result(self) -> bytes:
        """Wait for the end and return everything that it printed.

        Raises:
            ToolError: it failed, or did not end in time.
        """
        return b"".join(self.chunks())

    def stop(self) -> None:
        """End the tool, if it still runs, and let go of its pipes."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _complaint(self) -> str:
        text = self._complaints.decode("utf-8", "replace")
        return " ".join(text.split())[-500:]


def _widen(pipe: IO[bytes] | None) -> None:
    """Let a tool print on while what it has printed is worked on, where the system has wider pipes (Linux)."""
    try:
        from fcntl import F_SETPIPE_SZ, fcntl

        if pipe is not None:
            fcntl(pipe.fileno(), F_SETPIPE_SZ, _PIPE)
    except (ImportError, OSError):
        pass


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
