# SPDX-License-Identifier: Apache-2.0
"""What comparing a binary with its build without marks tells, as data; the comparing is in `baseline`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from .memory_order import Order

#: Version of the JSON layout; it changes when a key changes its meaning or goes.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a kernel.

    Attributes:
        registers: per thread; None where the file does not say.
        local_bytes: local memory per thread: spilled registers and arrays.
        spill_loads, spill_stores: instructions that read and write it.
        shared_bytes: static shared memory, with what the system reserves of it.
        barriers, transaction_barriers: named barriers, and mbarriers as ptxas counted them.
        instructions: how many, NOPs left out.
        event_instructions: of these the records, and what computes nothing but their addresses, elections and payloads.
    """

    registers: int | None
    local_bytes: int
    spill_loads: int
    spill_stores: int
    shared_bytes: int
    barriers: int
    transaction_barriers: int
    instructions: int
    event_instructions: int

    @property
    def outside(self) -> int:
        """Return the number of instructions outside the records."""
        return self.instructions - self.event_instructions


@dataclass(frozen=True, slots=True)
class RangeContent:
    """What lies between the ends of a range, for one site that opens it.

    Attributes:
        name, id, kind: the event.
        address: of the trigger that opens it, in the function's code.
        source, line: its place in the source; None where the binary has no line info.
        ends: addresses of the triggers that close it.
        label: "issue only", "wait", "memory", "compute" or "empty".
        inside: number of instructions by class, ranges inside included; each counts once, however often it runs.
        own: the same while no range is open inside it.
        loops: there is a loop inside.
        branches: some of it is run on some paths only, or under a predicate.
        calls: it calls a function, whose instructions are not counted.
        lines: source lines inside, by file.
    """

    name: str
    id: int
    kind: str
    address: int
    source: str | None
    line: int | None
    ends: tuple[int, ...]
    label: str
    inside: dict[str, int]
    own: dict[str, int]
    loops: bool
    branches: bool
    calls: bool
    lines: dict[str, tuple[int, ...]]

    @property
    def caveats(self) -> str:
        """Say why a warp can run more or fewer instructions than are counted."""
        said = ["loops"] * self.loops + ["branches"] * self.branches + ["calls"] * self.calls
        return ", ".join(said if self.ends else [*said, "no end"])

    @property
    def where(self) -> str:
        """Say where it is opened: the line, or the address."""
        return f"{os.path.basename(self.source)}:{self.line}" if self.source else f"+{self.address:#x}"

    @property
    def spans(self) -> str:
        """Return its lines with runs drawn together: a.cu:3-5,9."""
        return " ".join(f"{os.path.basename(file)}:{_spans(lines)}" for file, lines in self.lines.items())


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing in which two builds of a kernel differ.

    Attributes:
        what: "registers", "spills", "shared memory", "barriers", "instructions", "memory order", "kernel", or "marks"
            where the plain build holds events.
        severity: "warning" where the marks change what is measured, else "note".
        message: how.
    """

    what: str
    severity: str
    message: str


@dataclass(slots=True)
class KernelComparison:
    """One kernel in both binaries.

    Attributes:
        name: its mangled name.
        arch: its architecture number.
        before, after: its two builds; None where a binary lacks it.
        orders: the order of its memory operations; empty where a build is missing.
        ranges: what lies between the ends of its ranges.
        undecided: why the ranges could not be followed to every end, or "".
        differences: what differs between the builds.
    """

    name: str
    arch: int
    before: Build | None = None
    after: Build | None = None
    orders: tuple[Order, ...] = ()
    ranges: list[RangeContent] = field(default_factory=list)
    undecided: str = ""
    differences: list[Difference] = field(default_factory=list)


@dataclass(slots=True)
class Comparison:
    """Two binaries, kernel by kernel.

    Attributes:
        plain: the file without marks, or None where only the ranges were asked for.
        instrumented: the file with marks.
        kernels: the kernels of both, matched by architecture and mangled name.
        tools: releases by tool.
    """

    plain: str | None
    instrumented: str
    kernels: list[KernelComparison] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Say whether no difference is a warning."""
        return not any(one.severity == "warning" for kernel in self.kernels for one in kernel.differences)

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        values = {"schema": SCHEMA, "ok": self.ok, **asdict(self)}
        for kernel, found in zip(values["kernels"], self.kernels, strict=True):
            for build in ("before", "after"):
                one = getattr(found, build)
                if one is not None:
                    kernel[build]["outside"] = one.outside
            for order, own in zip(kernel["orders"], found.orders, strict=True):
                order["same"] = own.same
        return values


def _spans(lines: tuple[int, ...]) -> str:
    parts: list[list[int]] = []
    for line in lines:
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
