# SPDX-License-Identifier: Apache-2.0
"""The forms of the two stores, through the ptxas releases at hand: plain, plain is an error each time, no other is."""

from __future__ import annotations

import pytest
from assembling import ARCHES, assemble, knows, releases
from builds import ptx
from verify.planted import bend, rewritten

import iket_rewrite

ELECTED = ("@first st.volatile.shared.b32", "st.volatile.shared.b32")
STAMP, PAYLOAD = "st.volatile.shared.b32 [address], stamp;", "st.volatile.shared.b32 [address+4]"
PLAIN_STAMP, PLAIN_PAYLOAD = STAMP.replace(".volatile", ""), PAYLOAD.replace(".volatile", "")

#: The form, and whether the pair of a payload of 32 bits survives.
FORMS = {
    "plain, plain": (((ELECTED[0], ELECTED[1]), (STAMP, PLAIN_STAMP), (PAYLOAD, PLAIN_PAYLOAD)), False),
    "plain, volatile": (((ELECTED[0], ELECTED[1]), (STAMP, PLAIN_STAMP)), True),
    "elected plain, plain": (((STAMP, PLAIN_STAMP), (PAYLOAD, PLAIN_PAYLOAD)), True),
    "volatile, volatile": ((), True),
}
LANE_ONLY = """
#include <iket_rewrite/iket.cuh>
extern "C" __global__ void kernel(unsigned* data) {
  unsigned value = data[threadIdx.x];
  IKET_RANGE_PUSH("outer", IKET_U32(value));
  data[threadIdx.x + 32] = value;
  IKET_RANGE_POP();
  IKET_MARK("lane", IKET_U32(value * 3u));
  data[threadIdx.x] = value + 1u;
}
"""


def runs() -> list:
    return [
        pytest.param(release, arch, level, form, id=f"{release}-{arch}-{level}-{form}")
        for release in releases()
        for arch in ARCHES
        if knows(release, arch)
        for level in ("-O1", "-O3")
        for form in FORMS
    ]


@pytest.mark.parametrize(("release", "arch", "level", "form"), runs())
def test_a_merged_pair_is_an_error_and_nothing_else_is(release, arch, level, form, tmp_path):
    changes, survives = FORMS[form]
    binary = assemble(ptx(bend(rewritten(LANE_ONLY), *changes), arch), release, arch, level, tmp_path)
    report = iket_rewrite.verify(binary)
    failing = [finding.rule for finding in report.findings if finding.fails]
    assert failing == ([] if survives else ["merged-record"] * 2)


def test_there_is_a_release_to_try():
    assert releases(), "python tests/fetch_ptxas.py"
