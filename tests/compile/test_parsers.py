# SPDX-License-Identifier: Apache-2.0
"""The official parsers of older runtimes read what the newest one reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builds import CUDA, TIRX, cubin
from fetch_parsers import RELEASES, packages
from toolbox import ROOT, Official, iket_runtime

pytestmark = pytest.mark.parsers

BINARIES = [(fixture, arch) for fixture in CUDA for arch in ("sm_90a", "sm_100a", "sm_103a", "sm_120a")]
BINARIES += [(fixture, fixture.arches[0]) for fixture in TIRX]

READER = """
import json, sys
from pathlib import Path
from toolbox import Official, iket_runtime
facts = [vars(Official(Path(name).read_bytes())) for name in sys.argv[1:]]
print(json.dumps({"runtime": iket_runtime().__file__, "facts": facts}))
"""


def normal(facts) -> object:
    """Return what JSON makes of facts, which turns keys into text and tuples into lists."""
    return json.loads(json.dumps(facts))


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("cubins")
    paths = []
    for fixture, arch in BINARIES:
        paths.append(folder / f"{fixture.path.stem}.{arch}.cubin")
        paths[-1].write_bytes(cubin(fixture, arch))
    return paths


@pytest.mark.parametrize("release", RELEASES)
def test_an_older_parser_agrees(release, files):
    folder = packages(release)
    if folder is None:
        pytest.skip(f"the runtime {release} is not fetched: python tests/fetch_parsers.py")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT / "tests"), str(ROOT)))}
    command = [sys.executable, "-c", READER, *map(str, files)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    assert Path(read["runtime"]).is_relative_to(folder)
    newest = [normal(vars(Official(path.read_bytes()))) for path in files]
    assert not Path(iket_runtime().__file__).is_relative_to(folder)
    for path, old, new in zip(files, read["facts"], newest, strict=True):
        assert old == new, path.name
        assert new["instrumented"], path.name
