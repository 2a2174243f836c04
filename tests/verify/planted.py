# SPDX-License-Identifier: Apache-2.0
"""Binaries with planted faults: real rewritten source, one thing bent in its text, compiled for real."""

from __future__ import annotations

import functools
import re

from toolbox import nvrtc

import iket_rewrite
from iket_rewrite import abi

#: One payload that differs between lanes, one uniform, one 64-bit, a nested pair of ranges, a token range.
SOURCE = """
#include <iket_rewrite/iket.cuh>
extern "C" __global__ void kernel(unsigned* data, unsigned count) {
  __shared__ unsigned tile[256];
  unsigned value = data[threadIdx.x];
  IKET_RANGE_PUSH("outer");
  IKET_MARK("lane", IKET_U32(value));
  tile[threadIdx.x] = value;
  IKET_MARK("uniform", IKET_U32(count));
  IKET_MARK("plain");
  tile[threadIdx.x ^ 1] += count;
  IKET_RANGE_START("span", IKET_U64(value));
  __syncthreads();
  IKET_RANGE_END("span", IKET_U64(value));
  data[threadIdx.x] = tile[threadIdx.x ^ 3];
  IKET_RANGE_POP();
}
"""


def rewritten(source: str = SOURCE, **options) -> str:
    """Return the rewritten text."""
    return iket_rewrite.rewrite(source, **options).text


def bend(text: str, *changes: tuple[str, str]) -> str:
    """Replace texts, each of which must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


@functools.cache
def binary(text: str, arch: str = "sm_90a") -> bytes:
    """Compile; one binary serves several tests."""
    return nvrtc(text, arch)


def bend_array(text: str, symbol: str, offset: int, data: bytes) -> str:
    """Change bytes of the metadata array whose symbol contains `symbol`."""
    found = re.search(rf"(__iket_\w*{symbol}\w*\[\d+\] = \{{)([\d,]+)(\}};)", text)
    assert found, symbol
    values = [int(value) for value in found.group(2).split(",")]
    values[offset : offset + len(data)] = list(data)
    return text[: found.start(2)] + ",".join(map(str, values)) + text[found.end(2) :]


def word(value: int) -> bytes:
    """Return a 32-bit word of metadata."""
    return value.to_bytes(4, "little")


#: Offsets of the words that tests bend.
HEADER_MINOR, HEADER_MAGIC, HEADER_FEATURES = 8, 24, 32
EVENT_ID, EVENT_METHOD, EVENT_PAYLOAD, EVENT_POSITION, EVENT_NAME = 4, 8, 12, 16, 28
RANGE_ID = 8
assert abi.EVENT.size == 60
