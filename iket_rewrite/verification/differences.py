# SPDX-License-Identifier: Apache-2.0
"""In what two builds of a kernel differ, and whether that changes what is measured; the wording is here."""

from __future__ import annotations

from collections.abc import Sequence

from .comparison import Build, Difference, KernelComparison
from .memory_order import Order


def differences(kernel: KernelComparison, elsewhere: Sequence[int] = ()) -> list[Difference]:
    """Return the differences between the two builds of a kernel.

    Args:
        kernel: the builds, as far as they are there.
        elsewhere: the architectures for which the file that lacks the kernel has it.
    """
    before, after = kernel.before, kernel.after
    if before is None or after is None:
        which = "plain" if before is None else "instrumented"
        message = f"the {which} binary has no kernel of this name"
        if elsewhere:
            message += f" for sm_{kernel.arch}, but for {', '.join(f'sm_{arch}' for arch in elsewhere)}"
        return [Difference("kernel", "warning", message)]
    return [*_marks(before), *_resources(before, after), *_orders(kernel.orders)]


def _marks(before: Build) -> list[Difference]:
    """Return that the plain build is none: two files changed places, or one was built with its marks."""
    if not before.event_instructions:
        return []
    message = "events are in the plain binary: it was built with marks, or the two files changed places"
    return [Difference("marks", "warning", message)]


def _orders(orders: tuple[Order, ...]) -> list[Difference]:
    """Return what of the spaces differs; both together only where neither alone does."""
    alone = [order for order in orders if " and " not in order.space and not order.same]
    found = []
    for order in alone or [order for order in orders if not order.same]:
        kinds = [change.kind for change in order.changes]
        told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
        message = f"the order of {order.space} memory operations differs: {told}; first {order.changes[0].operation}"
        message += "; loads only, which passed no store" if order.loads_only else ""
        found.append(Difference("memory order", "note" if order.loads_only else "warning", message))
    return found


def _resources(before: Build, after: Build) -> list[Difference]:
    found = []

    def compare(what: str, severity: str, old: object, new: object) -> None:
        if old != new:
            found.append(Difference(what, severity, f"{old} before, {new} after"))

    compare("registers", "note", before.registers, after.registers)
    spills = [
        f"{one.local_bytes} bytes of local memory, {one.spill_loads} loads, {one.spill_stores} stores"
        for one in (before, after)
    ]
    fewer = after.local_bytes <= before.local_bytes and after.spill_loads + after.spill_stores <= (
        before.spill_loads + before.spill_stores
    )
    compare("spills", "note" if fewer else "warning", *spills)
    compare("shared memory", "warning", f"{before.shared_bytes} bytes", f"{after.shared_bytes} bytes")
    barriers = [f"{one.barriers} named, {one.transaction_barriers} mbarriers" for one in (before, after)]
    compare("barriers", "warning", *barriers)
    compare("instructions", "note", before.outside, after.outside)
    return found
