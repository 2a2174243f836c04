# SPDX-License-Identifier: Apache-2.0
"""The generated fixtures are what the generators print today."""

from __future__ import annotations

import subprocess
import sys

import pytest
from toolbox import FIXTURES, ROOT

INTERPRETERS = {"tilelang": sys.executable, "tirx": str(ROOT / ".venv-tirx" / "bin" / "python")}


@pytest.mark.parametrize("generator", INTERPRETERS)
def test_remaking_the_fixtures_changes_nothing(generator, tmp_path):
    folder = FIXTURES / generator
    done = subprocess.run(
        [INTERPRETERS[generator], str(folder / "make.py"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    made = {path.name: path.read_bytes() for path in tmp_path.glob("*.cu")}
    assert made
    assert made == {path.name: path.read_bytes() for path in folder.glob("*.cu")}
