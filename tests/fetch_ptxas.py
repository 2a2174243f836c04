# SPDX-License-Identifier: Apache-2.0
"""Fetch ptxas releases from PyPI, so that the tests can assemble what the rewriter emits with each of them.

python tests/fetch_ptxas.py              # the newest of 12.x and of 13.x
python tests/fetch_ptxas.py 12.4.131     # others
python tests/fetch_ptxas.py --all        # the last of every minor release from 12.4 to 13.5, for the matrix
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("12.9.86", "13.5.37")
#: What `make test-matrix` adds.
MATRIX_RELEASES = (
    "12.4.131",
    "12.5.82",
    "12.6.85",
    "12.8.93",
    "13.0.88",
    "13.1.115",
    "13.2.86",
    "13.3.73",
    "13.4.92",
)


def folder(release: str) -> Path:
    """Return where a release is kept; those of the matrix lie apart, so that they do not slow every other test."""
    if release in MATRIX_RELEASES:
        return ROOT / ".venv-matrix" / f"ptxas-{release}"
    return ROOT / f".venv-ptxas-{release}"


def binary(release: str) -> Path:
    """Return the path of a release's ptxas, fetched or not."""
    inside = "nvidia/cuda_nvcc/bin/ptxas" if release.startswith("12.") else "nvidia/cu13/bin/ptxas"
    return folder(release) / inside


def fetch(release: str) -> None:
    """Install the wheel that holds a release, unless it is there."""
    if not binary(release).is_file():
        package = "nvidia-cuda-nvcc-cu12" if release.startswith("12.") else "nvidia-cuda-nvcc"
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps"]
        subprocess.run([*command, "--target", str(folder(release)), f"{package}=={release}"], check=True)
    print(f"ptxas {release}: {binary(release)}")


if __name__ == "__main__":
    arguments = sys.argv[1:] or RELEASES
    for wanted in (*MATRIX_RELEASES, *RELEASES) if "--all" in arguments else arguments:
        fetch(wanted)
