# SPDX-License-Identifier: Apache-2.0
"""The static bound of events per warp, on real binaries."""

from __future__ import annotations

import pytest
from toolbox import nvrtc

import iket_rewrite
from iket_rewrite import OptionError

STRAIGHT = """
#include <iket_rewrite/iket.cuh>
extern "C" __global__ void straight(unsigned* out) {
  IKET_RANGE("outer");
  IKET_MARK("one");
  if (blockIdx.x == 3) IKET_MARK("two"); else IKET_MARK("three");
  out[threadIdx.x] = 1;
}
"""
#: A loop without events beside events: it changes nothing.
LOOP_BESIDE = STRAIGHT.replace(
    "out[threadIdx.x] = 1;", "for (unsigned i = 0; i < out[7]; ++i) out[threadIdx.x + i] *= i;"
)
LOOP_AROUND = STRAIGHT.replace('IKET_MARK("one");', 'for (unsigned i = 0; i < out[7]; ++i) IKET_MARK("one");')
UNROLLED = STRAIGHT.replace(
    'IKET_MARK("one");', '_Pragma("unroll") for (int i = 0; i < 5; ++i) { IKET_MARK("one"); out[i] = i; }'
)


@pytest.mark.parametrize(
    ("source", "bound"), [(STRAIGHT, 5), (LOOP_BESIDE, 5), (LOOP_AROUND, None), (UNROLLED, 9)], ids=str
)
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_what_no_loop_repeats_is_counted(source, bound, arch):
    # ptxas may put a tail of its own on each path, so the bound is at least what the source says.
    found = iket_rewrite.event_bound(nvrtc(iket_rewrite.rewrite(source).text, arch))
    if bound is None:
        assert found is None
    else:
        assert found is not None
        assert bound <= found <= bound + 2


def test_a_binary_without_events_has_none(tmp_path):
    cubin = nvrtc('extern "C" __global__ void plain(int* out) { *out = 1; }')
    (tmp_path / "plain.cubin").write_bytes(cubin)
    assert iket_rewrite.event_bound(tmp_path / "plain.cubin") == 0


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(OptionError, match="can not be read"):
        iket_rewrite.event_bound(tmp_path / "nowhere")


def test_a_file_without_device_code_is_named(tmp_path):
    (tmp_path / "text").write_text("text")
    with pytest.raises(iket_rewrite.CubinError, match="text: this is no cubin"):
        iket_rewrite.event_bound(tmp_path / "text")
