# SPDX-License-Identifier: Apache-2.0
"""The public comparison: a build without marks and one with them in, what the marks change out.  No GPU is needed."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..errors import CubinError, IketError
from .comparison import Build, Comparison, KernelComparison, RangeContent
from .containers import Image, opened
from .core import read
from .cubin import Cubin, Function, read_cubin
from .declarations import Declarations
from .differences import differences
from .disassembly import show
from .event_code import event_instructions
from .flow import Flow
from .kernel_names import Key, matched, without_hash
from .memory_order import compare_orders
from .range_contents import range_contents
from .records import find_records
from .resources import Resources, read_resources
from .sass import Instruction, Listing
from .toolchain import version_of

Binary = str | os.PathLike[str] | bytes


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One build of one kernel: its numbers, its instructions outside the records, its ranges."""

    build: Build
    code: Sequence[Instruction]
    ranges: list[RangeContent]
    undecided: str


def compare_binaries(plain: Binary | None, instrumented: Binary, *, kernel: str | None = None) -> Comparison:
    """Compare a binary with its build without marks, and say what lies between the ends of its ranges.

    Args:
        plain: the build without marks: a cubin, or whatever holds one; None for the ranges alone.
        instrumented: the build with marks.
        kernel: only kernels whose mangled name matches this pattern (`*`, `?`).

    Returns:
        The comparison; `comparison.ok` says whether the marks cost no spill, no shared memory and no barrier, and left
        the memory operations in their order.

    Raises:
        CubinError: a file holds nothing that can be compared, or is damaged.
        ToolError: nvdisasm or cuobjdump is missing, failed, or did not end in time.
        OptionError: a file can not be read.
    """
    result = Comparison(None if plain is None else _name(plain), _name(instrumented))
    after = _kernels(instrumented, kernel)
    before = {} if plain is None else _kernels(plain, kernel, after)
    pairs = matched(before, after)
    lost = [(key, None) for key in before if key not in set(pairs.values())]
    for old_key, new_key in (*((pairs.get(key), key) for key in after), *lost):
        old = before[old_key] if old_key is not None else None
        new = after[new_key] if new_key is not None else None
        arch, name = new_key or old_key or (0, "")
        one = KernelComparison(name, arch)
        if old is not None:
            one.before = old.build
        if new is not None:
            one.after, one.ranges, one.undecided = new.build, new.ranges, new.undecided
        if old is not None and new is not None:
            one.orders = compare_orders(old.code, new.code)
        if plain is not None:
            other = after if new is None else before
            known = {key[0] for key in other if without_hash((arch, key[1])) == without_hash((arch, name))}
            one.differences = differences(one, sorted(known))
        result.kernels.append(one)
    result.tools["nvdisasm"] = version_of("nvdisasm")
    return result


def _name(binary: Binary) -> str:
    return "<bytes>" if isinstance(binary, bytes) else os.fspath(binary)


def _kernels(binary: Binary, pattern: str | None, wanted: Iterable[Key] = ()) -> dict[Key, _Kernel]:
    """Return the kernels of a file, by architecture and mangled name, and of its device functions those with events.

    Device functions that are `wanted` are those of the build without marks that hold events in the other one.
    """
    asked = {without_hash(key) for key in wanted}
    matches: Callable[[str], bool] = (lambda name: fnmatchcase(name, pattern)) if pattern else (lambda name: True)
    found: dict[Key, _Kernel] = {}
    with _told(_name(binary)), _images(binary) as images:
        for image in images:
            cubin = read_cubin(image.data)
            chosen = [
                one
                for one in cubin.functions
                if (one.entry or one.triggers or without_hash((cubin.arch, one.name)) in asked) and matches(one.name)
            ]
            for name, kernel in _read(image, cubin, chosen):
                # The same kernel twice, as two units of one library can hold it: the first is what a linker keeps.
                found.setdefault((cubin.arch, name), kernel)
    return found


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Say of an error which file it is about."""
    try:
        yield
    except IketError as error:
        if not error.message.startswith(name):
            error.message = f"{name}: {error.message}"
            error.args = (error.message,)
        raise


@contextmanager
def _images(binary: Binary) -> Iterator[tuple[Image, ...]]:
    if isinstance(binary, bytes):
        with tempfile.TemporaryDirectory(prefix="iket-verify-") as folder:
            path = os.path.join(folder, "image")
            with open(path, "wb") as file:
                file.write(binary)
            with opened(path, binary) as container:
                yield container.images
    else:
        path = os.fspath(binary)
        with opened(path, read(path)) as container:
            yield container.images


def _read(image: Image, cubin: Cubin, functions: list[Function]) -> Iterator[tuple[str, _Kernel]]:
    if not functions:
        return
    resources, waiting = read_resources(image.data), {one.name: one for one in functions}
    declared = Declarations(cubin, _ignore)
    failures: dict[str, str] = {}
    for listing in show(image.path, cubin, functions, None, failures):
        function = waiting.pop(listing.name, None)
        if function is not None:
            yield listing.name, _kernel(function, listing, resources.get(function.name, Resources()), declared)
    for name in waiting:
        raise CubinError(f"{name} can not be compared: {failures.get(name, 'nvdisasm does not show it')}")


def _ignore(rule: str, message: str = "", **where: Any) -> None:
    """Take a finding about the metadata: to judge it is `verify`'s."""


def _kernel(function: Function, listing: Listing, resources: Resources, declared: Declarations) -> _Kernel:
    flow = Flow(listing.instructions, function.branches)
    records = find_records(flow) if function.triggers else ()
    own = event_instructions(flow, records)
    stems = Counter(one.opcode.split(".", 1)[0] for one in flow.instructions)
    build = Build(
        registers=resources.registers,
        local_bytes=resources.local_bytes,
        spill_loads=stems["LDL"],
        spill_stores=stems["STL"],
        shared_bytes=resources.shared_bytes,
        barriers=resources.barriers,
        transaction_barriers=resources.transaction_barriers,
        instructions=len(flow.instructions) - stems["NOP"],
        event_instructions=len(own),
    )
    ranges, undecided = range_contents(flow, records, declared.events, own)
    if function.calls_events:
        undecided = undecided or "a function with events is called, whose events are not followed"
    if declared.cubin.unoptimised and ranges:
        undecided = undecided or "the code is not optimised (-G, -O0): paths that no thread takes are counted"
    return _Kernel(build, [one for index, one in enumerate(flow.instructions) if index not in own], ranges, undecided)
