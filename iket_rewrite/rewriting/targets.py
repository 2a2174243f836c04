# SPDX-License-Identifier: Apache-2.0
"""What to tell the caller about an architecture.  The rewritten text serves every one; a target only warns."""

from __future__ import annotations

import re

from .. import abi
from ..errors import TargetError
from .notice import Notice

_TARGET = re.compile(r"(?:sm_|compute_)?(\d{2,3})[af]?\Z")


def cuda_arch(target: str) -> int:
    """Return `__CUDA_ARCH__` of a target such as "sm_90a", "compute_100f" or "90".

    Raises:
        TargetError: it names no architecture.
    """
    found = _TARGET.match(target.strip()) if isinstance(target, str) else None
    if found is None:
        raise TargetError(f"unknown target {target!r}", remedy="name an architecture, for example sm_90a")
    return int(found.group(1)) * 10


def warnings(target: str, *, pre_hopper: bool) -> tuple[Notice, ...]:
    """Return what the caller should know when the result is compiled for `target`.

    Raises:
        TargetError: it names no architecture.
    """
    number = cuda_arch(target)
    arch = abi.ARCHES.get(number)
    if arch is not None:
        if arch.evidence == "parser":
            message = f"{target}: NVIDIA's parser accepts these events; nobody has seen them on hardware yet"
            return (Notice(message, slug="unseen-target"),)
        return ()
    if number >= abi.FIRST_CUDA_ARCH:
        message = f"{target}: where IKET records lie there is not known, so its events are left out"
        return (Notice(message, slug="unknown-target"),)
    if pre_hopper:
        return (
            Notice(
                f"{target}: below sm_90 every event overwrites the user's shared memory at offset "
                f"{abi.PRE_HOPPER_OFFSET:#x}, and the runtime does not support it",
                slug="pre-hopper-memory",
            ),
        )
    message = f"{target}: the IKET runtime supports sm_90 and newer; below, events are nothing"
    return (Notice(message, slug="pre-hopper"),)
