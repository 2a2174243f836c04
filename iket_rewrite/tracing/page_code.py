# SPDX-License-Identifier: Apache-2.0
"""The machine code of a trace's kernels as tables of its page: what each range holds, and what the marks changed.

A binary and a trace are joined by names: the kernel's mangled one, and the range's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import OptionError
from ..verification.comparison import Comparison, KernelComparison, RangeContent
from ..verification.instruction_classes import InstructionClass as Is
from .page_tables import Table, column, table
from .summary import KernelSummary, RangeRow

#: Classes that have a column, where any range of the kernel holds one, with what the column says of it.
_CLASSES = {
    Is.GLOBAL: "loads, stores and atomic operations of global memory",
    Is.SHARED: "loads, stores and atomic operations of shared memory",
    Is.GENERIC: "accesses whose space the opcode does not tell",
    Is.LOCAL: "local memory: spilled registers, arrays",
    Is.TENSOR_MEMORY: "loads, stores and copies of tensor memory",
    Is.MMA: "matrix products",
    Is.COPY: "issues of asynchronous copies: cp.async, TMA",
    Is.WAIT: "waits: barriers, mbarriers, copies and matrix products that are awaited",
    Is.BARRIER: "arrivals, fences and set-up of barriers: they do not wait",
    Is.FLOAT: "floating-point arithmetic",
    Is.INTEGER: "integer arithmetic, addresses included",
}
_BUILD = {
    "registers": "registers",
    "local_bytes": "local memory, bytes",
    "spill_loads": "local loads",
    "spill_stores": "local stores",
    "shared_bytes": "static shared memory, bytes",
    "barriers": "named barriers",
    "transaction_barriers": "mbarriers",
    "outside": "instructions outside the records",
    "event_instructions": "instructions of the records",
}


def chosen_code(code: Comparison, kernels: Sequence[KernelSummary]) -> dict[str, KernelComparison]:
    """Return what a binary says of the kernels of a trace, by the kernel's name.

    Raises:
        OptionError: it holds none of them.
    """
    names = {one.kernel for one in kernels}
    found: dict[str, KernelComparison] = {}
    for one in code.kernels:
        # Of several architectures the first with events counts; the trace does not name its own.
        better = one.name not in found or (one.ranges and not found[one.name].ranges)
        if one.name in names and one.after is not None and better:
            found[one.name] = one
    if not found:
        raise OptionError(
            f"{code.instrumented}: holds no kernel of the trace ({', '.join(sorted(names))})",
            remedy="name the binary that was captured",
        )
    return found


def code_tables(kernel: KernelSummary, found: KernelComparison) -> list[Table]:
    """Return the tables of a kernel's machine code."""
    tables = [_ranges(kernel, found)] if found.ranges else []
    if found.before is not None:
        tables.append(_builds(found))
    return tables


def code_findings(found: KernelComparison) -> list[tuple[str, str]]:
    """Return severity and message of what one should know of a kernel's machine code."""
    said = []
    if found.after is not None and not found.after.event_instructions:
        said.append(("warning", "This kernel holds no event in the binary: another build was captured."))
    for one in found.differences:
        if one.severity == "warning":
            unfit = one.what in ("kernel", "marks")
            begin = "The baseline does not fit" if unfit else f"The marks changed the machine code, {one.what}"
            said.append((one.severity, f"{begin}: {one.message}."))
    if found.undecided:
        said.append(("note", f"What its ranges hold is incomplete: {found.undecided}."))
    return said


def _ranges(kernel: KernelSummary, found: KernelComparison) -> Table:
    used = [one for one in _CLASSES if any(one.value in content.inside for content in found.ranges)]
    columns = [
        column("name", "range", "text"),
        column("label", "is", "text", "what the instructions between its ends are about"),
        column("count", "count", "count", "how often the trace holds it"),
        column("mean", "mean", "time", "of the trace, over all places of this name", scale="one"),
        *(column(one.name, one.value, "count", _CLASSES[one]) for one in used),
        column("beware", "varies by", "text", "why a warp can run more or fewer than this many"),
        column("at", "at", "text", "where the range is opened"),
        column("lines", "lines", "text", "source lines of what it holds"),
    ]
    recorded = {(row.kind, row.name): row for row in kernel.ranges}
    rows = [_range(one, recorded.get((one.kind, one.name)), used) for one in found.ranges]
    help = "instructions between the ends of each range, each once, however often it runs"
    return table("code", "Code", columns, rows, "", help)


def _range(one: RangeContent, row: RangeRow | None, used: Sequence[Is]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "name": one.name,
        "label": one.label,
        "count": row.duration.count if row else 0,
        "mean": row.duration.mean_ns if row else None,
        **{found.name: one.inside.get(found.value, 0) for found in used},
        "beware": one.caveats,
        "at": one.where,
        "lines": one.spans,
        # Rows are sorted by it where there are too many.
        "total": row.duration.total_ns if row else 0,
    }
    if row is not None:
        values["pick"] = {"key": f"code {one.kind} {one.name} {one.address}", "kind": one.kind, "name": one.name}
    return values


def _builds(found: KernelComparison) -> Table:
    columns = [
        column("what", "", "text"),
        column("before", "without marks", "count"),
        column("after", "with marks", "count"),
    ]
    rows: list[dict[str, Any]] = [
        {"what": title, "before": getattr(found.before, name), "after": getattr(found.after, name)}
        for name, title in _BUILD.items()
    ]
    rows += [
        {"what": f"{order.space} operations that stand elsewhere", "before": 0, "after": len(order.changes)}
        for order in found.orders
    ]
    return table(
        "marks", "Cost of marks", columns, rows, "", "the same kernel compiled without its marks and with them"
    )
