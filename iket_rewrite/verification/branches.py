# SPDX-License-Identifier: Apache-2.0
"""Where indirect jumps lead: ptxas writes the targets of each into the function's `.nv.info` section.

A `switch` becomes such a jump, and on sm_100 a chain of comparisons does too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: The attribute that holds the targets, and the format of attributes that have a length.
_INDIRECT_BRANCHES, _SIZED = 0x34, 4
_HEAD = struct.Struct("<BBH")
#: Address of the jump, two words of 16 bits that are 0, number of targets; the targets follow.
_JUMP = struct.Struct("<IHHI")


def branch_targets(info: bytes) -> dict[int, tuple[int, ...]]:
    """Return the targets of each indirect jump of a function, by its address.

    Args:
        info: the content of the function's `.nv.info` section; what is not understood of it is left out.
    """
    found: dict[int, tuple[int, ...]] = {}
    for value in _values(info):
        at = 0
        while at + _JUMP.size <= len(value):
            address, _, _, count = _JUMP.unpack_from(value, at)
            at += _JUMP.size
            if count > (len(value) - at) // 4:
                break
            found[address] = tuple(dict.fromkeys(struct.unpack_from(f"<{count}I", value, at)))
            at += 4 * count
    return found


def _values(info: bytes) -> Iterator[bytes]:
    """Yield the values of the attribute."""
    at = 0
    while at + _HEAD.size <= len(info):
        form, attribute, size = _HEAD.unpack_from(info, at)
        at += _HEAD.size
        if form == _SIZED:
            if attribute == _INDIRECT_BRANCHES:
                yield info[at : at + size]
            at += size
