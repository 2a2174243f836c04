# SPDX-License-Identifier: Apache-2.0
"""Judge the ranges of a function: whether they pair up, and whether anything is in them."""

from __future__ import annotations

from .. import abi
from ..abi import EventKind
from .balance import Imbalance, check_balance
from .cubin import Cubin, Function
from .declarations import Declarations
from .flow import Flow
from .records import Record, own_instructions
from .report import Find, place


class RangeRules:
    """The rules about ranges.

    Args:
        cubin: the module.
        declared: what the module declares.
        find: takes the findings.
    """

    def __init__(self, cubin: Cubin, declared: Declarations, find: Find) -> None:
        self.cubin, self.declared, self.find = cubin, declared, find

    def judge(self, function: Function, flow: Flow, records: tuple[Record, ...]) -> None:
        """Judge the ranges of one function."""
        self._check_balance(function, flow, records)
        self._check_empty(function, flow, records)

    def _check_balance(self, function: Function, flow: Flow, records: tuple[Record, ...]) -> None:
        if not function.entry:
            return  # a device function's ranges may be closed by its caller
        undecided = "a function with events is called" if function.calls_events else self._undecidable(flow)
        if undecided:
            self.find("not-decided", f"whether the ranges pair up was not decided: {undecided}", kernel=function.name)
            return
        kinds = {event.id: event.kind for event in self.declared.events.values()}
        balance = check_balance(flow, records, kinds)
        undecided = balance.undecided
        if balance.doubtful:
            undecided = f"{self._imbalance(balance.doubtful[0])}, unless the conditions of its two ends go together"
        if undecided:
            self.find("not-decided", f"whether the ranges pair up was not decided: {undecided}", kernel=function.name)
        for found in balance.faults:
            where = place(function, flow.instructions[found.fault.at])
            self.find("unbalanced-range", self._imbalance(found) + self._path(flow, found), **where)

    def _undecidable(self, flow: Flow) -> str:
        """Say what keeps the graph from being followed, or nothing."""
        if self.cubin.unoptimised:
            # Conditions that are constant stay branches there, around every event.
            return "the code is not optimised (-G, -O0)"
        called = any(function.triggers and not function.entry for function in self.cubin.functions)
        if called and any(one.opcode.startswith("CALL") for one in flow.instructions):
            return "a function with events is called"
        return ""

    def _imbalance(self, found: Imbalance) -> str:
        fault = found.fault
        event = self.declared.events.get(fault.event) if fault.event is not None else None
        name = repr(event.name) if event else "a range"
        messages = {
            "pop": "a pop on a path on which no range is open",
            "exit": f"the kernel can end while {name} is open",
            "token": f"the kernel can end with the token range {name} started and not ended",
            "loop": f"each pass of a loop opens {name} and does not close it",
        }
        return messages[fault.kind]

    def _path(self, flow: Flow, found: Imbalance) -> str:
        path = ", ".join(f"{flow.instructions[index].address:#x}" for index in found.path)
        return f"; the path's jumps: {path}" if path else ""

    def _check_empty(self, function: Function, flow: Flow, records: tuple[Record, ...]) -> None:
        """Look for ranges whose two ends follow each other in one block with only events between them."""
        by_trigger = {record.trigger: record for record in records}
        order = sorted(by_trigger)
        for position, start in enumerate(order[:-1]):
            event = self.declared.events.get(by_trigger[start].id or 0)
            end = order[position + 1]
            if event is None or event.kind is EventKind.MARK or flow.block_of(start) != flow.block_of(end):
                continue
            closing = abi.ID_POP if event.kind is EventKind.RANGE else event.id
            if by_trigger[end].id != closing:
                continue
            own = own_instructions(flow, records, start + 1, end + 1)
            if own.issuperset(range(start + 1, end + 1)):
                self.find(
                    "empty-range",
                    f"nothing stands between the two ends of {event.name!r}",
                    **place(function, flow.instructions[start]),
                )
