# SPDX-License-Identifier: Apache-2.0
"""Find the record of each trigger: by where its values come from, not by what stands next to it.

From a PMTRIG the stores are looked for on every path back to the previous trigger.  A store belongs to the record when
it stores the global timer (the timestamp), or when its address is that store's address plus a record's offset.  What
else writes shared memory in between is the kernel's own business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .. import abi
from ..abi import EventKind
from .conditions import Conditions
from .flow import Flow
from .operands import split_operands
from .sass import Instruction
from .values import Linear, Values

TRIGGER = "PMTRIG"
_STORE = re.compile(r"^STS(?!M)")
_ADDRESS = re.compile(r"^\[([^\]]*)\]$")
_WIDTHS = {"8": 8, "U8": 8, "S8": 8, "16": 16, "U16": 16, "S16": 16, "64": 64, "128": 128}
#: Bytes of a record: stores beyond it belong to no record.
RECORD_BYTES = 16
_REGISTER_PAIR = re.compile(r"^(U?R)(\d+)")


@dataclass(frozen=True, slots=True)
class Store:
    """One store to shared memory.

    Attributes:
        index: of the instruction.
        bits: how many it stores.
        address: where, as a symbolic value.
        stamp: the bits that are set in the timer it stores, or None where its low word is no timer.
        high: constant in the second word, where it stores two words and that one is known.
    """

    index: int
    bits: int
    address: Linear
    stamp: int | None
    high: int | None


@dataclass(frozen=True, slots=True)
class Record:
    """One trigger with the stores of its record.

    Attributes:
        trigger: index of the PMTRIG.
        id: its immediate; None where the operand is none.
        stamps: stores of the timer (one, but where paths with stores of their own meet).
        payloads: stores at a payload's offset from the timestamp, with that offset.
        others: stores into the record at some other offset, with that offset.
    """

    trigger: int
    id: int | None
    stamps: tuple[Store, ...]
    payloads: tuple[tuple[int, Store], ...]
    others: tuple[tuple[int, Store], ...]

    @property
    def stores(self) -> tuple[Store, ...]:
        """Return every store of the record, in the order of the code."""
        rest = (store for _, store in (*self.payloads, *self.others))
        return tuple(sorted({store.index: store for store in (*self.stamps, *rest)}.values(), key=lambda s: s.index))


def find_records(flow: Flow, *, stack: bool = True) -> tuple[Record, ...]:
    """Return the record of every trigger, in the order of the code.

    Args:
        flow: the function.
        stack: follow values that are put away on the stack and taken back.
    """
    values = Values(flow, Conditions(flow), stack=stack)
    return tuple(
        _record(values, index)
        for index, instruction in enumerate(flow.instructions)
        if instruction.opcode.startswith(TRIGGER)
    )


def trigger_id(instruction: Instruction) -> int | None:
    """Return a trigger's immediate."""
    try:
        return int(instruction.operands.split(",")[0], 0)
    except ValueError:
        return None


def moves_of(records: tuple[Record, ...], kinds: dict[int, EventKind]) -> dict[int, int]:
    """Return the event of each trigger that opens or closes a range, by the trigger's index."""
    ranges = (EventKind.RANGE, EventKind.TOKEN_RANGE)
    return {
        record.trigger: record.id or 0
        for record in records
        if record.id == abi.ID_POP or kinds.get(record.id or 0) in ranges
    }


def _record(values: Values, trigger: int) -> Record:
    flow = values.flow
    stores = [_store(values, index) for index in _stores_before(flow, trigger)]
    stamps = _own_stamps([store for store in stores if store.stamp is not None])
    payloads: list[tuple[int, Store]] = []
    others: list[tuple[int, Store]] = []
    offsets = {offset for method in abi.Method for offset in method.facts.payload_offset.values()}
    bases = {stamp.address for stamp in stamps} or set(_reserved(stores))
    for store in stores:
        if store in stamps:
            continue
        distance = next((found for base in bases if (found := _distance(base, store.address)) is not None), None)
        if distance is None:
            continue
        (payloads if distance in offsets else others).append((distance, store))
    return Record(trigger, trigger_id(flow.instructions[trigger]), tuple(stamps), tuple(payloads), tuple(others))


def _own_stamps(stores: list[Store]) -> list[Store]:
    """Return which stores of the timer are the record's: a kernel may keep the time in shared memory itself."""
    at_home = [store for store in stores if _is_reserved(store.address)]
    if at_home or not stores:
        return at_home
    return [store for store in stores if store.address == stores[-1].address]


