# SPDX-License-Identifier: Apache-2.0
"""What a range is about, told from the instructions between its ends, by rules that docs/baseline.md states."""

from __future__ import annotations

from collections import Counter
from enum import Enum

from .instruction_classes import InstructionClass as Is


class Label(Enum):
    """What a range is about."""

    EMPTY = "empty"
    ISSUE = "issue only"
    WAIT = "wait"
    MEMORY = "memory"
    COMPUTE = "compute"


#: Of what a range holds, what says nothing of what it is about.
_SILENT = frozenset((Is.CONTROL, Is.OTHER))
#: Addresses take a few integer instructions for each access; more than this are the range's own work.
_INTEGERS_PER_ACCESS = 8


def label_of(counts: Counter[Is], *, completes: bool) -> Label:
    """Return what a range is about.

    Args:
        counts: its instructions by class, those of its events left out.
        completes: it holds a matrix product that is there when the instruction behind it runs (not wgmma, not tcgen05).
    """
    if not any(count for found, count in counts.items() if found not in _SILENT):
        return Label.EMPTY
    far = counts[Is.GLOBAL] + counts[Is.GENERIC] + counts[Is.LOCAL]
    accesses = far + counts[Is.SHARED] + counts[Is.TENSOR_MEMORY]
    waits, floats = counts[Is.WAIT], counts[Is.FLOAT]
    if counts[Is.MMA]:
        return Label.COMPUTE if waits or completes else Label.ISSUE
    if counts[Is.COPY]:
        if not waits and not accesses:
            return Label.ISSUE
        return Label.COMPUTE if floats > counts[Is.COPY] + accesses else Label.MEMORY
    if waits and not accesses and not floats:
        return Label.WAIT
    if floats and floats >= far and 2 * floats >= accesses:
        return Label.COMPUTE
    if accesses:
        return Label.COMPUTE if counts[Is.INTEGER] > _INTEGERS_PER_ACCESS * accesses else Label.MEMORY
    # Signals alone, such as an arrival at a barrier, are done when they are issued.
    return Label.COMPUTE if floats or counts[Is.INTEGER] else Label.ISSUE
