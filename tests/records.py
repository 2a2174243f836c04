# SPDX-License-Identifier: Apache-2.0
"""Read IKET records out of a disassembly, for tests: per trigger, the stores that make up its record.

A straight walk back from each `PMTRIG` to the timestamp that its record holds.  The code between may not branch, and
must store the timestamp; which stores are the record's follows from their addresses alone: the same base register,
within the 16 bytes that a record can have.  The reader knows nothing of the project's forms.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from toolbox import nvdisasm

#: Bytes of the longest record: a timestamp (padded) and a 64-bit payload.
RECORD_BYTES = 16

_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z0-9_.]+)\s*([^;]*);")
_SECTION = re.compile(r"\s*\.section\s+\.text\.(\S+?),")
_LABEL = re.compile(r"(\.L\w+):")
_REGISTER = re.compile(r"U?R(?:\d+|Z)\b")
_ADDRESS = re.compile(r"\[(?:(U?R\d+)(?:\.U32)?)?(?:\+(U?R\d+))?(?:\+?(-?0x[0-9a-f]+))?\]")
_JUMPS = frozenset(
    ("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "CALL", "RET", "EXIT", "BREAK", "BSYNC", "WARPSYNC", "YIELD", "KILL")
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, or a label where `opcode` is empty."""

    address: int
    predicate: str
    opcode: str
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """One store of a record: how wide, how far from the record's first byte, under which predicate."""

    opcode: str
    offset: int
    predicate: str


@dataclass(frozen=True, slots=True)
class Record:
    """One trigger with the stores before it.

    Attributes:
        id: the event.
        address: where the trigger lies in the kernel's code.
        predicate: what guards the trigger.
        stores: the stores of the record, in the order of the code.
        origin: base register and offset of the timestamp's store.
        fault: why no record can be told, or empty.
    """

    id: int
    address: int
    predicate: str
    stores: tuple[Store, ...] = ()
    origin: tuple[str, int] = ("", 0)
    fault: str = ""

    @property
    def shape(self) -> tuple[tuple[str, int], ...]:
        """Return width and offset of each store."""
        return tuple((store.opcode, store.offset) for store in self.stores)

    @property
    def predicates(self) -> set[str]:
        """Return the predicates of the stores; more than one means that they are not guarded together."""
        return {store.predicate for store in self.stores}


def listing(cubin: bytes) -> dict[str, list[Instruction]]:
    """Disassemble a cubin; return the instructions and labels of each kernel by its mangled name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "listing.cubin"
        path.write_bytes(cubin)
        done = subprocess.run([nvdisasm(), "-c", str(path)], capture_output=True, text=True, check=True)
    return parse_listing(done.stdout.splitlines())


def parse_listing(lines: Iterable[str]) -> dict[str, list[Instruction]]:
    """Return the instructions and labels in nvdisasm's text."""
    functions: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in lines:
        if section := _SECTION.match(line):
            current = functions.setdefault(section.group(1), [])
        elif label := _LABEL.match(line):
            current.append(Instruction(-1, "", "", (label.group(1),)))
        elif found := _INSTRUCTION.search(line):
            address, predicate, opcode, operands = found.groups()
            parts = tuple(part.strip() for part in operands.split(",")) if operands.strip() else ()
            current.append(Instruction(int(address, 16), predicate or "", opcode, parts))
    return functions


def read_records(cubin: bytes) -> dict[str, list[Record]]:
    """Return the records of each kernel in the order of its code; kernels without any are left out."""
    return {name: records for name, code in listing(cubin).items() if (records := records_of(code))}


def records_of(code: list[Instruction]) -> list[Record]:
    """Return the record of every trigger in one kernel's code."""
    return [_record(code, index) for index, one in enumerate(code) if one.opcode == "PMTRIG"]


def _record(code: list[Instruction], trigger: int) -> Record:
    one = code[trigger]
    number = int(one.operands[0], 16)

    def fault(text: str) -> Record:
        return Record(number, one.address, one.predicate, fault=text)

    start = trigger - 1
    while start >= 0 and "SR_GLOBALTIMERLO" not in code[start].operands:
        if not code[start].opcode:
            return fault(f"a jump can lead between the timestamp and the trigger ({code[start].operands[0]})")
        if code[start].opcode.split(".")[0] in _JUMPS:
            return fault(f"{code[start].opcode} stands between the timestamp and the trigger")
        if code[start].opcode == "PMTRIG":
            return fault("no timestamp is read between this trigger and the one before")
        start -= 1
    if start < 0:
        return fault("no timestamp is read before the trigger")
    return _stores(code[start:trigger], fault) or fault("the timestamp is not stored")


def _stores(body: list[Instruction], fault) -> Record | None:
    """Return the record whose timestamp is read by the first instruction of `body`, and which ends with it."""
    holders: set[str] = set()
    found: list[tuple[int, str, int, bool]] = []
    for index, one in enumerate(body):
        if one.opcode.startswith("STS"):
            base, offset = _address(one.operands[0])
            found.append((index, base, offset, one.operands[1] in holders))
        elif one.operands:
            target = one.operands[0]
            sources = {name for operand in one.operands[1:] for name in _REGISTER.findall(operand)}
            if index == 0 or sources & holders:
                holders.add(target)
            else:
                holders.discard(target)
    stamps = [entry for entry in found if entry[3]]
    if not stamps:
        return None
    if len(stamps) > 1:
        return fault(f"the timestamp is stored {len(stamps)} times")
    _, base, origin, _ = stamps[0]
    own = [entry for entry in found if entry[1] == base and 0 <= entry[2] - origin < RECORD_BYTES]
    stores = tuple(Store(body[index].opcode, offset - origin, body[index].predicate) for index, _, offset, _ in own)
    first, last = own[0][0], own[-1][0]
    predicates = {store.predicate.lstrip("!") for store in stores} - {""}
    for one in body[first + 1 : last]:
        if base in _targets(one) or predicates & _targets(one):
            return fault(f"{one.opcode} changes the address or the predicate between two stores of the record")
    record = fault("")
    return Record(record.id, record.address, record.predicate, stores, (base, origin))


def _address(operand: str) -> tuple[str, int]:
    """Return base registers and offset of `[UR4+0x8]` and the like; a bare number has no base."""
    found = _ADDRESS.fullmatch(operand)
    if found is None:
        return operand, 0
    first, second, offset = found.groups()
    return "+".join(filter(None, (first, second))), int(offset or "0", 16)


def _targets(one: Instruction) -> set[str]:
    """Return the registers and predicates that an instruction may write: its first operands."""
    if one.opcode.split(".")[0] in ("STS", "STG", "ST", "STL", "BAR", "NOP"):
        return set()
    first = set(_REGISTER.findall(one.operands[0])) if one.operands else set()
    names = {operand for operand in one.operands[:2] if re.fullmatch(r"U?P\d", operand)}
    if ".64" in one.opcode or ".WIDE" in one.opcode:
        first |= {re.sub(r"\d+", lambda digits: str(int(digits.group()) + 1), name) for name in first}
    return first | names
