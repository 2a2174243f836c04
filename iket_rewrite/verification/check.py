# SPDX-License-Identifier: Apache-2.0
"""Judge one image: its metadata, and the record of every trigger.  It reads no file and starts no process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import abi
from .. import metadata_records as records_of
from ..abi import EventKind, Method
from .balance import Imbalance, check_balance
from .cubin import Cubin, Function
from .flow import Flow
from .records import Record, Store, find_records, own_instructions
from .report import EventInfo, Finding, KernelInfo, SiteInfo, make_finding
from .sass import Instruction, Listing

_KNOWN_MINORS = (abi.META_MINOR_INLINE_NAMES, abi.META_MINOR_LONG_NAMES)


@dataclass(slots=True)
class ImageResult:
    """What judging one image told; see `report.Report`."""

    findings: list[Finding] = field(default_factory=list)
    kernels: list[KernelInfo] = field(default_factory=list)
    events: list[EventInfo] = field(default_factory=list)
    sites: list[SiteInfo] = field(default_factory=list)


class ImageCheck:
    """The judging of one cubin.

    Args:
        cubin: what the ELF file holds.
        file, image: names for findings.
        strict: whether the stricter severities hold.
    """

    def __init__(self, cubin: Cubin, *, file: str, image: str, strict: bool) -> None:
        self.cubin, self.file, self.image, self.strict = cubin, file, image, strict
        self.result = ImageResult()
        self.events: dict[int, records_of.EventRecord] = {}
        self.method = Method.NATIVE
        self.seen: set[int] = set()
        self.judged: set[str] = set()
        self.declared = abi.META_SYMBOL in cubin.arrays
        self.with_triggers = [function for function in cubin.functions if function.triggers]
        self._check_metadata()

    def find(self, rule: str, message: str = "", **where: Any) -> None:
        """Add a finding."""
        where.setdefault("image", self.image)
        self.result.findings.append(make_finding(rule, message, strict=self.strict, file=self.file, **where))

    # --- Metadata -------------------------------------------------------------------------------------------

    def _check_metadata(self) -> None:
        if not self.declared:
            if self.with_triggers:
                self.find("no-metadata")
            return
        self._check_copies()
        events = self._decode(records_of.EVENT_PREFIX, records_of.decode_event)
        ranges = self._decode(records_of.RANGE_PREFIX, records_of.decode_range)
        self._check_header(len(events) + len(ranges), max((event.id for event in events), default=0))
        self._check_events(events)
        self._check_ranges(events, ranges)
        if not self.with_triggers and events and self.cubin.arch * 10 >= abi.FIRST_CUDA_ARCH:
            self.find("no-trigger")
        self.result.events = [
            EventInfo(
                self.image,
                event.id,
                event.kind.value,
                event.name,
                event.payload.name if event.payload else None,
                event.method.value,
            )
            for event in sorted(events, key=lambda event: event.id)
        ]

    def _decode(self, prefix: str, decode: Any) -> list[Any]:
        decoded = []
        for symbol, data in self.cubin.arrays.items():
            if not symbol.startswith(prefix):
                continue
            try:
                decoded.append(decode(symbol, data, self.cubin.arrays))
            except records_of.NameEncodingError as error:
                self.find("name-not-utf8", str(error))
            except records_of.RecordError as error:
                self.find("bad-metadata", str(error))
        return decoded

    def _check_copies(self) -> None:
        """Two sets of metadata in one image: the same twice is what linking two units of one plan gives."""
        plans = self.cubin.plans
        differ = [symbol for symbol, copies in self.cubin.copies.items() if len(set(copies)) > 1]
        if len(plans) > 1:
            self.find("two-plans", f"{len(plans)} plans in one image: {', '.join(plans)}")
        elif differ:
            self.find("two-plans", f"two sets of metadata in one image: {differ[0]} differs between them")

    def _check_header(self, declarations: int, highest: int) -> None:
        try:
            header = records_of.decode_header(self.cubin.arrays[abi.META_SYMBOL])
        except records_of.RecordError as error:
            self.find("bad-metadata", str(error))
            return
        if header.size != abi.META.size or header.event_size != abi.EVENT.size:
            self.find("bad-metadata", f"the header gives {header.size} and {header.event_size} as sizes of records")
        if (header.minor, header.features) == (declarations, highest) and header.features != abi.META_FEATURES:
            self.find("tilelang-header")
        elif header.major != abi.META_MAJOR or header.minor not in _KNOWN_MINORS:
            if header.minor == declarations:
                self.find("tilelang-header")
            else:
                self.find("unknown-version", f"the metadata is of version {header.major}.{header.minor}")

    def _check_events(self, events: list[records_of.EventRecord]) -> None:
        methods = {event.method for event in events}
        if len(methods) > 1:
            self.find("mixed-methods")
        self.method = Method.EXTENDED if methods == {Method.EXTENDED} else Method.NATIVE
        for event in events:
            facts = event.method.facts
            if not facts.first_id <= event.id <= max(facts.last_id, facts.highest_id - (event.method is Method.NATIVE)):
                self.find(
                    "id-range",
                    f"the event {event.name!r} has the id {event.id}, outside "
                    f"{facts.first_id} to {facts.last_id} of {facts.title}",
                )
            other = self.events.setdefault(event.id, event)
            if other is not event and (other.name, other.kind) != (event.name, event.kind):
                self.find("bad-metadata", f"{other.name!r} and {event.name!r} have one id, {event.id}")

    def _check_ranges(self, events: list[records_of.EventRecord], ranges: list[records_of.RangeRecord]) -> None:
        by_id: dict[int, str] = {}
        for one in ranges:
            if by_id.setdefault(one.range_id, one.name) != one.name:
                self.find(
                    "range-collision",
                    f"the ranges {by_id[one.range_id]!r} and {one.name!r} have one range id, {one.range_id:#010x}",
                )
        for event in events:
            if event.kind is not EventKind.MARK and event.range_id not in by_id:
                self.find("bad-metadata", f"the range {event.name!r} has no declaration of its own")
            elif event.kind is not EventKind.MARK and by_id[event.range_id] != event.name:
                self.find(
                    "range-collision",
                    f"the ranges {by_id[event.range_id]!r} and {event.name!r} have one range "
                    f"id, {event.range_id:#010x}",
                )

    # --- Functions ------------------------------------------------------------------------------------------

    def judge(self, function: Function, listing: Listing) -> None:
        """Judge one function that has triggers."""
        flow = Flow(listing.instructions)
        records = find_records(flow)
        if len(records) != len(function.triggers):
            self.not_verified(
                function, f"nvdisasm shows {len(records)} triggers, the code has {len(function.triggers)}"
            )
            return
        self.judged.add(function.name)
        for record in records:
            self._judge_record(function, flow, record)
        if self.declared:
            self._check_balance(function, flow, records)
            self._check_empty(function, flow, records)
        self.result.kernels.append(KernelInfo(self.image, function.name, len(records), "verified"))

    def not_verified(self, function: Function, why: str) -> None:
        """Note that a function could not be judged."""
        self.find("not-verified", f"{function.name} is not verified: {why}", kernel=function.name)
        self.result.kernels.append(KernelInfo(self.image, function.name, len(function.triggers), why))

    def finish(self) -> ImageResult:
        """Judge what concerns all functions together, and return everything."""
        complete = all(function.name in self.judged for function in self.with_triggers)
        for event in self.events.values():
            if event.id not in self.seen and self.with_triggers and complete:
                self.find("unused-event", f"the event {event.name!r} ({event.kind.value}) has no site")
        for function in self.cubin.functions:
            if not function.triggers and function.entry:
                self.result.kernels.append(KernelInfo(self.image, function.name, 0, "no events"))
        return self.result

    def _where(self, function: Function, instruction: Instruction) -> dict[str, Any]:
        return {
            "kernel": function.name,
            "address": instruction.address,
            "source": instruction.file or None,
            "line": instruction.line or None,
        }

    def _judge_record(self, function: Function, flow: Flow, record: Record) -> None:
        before = len(self.result.findings)
        where = self._where(function, flow.instructions[record.trigger])
        event = self.events.get(record.id) if record.id is not None else None
        known = event is not None or record.id == abi.ID_POP
        if record.id is not None:
            self.seen.add(record.id)
        if self.cubin.arch * 10 < abi.FIRST_CUDA_ARCH:
            self.find("pre-hopper", **where)
        elif not self.declared:
            pass  # said once, for the module
        elif not known:
            self.find(
                "undeclared-event",
                f"the trigger's id {record.id} is declared nowhere: NVIDIA's parser refuses the whole module",
                **where,
            )
        else:
            if self.cubin.arch * 10 not in abi.ARCHES:
                self.find("unknown-architecture", f"where records lie on sm_{self.cubin.arch} is not known", **where)
            self._judge_stamps(record, where)
            self._judge_payload(event, record, where)
            self._judge_predicates(flow, record, where)
        broken = [finding.rule for finding in self.result.findings[before:] if finding.fails]
        self.result.sites.append(
            SiteInfo(
                self.image,
                function.name,
                flow.instructions[record.trigger].address,
                record.id,
                event.name if event else ("(pop)" if record.id == abi.ID_POP else None),
                where["source"],
                where["line"],
                " ".join(dict.fromkeys(broken)) or "ok",
                _shown(flow, record),
            )
        )

    def _judge_stamps(self, record: Record, where: dict[str, Any]) -> None:
        facts = self.method.facts
        if not record.stamps:
            at_start = [store for offset, store in record.others if offset == 0 and store.bits == facts.timestamp_bits]
            if at_start:
                self.find("id-unproven", "what the record stores as its timestamp can not be shown to be one", **where)
            else:
                self.find("stamp-missing", **where)
        for stamp in record.stamps:
            if self.method is Method.NATIVE and stamp.bits > facts.timestamp_bits:
                self.find(
                    "merged-record",
                    f"timestamp and payload are one store of {stamp.bits} bits; the captured process dies of it",
                    **where,
                )
            elif stamp.bits != facts.timestamp_bits:
                self.find(
                    "stamp-width",
                    f"the timestamp store has {stamp.bits} bits; {facts.title} has {facts.timestamp_bits}",
                    **where,
                )
            else:
                self._judge_id(record, stamp, where)
            self._judge_address(stamp, where)

    def _judge_id(self, record: Record, stamp: Store, where: dict[str, Any]) -> None:
        carried = stamp.stamp if self.method is Method.NATIVE else stamp.high
        if carried is None:
            self.find("id-unproven", **where)
        elif carried != record.id:
            self.find("id-mismatch", f"the timestamp carries the id {carried}, the trigger {record.id}", **where)

    def _judge_address(self, stamp: Store, where: dict[str, Any]) -> None:
        symbol = stamp.address.symbol
        places = {arch.offset for arch in abi.ARCHES.values()} | {abi.PRE_HOPPER_OFFSET}
        resolved = symbol is None or symbol == ("rank", abi.CLUSTER_STRIDE)
        if resolved and stamp.address.offset not in places:
            self.find(
                "record-address",
                f"the record lies at {stamp.address.offset:#x}, where the runtime does not look for it",
                **where,
            )

    def _judge_payload(self, event: records_of.EventRecord | None, record: Record, where: dict[str, Any]) -> None:
        declared = event.payload if event else None
        facts = self.method.facts
        merged = any(stamp.bits > facts.timestamp_bits for stamp in record.stamps)
        if declared is None:
            if record.payloads:
                self.find("payload-undeclared", **where)
            return
        if merged and self.method is Method.NATIVE:
            return
        wanted = facts.payload_offset[declared.stored_bits]
        right = [s for offset, s in record.payloads if offset == wanted and s.bits == declared.stored_bits]
        wrong = [(offset, s) for offset, s in (*record.payloads, *record.others) if s not in right and offset]
        if wrong:
            offset, store = wrong[0]
            self.find(
                "payload-width",
                f"the payload is stored with {store.bits} bits at +{offset:#x}; {declared.name} "
                f"needs {declared.stored_bits} bits at +{wanted:#x}",
                **where,
            )
        elif not right:
            self.find(
                "payload-missing",
                f"the event declares a payload of type {declared.name}, but its record stores none",
                **where,
            )
        for payload in right:
            if any(payload.index < stamp.index for stamp in record.stamps):
                self.find("swapped-stores", **where)
                break

    def _judge_predicates(self, flow: Flow, record: Record, where: dict[str, Any]) -> None:
        stores = record.stores
        predicates = {flow.instructions[store.index].predicate for store in stores}
        trigger = flow.instructions[record.trigger].predicate
        if len(predicates) > 1:
            shown = ", ".join(sorted(predicate or "none" for predicate in predicates))
            self.find("split-predicate", f"the stores of one record are under different predicates: {shown}", **where)
        elif trigger and stores and predicates != {trigger}:
            self.find(
                "trigger-predicate",
                f"the trigger is under {trigger}, its record under {next(iter(predicates)) or 'none'}",
                **where,
            )

    # --- Ranges ---------------------------------------------------------------------------------------------

    def _check_balance(self, function: Function, flow: Flow, records: tuple[Record, ...]) -> None:
        if not function.entry:
            return  # a device function's ranges may be closed by its caller
        if self._calls_events(flow):
            self.find(
                "not-decided",
                "whether the ranges pair up was not decided: a function with events is called",
                kernel=function.name,
            )
            return
        kinds = {event.id: event.kind for event in self.events.values()}
        balance = check_balance(flow, records, kinds)
        if balance.undecided:
            self.find(
                "not-decided", f"whether the ranges pair up was not decided: {balance.undecided}", kernel=function.name
            )
        for fault in balance.faults:
            where = self._where(function, flow.instructions[fault.at])
            self.find("unbalanced-range", self._imbalance(flow, fault), **where)

    def _calls_events(self, flow: Flow) -> bool:
        devices = [function for function in self.with_triggers if not function.entry]
        return bool(devices) and any(one.opcode.startswith("CALL") for one in flow.instructions)

    def _imbalance(self, flow: Flow, fault: Imbalance) -> str:
        event = self.events.get(fault.event) if fault.event is not None else None
        name = repr(event.name) if event else "a range"
        messages = {
            "pop": "a pop on a path on which no range is open",
            "exit": f"the kernel can end while {name} is open",
            "token": f"the kernel can end with the token range {name} started and not ended",
            "loop": f"each pass of a loop opens {name} and does not close it",
        }
        path = ", ".join(f"{flow.instructions[index].address:#x}" for index in fault.path)
        return messages[fault.kind] + (f"; the path's jumps: {path}" if path else "")

    def _check_empty(self, function: Function, flow: Flow, records: tuple[Record, ...]) -> None:
        """Look for ranges whose two ends follow each other in one block with only events between them."""
        by_trigger = {record.trigger: record for record in records}
        order = sorted(by_trigger)
        for position, start in enumerate(order[:-1]):
            event = self.events.get(by_trigger[start].id or 0)
            end = order[position + 1]
            if event is None or event.kind is EventKind.MARK or flow.block_of(start) != flow.block_of(end):
                continue
            closing = abi.ID_POP if event.kind is EventKind.RANGE else event.id
            if by_trigger[end].id != closing:
                continue
            own = own_instructions(flow, records, start + 1, end + 1)
            if all(index in own for index in range(start + 1, end + 1)):
                self.find(
                    "empty-range",
                    f"nothing stands between the two ends of {event.name!r}",
                    **self._where(function, flow.instructions[start]),
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


def judge_image(
    cubin: Cubin, listings: Iterable[Listing], failures: Mapping[str, str], *, file: str, image: str, strict: bool
) -> ImageResult:
    """Judge a cubin whose functions with triggers are in `listings`; `failures` says of the others why they are not."""
    check = ImageCheck(cubin, file=file, image=image, strict=strict)
    waiting = {function.name: function for function in check.with_triggers}
    for listing in listings:
        function = waiting.pop(listing.name, None)
        if function is not None:
            check.judge(function, listing)
    for function in waiting.values():
        check.not_verified(function, failures.get(function.name, "nvdisasm does not show it"))
    return check.finish()


__all__ = ["ImageCheck", "ImageResult", "judge_image"]
