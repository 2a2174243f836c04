# SPDX-License-Identifier: Apache-2.0
"""What judging a file tells, as data.  The wording of findings is in `rules` and `check`; printing is the command's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from .cubin import Function
from .rules import RULES, Severity
from .sass import Instruction

#: Version of the JSON layout; it changes when a key changes its meaning or goes.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or that one should know.

    Attributes:
        rule: stable id of the rule.
        severity: error, warning or note.
        message: what is wrong here.
        remedy: the way out.
        file: the file that was judged.
        image: which of its cubins, for example "sm_90 #1"; empty where the file is one.
        kernel: the function's mangled name, or None for the module.
        address: byte offset in the function's code, or None.
        source, line: source position where the binary has line info.
    """

    rule: str
    severity: Severity
    message: str
    remedy: str
    file: str = ""
    image: str = ""
    kernel: str | None = None
    address: int | None = None
    source: str | None = None
    line: int | None = None

    @property
    def fails(self) -> bool:
        """Say whether the check fails for it."""
        return self.severity is not Severity.NOTE


@dataclass(frozen=True, slots=True)
class EventInfo:
    """One declared event of an image."""

    image: str
    id: int
    kind: str
    name: str
    payload: str | None
    method: str


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """One trigger.

    Attributes:
        image, kernel: where it is.
        address: byte offset of the trigger in the function's code.
        id, name: the event; the name is None where the id is not declared.
        source, line: source position where the binary has line info.
        verdict: "ok", or the ids of the rules that it breaks.
        instructions: (address, predicate, opcode, operands, role) of the record, in the order of the code.
    """

    image: str
    kernel: str
    address: int
    id: int | None
    name: str | None
    source: str | None
    line: int | None
    verdict: str
    instructions: tuple[tuple[int, str, str, str, str], ...]


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """One function.

    Attributes:
        image, name: where it is.
        triggers: how many it has.
        state: "verified", "no events", or why it was not judged.
    """

    image: str
    name: str
    triggers: int
    state: str


@dataclass(slots=True)
class Report:
    """What judging one file told.

    Attributes:
        file: the file, or "<bytes>".
        findings, kernels, events, sites: see their types.
        tools: releases by tool: nvdisasm, and ptxas as the binary names it.
        images: how many cubins were judged.
    """

    file: str
    findings: list[Finding] = field(default_factory=list)
    kernels: list[KernelInfo] = field(default_factory=list)
    events: list[EventInfo] = field(default_factory=list)
    sites: list[SiteInfo] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict)
    images: int = 0

    @property
    def ok(self) -> bool:
        """Say whether there is neither an error nor a warning."""
        return not any(finding.fails for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "schema": SCHEMA,
            "file": self.file,
            "ok": self.ok,
            "images": self.images,
            "tools": self.tools,
            "findings": [_values(finding) for finding in self.findings],
            "kernels": [_values(kernel) for kernel in self.kernels],
            "events": [_values(event) for event in self.events],
            "sites": [_values(site) for site in self.sites],
        }


class Find(Protocol):
    """Takes a finding: the rule, a message (the rule's own title without one), and where."""

    def __call__(self, rule: str, message: str = "", **where: Any) -> None:
        """Take it."""


def place(function: Function, instruction: Instruction) -> dict[str, Any]:
    """Return where an instruction is, as a finding says it."""
    return {
        "kernel": function.name,
        "address": instruction.address,
        "source": instruction.file or None,
        "line": instruction.line or None,
    }


def make_finding(rule: str, message: str = "", *, strict: bool = False, **where: Any) -> Finding:
    """Return a finding of a rule; without a message, the rule's own title."""
    known = RULES[rule]
    return Finding(rule, known.strict if strict else known.severity, message or known.title, known.remedy, **where)


def _values(item: Any) -> dict[str, Any]:
    values = {}
    for name in item.__slots__:
        value = getattr(item, name)
        values[name] = value.value if isinstance(value, Severity) else value
    return values
