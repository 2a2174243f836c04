# SPDX-License-Identifier: Apache-2.0
"""Print a comparison: tables and colour on a terminal where rich is installed, plain columns anywhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..verification.comparison import Build, Comparison, KernelComparison
from ..verification.instruction_classes import InstructionClass
from .tables import clean
from .verify_output import open_console, say

#: Of each build: title, and how to read it.
_BUILD_ROWS = (
    ("registers", "registers"),
    ("local memory, bytes", "local_bytes"),
    ("local loads", "spill_loads"),
    ("local stores", "spill_stores"),
    ("static shared memory, bytes", "shared_bytes"),
    ("named barriers", "barriers"),
    ("mbarriers", "transaction_barriers"),
    ("instructions", "instructions"),
    ("  of the events", "event_instructions"),
    ("  outside them", "outside"),
)
_SHOWN = [one.value for one in InstructionClass if one not in (InstructionClass.CONTROL, InstructionClass.OTHER)]


def print_comparison(found: Comparison, *, quiet: bool) -> None:
    """Print a comparison, kernel by kernel."""
    console = open_console()
    for kernel in found.kernels:
        if not quiet:
            _print_kernel(console, found, kernel)
        for one in kernel.differences:
            if one.severity == "warning" or not quiet:
                style = "yellow" if one.severity == "warning" else "cyan"
                say(console, clean(f"{kernel.name}: {one.severity} [{one.what}]: {one.message}"), style)
    if not quiet:
        if not any(kernel.after and kernel.after.event_instructions for kernel in found.kernels):
            say(console, clean(f"{found.instrumented}: note: no kernel that was compared holds an event"), "cyan")
        count = sum(one.severity == "warning" for kernel in found.kernels for one in kernel.differences)
        verdict = "ok" if found.ok else f"not the same: {count} warning{'s' * (count != 1)}"
        kernels = "1 kernel" if len(found.kernels) == 1 else f"{len(found.kernels)} kernels"
        text = f"{found.instrumented}: {verdict}: {kernels} compared with {found.plain}"
        say(console, clean(text), "green" if found.ok else "bold red")


def _print_kernel(console: Any, found: Comparison, kernel: KernelComparison) -> None:
    rows = [[title, _value(kernel.before, name), _value(kernel.after, name)] for title, name in _BUILD_ROWS]
    _print_table(console, f"{kernel.name} (sm_{kernel.arch})", ["", "before", "after"], rows)
    for order in kernel.orders:
        state = "the same" if order.same else f"{len(order.changes)} differ"
        say(
            console,
            f"order of {order.space} memory operations, known by {order.known_by}: {state}, {order.after} of them",
        )
        for change in order.changes[:8]:
            say(
                console,
                clean(f"  {change.kind}: {change.operation}: {_place(change.before)} -> {_place(change.after)}"),
            )
    if kernel.ranges:
        used = [name for name in _SHOWN if any(name in one.inside for one in kernel.ranges)]
        names = ["range", "is", *used, "varies by", "lines"]
        rows = [
            [
                f"{one.name} ({one.where})",
                one.label,
                *(str(one.inside.get(name, 0)) for name in used),
                one.caveats,
                one.spans,
            ]
            for one in kernel.ranges
        ]
        _print_table(console, "between the ends of each range, instructions once per place", names, rows)
    if kernel.undecided:
        say(console, clean(f"{kernel.name}: the ranges are incomplete: {kernel.undecided}"), "yellow")


def _value(build: Build | None, name: str) -> str:
    value = getattr(build, name) if build is not None else None
    return "-" if value is None else str(value)


def _place(number: int | None) -> str:
    return "-" if number is None else str(number)


def _print_table(console: Any, title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    rows = [[clean(cell) for cell in row] for row in rows]
    if console is None:
        widths = [max(len(row[at]) for row in (names, *rows)) for at in range(len(names))]
        print(f"\n{clean(title)}")
        for row in (names, *rows):
            print("  " + "  ".join(_aligned(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(clean(title)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for at, name in enumerate(names):
        table.add_column(
            name,
            justify="right" if rows and all(row[at].isdigit() for row in rows) else "left",
            no_wrap=at < 2,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


def _aligned(cell: str, width: int) -> str:
    return cell.rjust(width) if cell.isdigit() else cell.ljust(width)
