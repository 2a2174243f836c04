# SPDX-License-Identifier: Apache-2.0
"""What the linter says of source, iket-verify says of the machine code: the same kernels do not pair up."""

from __future__ import annotations

import re

import pytest
from toolbox import FIXTURES, nvrtc

import iket_rewrite

_KERNEL = re.compile(r"__global__ void (\w+)")
_PAIRING = ("push-without-pop", "pop-without-push", "start-without-end", "end-without-start")


@pytest.mark.parametrize("stem", ["open_ranges", "pops_without_push", "token_ends"])
def test_a_kernel_is_told_of_where_its_machine_code_is(stem):
    text = (FIXTURES / "lint" / "faults" / f"{stem}.cu").read_text(encoding="utf-8")
    report = iket_rewrite.verify(nvrtc(iket_rewrite.rewrite(text).text))
    unbalanced = {re.sub(r"^_Z\d+", "", one.kernel or "") for one in report.findings if one.rule == "unbalanced-range"}
    starts = {text[: found.start()].count("\n") + 1: found.group(1) for found in _KERNEL.finditer(text)}
    told = set()
    for finding in iket_rewrite.lint(text):
        assert finding.id in _PAIRING
        told.add(starts[max(line for line in starts if line <= finding.place.line)])
    # The machine code has the parameters behind the name.
    assert {name for name in starts.values() if any(one.startswith(name) for one in unbalanced)} == told


@pytest.mark.parametrize("stem", ["early_exits", "goto_cleanup", "persistent_loop", "matching_branches", "look_back"])
def test_a_clean_kernel_is_clean_in_machine_code(stem):
    text = (FIXTURES / "lint" / "clean" / f"{stem}.cu").read_text(encoding="utf-8")
    report = iket_rewrite.verify(nvrtc(iket_rewrite.rewrite(text).text))
    assert report.ok, report.findings