def _is_reserved(address: Linear) -> bool:
    """Say whether records lie at an address, on whatever architecture, at any rank."""
    places = {arch.offset for arch in abi.ARCHES.values()} | {abi.PRE_HOPPER_OFFSET}
    return address.symbol in (None, ("rank", abi.CLUSTER_STRIDE)) and address.offset in places


def _reserved(stores: list[Store]) -> Iterator[Linear]:
    """Return the record's address where no timestamp tells it: what is reserved, at any rank."""
    offsets = {arch.offset for arch in abi.ARCHES.values()} | {abi.PRE_HOPPER_OFFSET}
    for store in stores:
        symbol = store.address.symbol
        if symbol == ("rank", abi.CLUSTER_STRIDE) or symbol is None:
            for offset in offsets:
                if 0 <= store.address.offset - offset < RECORD_BYTES:
                    yield Linear(symbol, offset)


def _distance(base: Linear, address: Linear) -> int | None:
    distance = (address.offset - base.offset) & 0xFFFFFFFF
    return distance if base.symbol == address.symbol and distance < RECORD_BYTES else None


def _stores_before(flow: Flow, trigger: int) -> list[int]:
    """Return the shared stores on every path back from a trigger to the one before it."""
    found: list[int] = []
    seen: set[int] = set()
    work = [(flow.block_of(trigger), trigger)]
    while work:
        number, limit = work.pop()
        block = flow.blocks[number]
        for index in range(limit - 1, block.start - 1, -1):
            opcode = flow.instructions[index].opcode
            if opcode.startswith(TRIGGER):
                break
            if _STORE.match(opcode):
                found.append(index)
        else:
            for predecessor in block.predecessors:
                if predecessor not in seen:
                    seen.add(predecessor)
                    work.append((predecessor, flow.blocks[predecessor].end))
    return sorted(found)


def _store(values: Values, index: int) -> Store:
    instruction = values.flow.instructions[index]
    operands = list(split_operands(instruction.operands))
    bits = next((_WIDTHS[part] for part in instruction.opcode.split(".")[1:] if part in _WIDTHS), 32)
    source = operands[1] if len(operands) > 1 else "?"
    low = values.value(source, index)
    stamp = int(str(low.symbol[1])) if low.symbol is not None and low.symbol[0] == "timer" else None
    high = None
    if bits >= 64:
        pair = _REGISTER_PAIR.match(source)
        if pair is not None:
            second = values.value(f"{pair.group(1)}{int(pair.group(2)) + 1}", index)
            high = second.offset if second.symbol is None else None
    return Store(index, bits, _address(values, operands[0] if operands else "", index), stamp, high)


def _address(values: Values, operand: str, index: int) -> Linear:
    match = _ADDRESS.match(operand)
    total: Linear | None = Linear(None, 0) if match else None
    for part in re.findall(r"[^+]+", match.group(1)) if match else ():
        # `.X4` scales a register, as older architectures can: no record is addressed so.
        value = values.value(part, index) if "." not in part.removesuffix(".reuse") else None
        total = total.plus(value) if total is not None and value is not None else None
    return total if total is not None else Linear(("address", index), 0)


def own_instructions(flow: Flow, records: tuple[Record, ...], start: int, end: int) -> set[int]:
    """Return the instructions from `start` up to `end` that are the events themselves.

    They are triggers, stores of records, and what computes nothing but their operands.
    """
    inside = [record for record in records if start <= record.trigger < end]
    own = {record.trigger for record in inside}
    own |= {store.index for record in inside for store in record.stores if start <= store.index < end}
    needed: set[str] = set()
    for index in range(end - 1, start - 1, -1):
        instruction = flow.instructions[index]
        results = flow.results[index]
        if index in own or (results and needed.issuperset(results)):
            own.add(index)
            needed.difference_update(results)
            needed |= _read(instruction, results)
        elif instruction.opcode == "NOP":
            own.add(index)
    return own


def _read(instruction: Instruction, results: tuple[str, ...]) -> set[str]:
    """Return the registers and predicates that an instruction reads."""
    operands = list(split_operands(instruction.operands))
    # A result may be a source as well, so only the leading operand is its name.
    if results:
        del operands[0]
    names = re.findall(r"(?<![\w.])U?[RP]\d+", ",".join(operands))
    read = set(names)
    if instruction.predicate:
        read.add(instruction.predicate.lstrip("@!"))
    if any(part in instruction.opcode for part in (".64", ".128")):
        for name in names:
            pair = _REGISTER_PAIR.match(name)
            if pair is not None:
                read.add(f"{pair.group(1)}{int(pair.group(2)) + 1}")
    return read
