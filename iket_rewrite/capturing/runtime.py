# SPDX-License-Identifier: Apache-2.0
"""Find NVIDIA's IKET runtime as it is installed; nothing of it is loaded here.

The wheel `nvidia-cutlass-dsl-libs-base` keeps the package `iket` in a folder of its own that only the umbrella package
puts on the path.  So the folder is looked for beside every entry of the path.  IKET_RUNTIME names another one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import failures

DISTRIBUTION = "nvidia-cutlass-dsl-libs-base"
VARIABLE = "IKET_RUNTIME"
_FOLDER = Path("nvidia_cutlass_dsl", "dsl_packages")
_HEADER = Path("include", "iket", "iket_profiling_session.h")
#: The library that CUDA injects: its name since release 4.8.0, and the one before.
_LIBRARIES = ("libiket_injection.so", "libsmodel_injection.so")


@dataclass(frozen=True, slots=True)
class Runtime:
    """An installed runtime.

    Attributes:
        version: its release, or "unknown".
        folder: what must be on the path for `import iket`.
        library: the library that CUDA injects.
        header: the header of sessions in the process, or None before 4.8.0.
    """

    version: str
    folder: Path
    library: Path
    header: Path | None


def find_runtime(path: Sequence[str] | None = None) -> Runtime:
    """Return the runtime that a path (sys.path by default) leads to.

    Raises:
        CaptureError: none is installed, or it has no library of a name that is known.
    """
    entries = sys.path if path is None else path
    for folder in _folders(entries):
        if (folder / "iket" / "__init__.py").is_file():
            return _read(folder)
    named = os.environ.get(VARIABLE)
    if named:
        raise failures.runtime_missing(VARIABLE, f"is not where {VARIABLE} says: {named} does not hold it")
    raise failures.runtime_missing()


def _folders(entries: Sequence[str]) -> Iterator[Path]:
    named = os.environ.get(VARIABLE)
    if named:
        yield from (Path(named), Path(named) / _FOLDER)
        return
    for entry in entries:
        base = Path(entry or os.curdir)
        yield base / _FOLDER
        # The umbrella package's .pth file has put the folder itself on the path.
        if base.name == _FOLDER.name:
            yield base


def _read(folder: Path) -> Runtime:
    folder = folder.resolve()
    package = folder / "iket"
    version = _version(folder)
    library = next(
        (package / "profiler" / name for name in _LIBRARIES if (package / "profiler" / name).is_file()), None
    )
    if library is None:
        raise failures.runtime_changed(version, str(package), sorted(path.name for path in package.rglob("*.so")))
    header = package / _HEADER
    return Runtime(version, folder, library, header if header.is_file() else None)


def _version(folder: Path) -> str:
    """Read the release off the metadata's folder: asking the packaging machinery takes longer than all the rest."""
    stem = DISTRIBUTION.replace("-", "_")
    for site in folder.parents[:2]:
        for found in sorted(site.glob(f"{stem}-*.dist-info")):
            return found.name.removeprefix(f"{stem}-").removesuffix(".dist-info")
    return "unknown"
