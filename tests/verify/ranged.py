# SPDX-License-Identifier: Apache-2.0
"""What iket-verify says of a kernel that is given by its body."""

from __future__ import annotations

from toolbox import nvrtc

import iket_rewrite

ARCHES = ("sm_90a", "sm_100a", "sm_120a")


def report(body: str, arch: str) -> iket_rewrite.Report:
    """Rewrite, compile and judge a kernel of `volatile int* o` and `int n`."""
    text = f'#include <iket_rewrite/iket.cuh>\nextern "C" __global__ void k(volatile int* o, int n) {{\n{body}\n}}\n'
    return iket_rewrite.verify(nvrtc(iket_rewrite.rewrite(text).text, arch))


def rules(body: str, arch: str) -> set[str]:
    """Return the rules of its findings, but for ranges that hold nothing."""
    return {finding.rule for finding in report(body, arch).findings} - {"empty-range"}
