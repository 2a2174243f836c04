# SPDX-License-Identifier: Apache-2.0
"""Build the wheel, install it in an empty environment elsewhere, and rewrite a fixture with it.

What it would catch: a template or a header that is not in the wheel, a dependency that is not declared, a console
script that does not start.  The environment is far from the checkout, so that nothing of it can help.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIXTURE = ROOT / "fixtures" / "cuda" / "tiled_gemm.cu"


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command and return its output; end with its message where it fails."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Do it in a temporary folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
        run(*pip, "wheel", "--no-deps", "-w", folder / "dist", ROOT, cwd=folder)
        wheels = list((folder / "dist").glob("*.whl"))
        if len(wheels) != 1:
            sys.exit(f"one wheel expected, {len(wheels)} found")
        venv.create(folder / "venv", with_pip=True)
        binaries = folder / "venv" / "bin"
        run(binaries / "python", "-m", "pip", "--disable-pip-version-check", "-q", "install", wheels[0], cwd=folder)
        source = folder / "kernel.cu"
        source.write_bytes(FIXTURE.read_bytes())
        run(binaries / "iket-rewrite", source, cwd=folder)
        run(binaries / "iket-profile", "--version", cwd=folder)
        text = (folder / "kernel.iket.cu").read_text(encoding="utf-8")
        header = Path(run(binaries / "iket-rewrite", "--print-include-dir", cwd=folder).strip())
        if "__iket_meta_info" not in text or not (header / "iket_rewrite" / "iket.cuh").is_file():
            sys.exit("the installed wheel does not rewrite, or lacks its header")
        if ROOT in header.parents:
            sys.exit("the header was found in the checkout, not in the wheel")
    print(f"{wheels[0].name}: installs and rewrites in an empty environment")


if __name__ == "__main__":
    main()
