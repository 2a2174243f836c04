# SPDX-License-Identifier: Apache-2.0
"""The runtime's types of ranges, by number and by name."""

from __future__ import annotations

from .. import abi

#: The runtime's own number of the type of a range.
KIND_TOKEN = abi.EventKind.TOKEN_RANGE.facts.range_type or 0
KIND_PUSH = abi.EventKind.RANGE.facts.range_type or 0
_NAMES = {KIND_PUSH: abi.EventKind.RANGE.value, KIND_TOKEN: abi.EventKind.TOKEN_RANGE.value}


def kind_name(kind: int) -> str:
    """Return the name of a kind of range: "range" (push and pop), "token_range" (start and end), else "type N"."""
    return _NAMES.get(int(kind), f"type {int(kind)}")
