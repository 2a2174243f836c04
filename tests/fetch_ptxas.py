# SPDX-License-Identifier: Apache-2.0
"""Fetch ptxas releases from PyPI, so that the tests can assemble what the rewriter emits with each of them.

python tests/fetch_ptxas.py              # the newest of 12.x and of 13.x
python tests/fetch_ptxas.py 12.4.131     # others
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("12.9.86", "13.5.37")


def folder(release: str) -> Path:
    """Return where a release is kept."""
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
    for wanted in sys.argv[1:] or RELEASES:
        fetch(wanted)
