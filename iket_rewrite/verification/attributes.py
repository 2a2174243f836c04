# SPDX-License-Identifier: Apache-2.0
"""The attributes that ptxas writes into `.nv.info` sections, one after the other; what they mean is not known here."""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: The format of attributes that have a length; of the others the value stands where the length would.
_SIZED = 4
_HEAD = struct.Struct("<BBH")


def attributes(info: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the value of each attribute; a damaged rest is left out."""
    at = 0
    while at + _HEAD.size <= len(info):
        form, attribute, size = _HEAD.unpack_from(info, at)
        at += _HEAD.size
        if form == _SIZED:
            yield attribute, info[at : at + size]
            at += size
        else:
            yield attribute, info[at - 2 : at]
