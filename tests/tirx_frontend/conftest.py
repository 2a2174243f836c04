# SPDX-License-Identifier: Apache-2.0
"""These tests run in TIRx's own environment (`make test` starts them there): it can not share one with TileLang."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

if find_spec("tvm_tirx") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def _toolkit(tmp_path_factory):
    """Lay the wheels' headers out as a toolkit has them: TIRx looks for `cccl` in `targets` only."""
    from toolbox import site_packages

    include = site_packages("nvidia-cuda-runtime", "nvidia/cu13/include")
    toolkit = tmp_path_factory.mktemp("toolkit")
    (toolkit / "targets" / "x86_64-linux").mkdir(parents=True)
    (toolkit / "targets" / "x86_64-linux" / "include").symlink_to(include)
    os.environ["CUDA_PATH"] = str(toolkit)
