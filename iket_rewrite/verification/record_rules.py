# SPDX-License-Identifier: Apache-2.0
"""Judge one record: its stores against what its event declares."""

from __future__ import annotations

from typing import Any

from .. import abi
from .. import metadata_records as records_of
from ..abi import Method
from .conditions import Conditions
from .declarations import Declarations
from .flow import Flow
from .records import Record, Store
from .report import Find


class RecordRules:
    """The rules about a record's stores and its trigger.

    Args:
        arch: architecture number, for example 90.
        declared: what the module declares.
        find: takes the findings.
    """

    def __init__(self, arch: int, declared: Declarations, find: Find) -> None:
        self.arch, self.declared, self.find = arch, declared, find

    def judge(self, flow: Flow, record: Record, where: dict[str, Any]) -> None:
        """Judge a record; `where` is the place of its trigger."""
        event = self.declared.events.get(record.id) if record.id is not None else None
        if self.arch * 10 < abi.FIRST_CUDA_ARCH:
            self.find("pre-hopper", **where)
        elif not self.declared.present:
            pass  # said once, for the module
        elif event is None and record.id in self.declared.damaged:
            pass  # said of its declaration
        elif event is None and record.id != abi.ID_POP:
            self.find(
                "undeclared-event",
                f"the trigger's id {_as_written(record.id)} is declared nowhere: NVIDIA's parser refuses the whole "
                "module",
                **where,
            )
        else:
            if self.arch * 10 not in abi.ARCHES:
                self.find("unknown-architecture", f"where records lie on sm_{self.arch} is not known", **where)
            self._judge_stamps(record, where)
            self._judge_payload(event, record, where)
            self._judge_predicates(flow, record, where)

    def _judge_stamps(self, record: Record, where: dict[str, Any]) -> None:
        facts = self.declared.method.facts
        if not record.stamps:
            at_start = [store for offset, store in record.others if offset == 0 and store.bits == facts.timestamp_bits]
            if at_start:
                self.find("id-unproven", "what the record stores as its timestamp can not be shown to be one", **where)
            else:
                self.find("stamp-missing", **where)
        for stamp in record.stamps:
            if self.declared.method is Method.NATIVE and stamp.bits > facts.timestamp_bits:
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
        carried = stamp.stamp if self.declared.method is Method.NATIVE else stamp.high
        if carried is None:
            self.find("id-unproven", **where)
        elif carried != record.id:
            self.find("id-mismatch", f"the timestamp carries the id {carried}, the trigger {record.id}", **where)

    def _judge_address(self, stamp: Store, where: dict[str, Any]) -> None:
        symbol = stamp.address.symbol
        resolved = symbol is None or symbol == ("rank", abi.CLUSTER_STRIDE)
        arch = abi.ARCHES.get(self.arch * 10)
        # TIRx and TileLang use the place of older architectures on sm_90 too, and their events were captured there.
        places = {abi.PRE_HOPPER_OFFSET, arch.offset} if arch else set()
        if resolved and arch and stamp.address.offset not in places:
            self.find(
                "record-address",
                f"the record lies at {stamp.address.offset:#x}; on sm_{self.arch} it is looked for at {arch.offset:#x}",
                **where,
            )

    def _judge_payload(self, event: records_of.EventRecord | None, record: Record, where: dict[str, Any]) -> None:
        declared = event.payload if event else None
        facts = self.declared.method.facts
        merged = any(stamp.bits > facts.timestamp_bits for stamp in record.stamps)
        if declared is None:
            if record.payloads:
                self.find("payload-undeclared", **where)
            return
        if merged and self.declared.method is Method.NATIVE:
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
        stores = [store.index for store in record.stores]
        predicates = {flow.instructions[index].predicate for index in stores}
        trigger = flow.instructions[record.trigger].predicate
        if len(predicates) > 1 and not _act_together(flow, stores):
            shown = ", ".join(sorted(predicate or "none" for predicate in predicates))
            self.find("split-predicate", f"the stores of one record are under different predicates: {shown}", **where)
        elif trigger and stores and predicates != {trigger} and not _act_together(flow, [stores[0], record.trigger]):
            self.find(
                "trigger-predicate",
                f"the trigger is under {trigger}, its record under {next(iter(predicates)) or 'none'}",
                **where,
            )


def _act_together(flow: Flow, indices: list[int]) -> bool:
    """Say whether instructions under predicates of different names test one condition."""
    conditions = Conditions(flow)
    return all(conditions.act_together(indices[0], index) for index in indices[1:])


def _as_written(number: int | None) -> str:
    """Return a trigger's id, and for a single bit the `pmevent` that gives it, which takes the bit's number."""
    if number and number & (number - 1) == 0:
        return f"{number} (pmevent {number.bit_length() - 1})"
    return str(number)
