# SPDX-License-Identifier: Apache-2.0
"""Fetch older IKET runtimes from PyPI, so that the tests can ask their parsers as well.

python tests/fetch_parsers.py            # 4.6.0 and 4.7.1
python tests/fetch_parsers.py 4.6.3      # others
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASES = ("4.6.0", "4.7.1")
PACKAGE = "nvidia-cutlass-dsl-libs-base"


def folder(release: str) -> Path:
    """Return where a release is kept."""
    return ROOT / f".venv-parser-{release}"


def packages(release: str) -> Path | None:
    """Return the folder that holds a release's package `iket`, or None where it is not fetched."""
    found = next(folder(release).rglob("iket/__init__.py"), None)
    return found.parents[1] if found else None


def fetch(release: str) -> None:
    """Install the wheel of a release without what it depends on: the parser needs nothing."""
    if packages(release) is None:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps"]
        subprocess.run([*command, "--target", str(folder(release)), f"{PACKAGE}=={release}"], check=True)
    print(f"runtime {release}: {packages(release)}")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or RELEASES:
        fetch(wanted)
