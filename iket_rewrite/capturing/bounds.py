# SPDX-License-Identifier: Apache-2.0
"""How many events a warp can record, told from the machine code, where that is certain: outside loops.

What a loop repeats is not known from the code, so a kernel with an event in a loop has no bound here; the first pass
of `iket-profile` counts those.  A warp whose lanes part and never come together again may record more.
"""

from __future__ import annotations

import os
import tempfile

from ..errors import CubinError
from ..verification.containers import Image, opened
from ..verification.core import read
from ..verification.cubin import Function, read_cubin
from ..verification.disassembly import show
from ..verification.flow import Flow
from ..verification.records import TRIGGER
from ..verification.sass import Listing


def event_bound(binary: str | os.PathLike[str] | bytes) -> int | None:
    """Return the most events that a warp of any kernel in a binary records, or None where a loop decides.

    It is a budget for `capture(max_events_per_warp=...)`.  It needs nvdisasm, and no GPU.

    Args:
        binary: a cubin, a fatbin, an object file, a shared library or an executable.

    Raises:
        CubinError: it can not be read.
        ToolError: nvdisasm is missing.
        OptionError: the file can not be read.
    """
    if not isinstance(binary, (bytes, bytearray, memoryview)):
        path = os.fspath(binary)
        try:
            return _bound(path, read(path))
        except CubinError as error:
            raise CubinError(f"{path}: {error.message}", remedy=error.remedy) from None
    with tempfile.NamedTemporaryFile(prefix="iket-") as file:
        file.write(binary)
        file.flush()
        return _bound(file.name, bytes(binary))


def _bound(path: str, data: bytes) -> int | None:
    with opened(path, data) as container:
        bounds = [bound for image in container.images for bound in _of_image(image)]
    return None if None in bounds else max((bound for bound in bounds if bound is not None), default=0)


def _of_image(image: Image) -> list[int | None]:
    """Return the bound of each function with events."""
    cubin = read_cubin(image.data)
    functions = [function for function in cubin.functions if function.triggers]
    # A device function that is called counts as often as it is called, which is not followed.
    if any(function.calls_events for function in cubin.functions) or not all(one.entry for one in functions):
        return [None]
    failures: dict[str, str] = {}
    shown = {listing.name: listing for listing in show(image.path, cubin, functions, None, failures)}
    return [_of_function(function, shown.get(function.name)) for function in functions]


def _of_function(function: Function, listing: Listing | None) -> int | None:
    if listing is None:
        return None
    flow = Flow(listing.instructions)
    triggers = [index for index, one in enumerate(flow.instructions) if one.opcode.split(".", 1)[0] == TRIGGER]
    blocks = {flow.block_of(index) for index in triggers}
    return None if any(_comes_back(flow, block) for block in blocks) else len(triggers)


def _comes_back(flow: Flow, start: int) -> bool:
    """Say whether a block can be met again, or a jump behind it leads where nobody knows."""
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        block = flow.blocks[waiting.pop()]
        if block.unknown_successor or start in block.successors:
            return True
        waiting += [one for one in block.successors if one not in seen]
        seen.update(block.successors)
    return False
