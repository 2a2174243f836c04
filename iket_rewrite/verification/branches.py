# SPDX-License-Identifier: Apache-2.0
"""Where indirect jumps lead: ptxas writes the targets of each into the function's `.nv.info` section.

A `switch` becomes such a jump, and on sm_100 a chain of comparisons does too.
"""

from __future__ import annotations

import struct

from .attributes import attributes

#: The attribute that holds the targets.
_INDIRECT_BRANCHES = 0x34
#: Address of the jump, two words of 16 bits that are 0, number of targets; the targets follow.
_JUMP = struct.Struct("<IHHI")


def branch_targets(info: bytes) -> dict[int, tuple[int, ...]]:
    """Return the targets of each indirect jump of a function, by its address.

    Args:
        info: the content of the function's `.nv.info` section; what is not understood of it is left out.
    """
    found: dict[int, tuple[int, ...]] = {}
    for attribute, value in attributes(info):
        if attribute != _INDIRECT_BRANCHES:
            continue
        at = 0
        while at + _JUMP.size <= len(value):
            address, _, _, count = _JUMP.unpack_from(value, at)
            at += _JUMP.size
            if count > (len(value) - at) // 4:
                break
            found[address] = tuple(dict.fromkeys(struct.unpack_from(f"<{count}I", value, at)))
            at += 4 * count
    return found
