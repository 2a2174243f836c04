# SPDX-License-Identifier: Apache-2.0
"""The circle closes: what iket-verify refuses dies under run-iket, and what it passes is captured."""

from __future__ import annotations

import subprocess

import pytest
from gpu.capture import prepared, profile, run_iket
from gpu.conftest import arch_here
from verify.planted import bend, binary, rewritten

import iket_rewrite

JOB = {"kernel": "kernel", "grid": [2], "block": [64], "arguments": [{"words": 256}, {"u32": 3}]}


def merged() -> str:
    """Return rewritten text whose stores ptxas may merge."""
    return bend(rewritten(), ("st.volatile.shared.b32", "st.shared.b32"))


@pytest.mark.parametrize("sound", [True, False])
def test_what_the_verifier_says_is_what_the_runtime_does(sound, tmp_path):
    text, arch = rewritten() if sound else merged(), arch_here()
    rules = {finding.rule for finding in iket_rewrite.verify(binary(text, arch)).findings if finding.fails}
    command = prepared(text, tmp_path, arch=arch, **JOB)
    # Without the runtime both run.
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    if sound:
        assert rules == set()
        launches = profile(command, tmp_path / "trace")["launches"]
        assert [launch["kernelName"] for launch in launches] == ["kernel"]
        assert len(launches[0]["markers"]) == 2 * 2 * 3
    else:
        assert rules == {"merged-record"}
        done = run_iket(command, tmp_path / "trace")
        assert not list((tmp_path / "trace").glob("*.trace.json"))
        said = done.stdout + done.stderr
        assert done.returncode != 0 or "-11" in said or "SIGSEGV" in said or "egmentation" in said, said[-2000:]
