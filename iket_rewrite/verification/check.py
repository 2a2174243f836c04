# SPDX-License-Identifier: Apache-2.0
"""Judge one image: its metadata, and the record of every trigger.  It reads no file and starts no process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import abi
from ..abi import Method
from .cubin import Cubin, Function
from .declarations import Declarations
from .flow import Flow
from .range_rules import RangeRules
from .record_rules import RecordRules
from .records import Record, find_records
from .report import EventInfo, Finding, KernelInfo, SiteInfo, make_finding, place
from .sass import Listing


@dataclass(slots=True)
class ImageResult:
    """What judging one image told; see `report.Report`."""

    findings: list[Finding] = field(default_factory=list)
    kernels: list[KernelInfo] = field(default_factory=list)
    events: list[EventInfo] = field(default_factory=list)
    sites: list[SiteInfo] = field(default_factory=list)


def judge_image(
    cubin: Cubin, listings: Iterable[Listing], failures: Mapping[str, str], *, file: str, image: str, strict: bool
) -> ImageResult:
    """Judge a cubin whose functions with triggers are in `listings`; `failures` says of the others why they are not."""
    check = _ImageCheck(cubin, file=file, image=image, strict=strict)
    waiting = {function.name: function for function in check.functions}
    for listing in listings:
        function = waiting.pop(listing.name, None)
        if function is not None:
            check.judge(function, listing)
    for function in waiting.values():
        check.not_verified(function, failures.get(function.name, "nvdisasm does not show it"))
    return check.finish()


class _ImageCheck:
    """The judging of one cubin.

    Args:
        cubin: what the ELF file holds.
        file, image: names for findings.
        strict: whether the stricter severities hold.
    """

    def __init__(self, cubin: Cubin, *, file: str, image: str, strict: bool) -> None:
        self.cubin, self.file, self.image, self.strict = cubin, file, image, strict
        self.result = ImageResult()
        self.functions = [function for function in cubin.functions if function.triggers]
        self.declared = Declarations(cubin, self.find)
        self.records = RecordRules(cubin.arch, self.declared, self.find)
        self.ranges = RangeRules(cubin, self.declared, self.find)
        self.seen: set[int] = set()
        self.judged: set[str] = set()

    def find(self, rule: str, message: str = "", **where: Any) -> None:
        """Add a finding."""
        finding = make_finding(rule, message, strict=self.strict, file=self.file, image=self.image, **where)
        self.result.findings.append(finding)

    def judge(self, function: Function, listing: Listing) -> None:
        """Judge one function that has triggers."""
        flow = Flow(listing.instructions, function.branches)
        # NVIDIA's parser (4.8.1) follows a timestamp over the stack in NativeDump, and misses it in ExtendedNativeDump.
        records = find_records(flow, stack=self.declared.method is not Method.EXTENDED)
        if len(records) != len(function.triggers):
            self.not_verified(
                function, f"nvdisasm shows {len(records)} triggers, the code has {len(function.triggers)}"
            )
            return
        self.judged.add(function.name)
        for record in records:
            self._judge_record(function, flow, record)
        if self.declared.present:
            self.ranges.judge(function, flow, records)
        self.result.kernels.append(KernelInfo(self.image, function.name, len(records), "verified"))

    def not_verified(self, function: Function, why: str) -> None:
        """Note that a function could not be judged."""
        self.find("not-verified", f"{function.name} is not verified: {why}", kernel=function.name)
        self.result.kernels.append(KernelInfo(self.image, function.name, len(function.triggers), why))

    def finish(self) -> ImageResult:
        """Judge what concerns all functions together, and return everything."""
        whole = not self.cubin.partial and self.declared.present
        if whole and self.functions and all(function.name in self.judged for function in self.functions):
            for event in self.declared.events.values():
                if event.id not in self.seen:
                    self.find("unused-event", f"the event {event.name!r} ({event.kind.value}) has no site")
        for function in self.cubin.functions:
            if not function.triggers and function.entry:
                self.result.kernels.append(KernelInfo(self.image, function.name, 0, "no events"))
        self.result.events = self.declared.infos(self.image)
        return self.result

    def _judge_record(self, function: Function, flow: Flow, record: Record) -> None:
        before = len(self.result.findings)
        where = place(function, flow.instructions[record.trigger])
        if record.id is not None:
            self.seen.add(record.id)
        self.records.judge(flow, record, where)
        broken = [finding.rule for finding in self.result.findings[before:] if finding.fails]
        event = self.declared.events.get(record.id) if record.id is not None else None
        name = event.name if event else ("(pop)" if record.id == abi.ID_POP else None)
        self.result.sites.append(
            SiteInfo(
                self.image,
                function.name,
                where["address"],
                record.id,
                name,
                where["source"],
                where["line"],
                " ".join(dict.fromkeys(broken)) or "ok",
                _shown(flow, record),
            )
        )


def _shown(flow: Flow, record: Record) -> tuple[tuple[int, str, str, str, str], ...]:
    roles = {store.index: "timestamp" for store in record.stamps}
    roles |= {store.index: "payload" for _, store in record.payloads}
    roles |= {store.index: f"store at +{offset:#x}" for offset, store in record.others}
    roles[record.trigger] = "trigger"
    rows = []
    for index in sorted(roles):
        one = flow.instructions[index]
        rows.append((one.address, one.predicate, one.opcode, one.operands, roles[index]))
    return tuple(rows)
