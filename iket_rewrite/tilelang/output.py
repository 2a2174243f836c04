# SPDX-License-Identifier: Apache-2.0
"""Where traces go, and the command that collects one.  Nothing here runs a profiler."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from . import active
from .active import Settings
from .faults import SessionError
from .handover import Handover

VARIABLE = "TL_IKET_OUTPUT_DIR"
_PathLike = str | os.PathLike[str]
#: NVIDIA's wheel keeps the runtime's Python package in a folder that may not be on the path.
_RUNTIME_FOLDER = os.path.join("nvidia_cutlass_dsl", "dsl_packages")
_TVM = re.compile(r"tilelang[\\/]3rdparty")


def _write(value: str | None) -> None:
    if value is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = value


#: The variable, as sessions find it and restore it.
_variable: Handover[str | None] = Handover(lambda: os.environ.get(VARIABLE), _write)


def start(owner: object, settings: Settings, directory: _PathLike | None) -> None:
    """Begin a session, with a folder of its own or none.  Callers hold the package's lock."""
    folder = None if directory is None else _made(directory)
    _variable.start(owner)
    if folder is not None:
        settings.output_dir = folder
        _write(str(folder))


def stop(owner: object) -> None:
    """End a session.  Callers hold the package's lock."""
    _variable.end(owner)


def _made(path: _PathLike) -> Path:
    folder = _absolute(path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _absolute(path: _PathLike) -> Path:
    return Path(path).expanduser().absolute()


def set_output_dir(path: _PathLike | None) -> Path | None:
    """Set the folder for traces, make it, and name it in TL_IKET_OUTPUT_DIR; None unsets both.

    In a session it holds until the session ends.

    Returns:
        The folder as an absolute path.
    """
    folder = None if path is None else _made(path)
    with active.lock:
        active.settings().output_dir = folder
        _write(None if folder is None else str(folder))
    return folder


def output_dir(default: _PathLike | None = None) -> Path | None:
    """Return the folder for traces: as set, else from TL_IKET_OUTPUT_DIR, else the default, as an absolute path."""
    folder = active.settings().output_dir
    if folder is not None:
        return folder
    value = os.environ.get(VARIABLE) or default
    return None if value is None else _absolute(value)


def output_path(name: str, *, directory: _PathLike | None = None) -> Path:
    """Return the path of a file in the given folder, or in the folder for traces; the folder is made.

    Raises:
        SessionError: there is no such folder.
    """
    folder = _folder(directory)
    if folder is None:
        raise SessionError("no folder for traces is set", remedy="call set_output_dir, or give directory=")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def trace_files(*, directory: _PathLike | None = None) -> list[Path]:
    """Return the traces (`*.trace.json`) in the given folder, or in the folder for traces, largest first."""
    folder = _folder(directory)
    if folder is None or not folder.is_dir():
        return []
    sized = ((-path.stat().st_size, path) for path in folder.glob("*.trace.json"))
    return [path for _, path in sorted(sized)]


def _folder(directory: _PathLike | None) -> Path | None:
    return output_dir() if directory is None else _absolute(directory)


def profile_command(
    command: str | Sequence[str | os.PathLike[str]],
    *,
    directory: _PathLike | None = None,
    postprocess: str = "all",
    clobber: bool = True,
) -> str:
    """Return the command line that runs a program under NVIDIA's profiler; it is not run.

    Args:
        command: the program: a list of arguments, which are quoted, or a text for the shell, which stays as it is.
        directory: where traces go; None is the folder for traces.
        postprocess: which files are made of a capture.
        clobber: whether an earlier capture there is replaced.

    Raises:
        SessionError: there is no folder.
    """
    folder = _folder(directory)
    if folder is None:
        raise SessionError("no folder for traces is set", remedy="call set_output_dir, or give directory=")
    parts = [*_profiler(), "--output-dir", str(folder), *(["--clobber"] if clobber else [])]
    parts += ["profile", "--postprocess", postprocess, "--"]
    own = command if isinstance(command, str) else shlex.join(os.fspath(item) for item in command)
    return f"{shlex.join(parts)} {own}"


def _profiler() -> list[str]:
    """Return how the runtime of this environment is started; where it has none, how its guide starts it."""
    module = ["-m", "iket.cli.main"]
    for entry in sys.path:
        folder = os.path.abspath(os.path.join(entry, _RUNTIME_FOLDER))
        # That this process finds it, having put it on its path, does not help another one.
        if os.path.isdir(os.path.join(folder, "iket")):
            # The program finds what it finds now; TileLang, once imported, adds folders of its own.
            known = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and not _TVM.search(one)]
            return ["env", f"PYTHONPATH={os.pathsep.join([*known, folder])}", sys.executable, *module]
    return [sys.executable if find_spec("iket") is not None else "python", *module]
