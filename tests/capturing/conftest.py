# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `run-iket`, and a GPU that is only told of: what is tested is everything around them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from capturing.support import H200, TRACE, StandIn

from iket_rewrite.capturing import run_iket

HERE = Path(__file__).parent


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    script = tmp_path / "run-iket"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "stand_in.py"}" "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    for name in ("CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("IKET_RUN_IKET", str(script))
    monkeypatch.setenv("STAND_IN_TRACE", str(TRACE))
    run_iket._options.cache_clear()
    made = StandIn(monkeypatch, tmp_path)
    made.does()
    made.has(H200)
    yield made
    run_iket._options.cache_clear()
