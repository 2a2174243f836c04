# SPDX-License-Identifier: Apache-2.0
"""The ptxas releases at hand, and PTX that each of them accepts.

Releases: those that `tests/fetch_ptxas.py` put into `.venv-ptxas-*`, nvcc's own, and every file called ptxas below the
folder that the variable IKET_PTXAS_DIR names; the matrix adds those in `.venv-matrix`.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from builds import cuda_arch
from toolbox import ROOT

ARCHES = ("sm_90a", "sm_100a", "sm_120a")
#: The PTX version of each release that may be older than NVRTC's, and the first release that knows an architecture.
_PTX_VERSION = {(12, 4): "8.4", (12, 5): "8.5", (12, 6): "8.5", (12, 8): "8.7", (12, 9): "8.8"}
_FIRST_RELEASE = {900: (12, 0), 1000: (12, 8), 1030: (12, 9), 1100: (13, 0), 1200: (12, 8), 1210: (12, 9)}


@functools.cache
def releases() -> dict[str, Path]:
    """Return the path of every ptxas by its release."""
    return _found([*ROOT.glob(".venv-ptxas-*")])


@functools.cache
def all_releases() -> dict[str, Path]:
    """Return the path of every ptxas by its release, those of the matrix included."""
    return _found([*ROOT.glob(".venv-matrix/*"), *ROOT.glob(".venv-ptxas-*")])


def _found(places: list[Path]) -> dict[str, Path]:
    if "IKET_PTXAS_DIR" in os.environ:
        places.append(Path(os.environ["IKET_PTXAS_DIR"]))
    files = [file for place in places for file in sorted(place.rglob("ptxas")) if os.access(file, os.X_OK)]
    if shutil.which("nvcc"):
        files.append(_of_nvcc())
    found = {release: file for file in files if file is not None and (release := _release(file))}
    return dict(sorted(found.items(), key=lambda item: tuple(map(int, item[0].split(".")))))


def _of_nvcc() -> Path | None:
    """Return the ptxas that nvcc itself starts; nvcc on PATH may be a script that lies elsewhere."""
    done = subprocess.run(["nvcc", "--dryrun", "-x", "cu", os.devnull], capture_output=True, text=True, check=False)
    found = re.search(r"^#\$ _HERE_=(.*)$", done.stderr, re.MULTILINE)
    path = Path(found.group(1), "ptxas") if found else None
    return path if path and path.is_file() else None


def _release(ptxas: Path) -> str:
    done = subprocess.run([str(ptxas), "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    return found.group(1) if found else ""


def lowered(text: str, release: str) -> str:
    """Return PTX that an older release accepts: nothing in it is newer than its version line says."""
    version = _PTX_VERSION.get(tuple(map(int, release.split(".")[:2])))
    return re.sub(r"^\.version .*$", f".version {version}", text, count=1, flags=re.MULTILINE) if version else text


def knows(release: str, arch: str) -> bool:
    """Say whether a release can assemble for an architecture."""
    return tuple(map(int, release.split(".")[:2])) >= _FIRST_RELEASE[cuda_arch(arch)]


def assemble(text: str, release: str, arch: str, level: str, folder: Path) -> bytes:
    """Assemble PTX with a release at an optimisation level."""
    return assemble_with(releases()[release], text, release, arch, level, folder)


def assemble_with(ptxas: Path, text: str, release: str, arch: str, level: str, folder: Path) -> bytes:
    """Assemble PTX with the ptxas at a path."""
    source, output = folder / "module.ptx", folder / "module.cubin"
    source.write_text(lowered(text, release), encoding="utf-8")
    command = [str(ptxas), f"-arch={arch}", level, str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return output.read_bytes()
