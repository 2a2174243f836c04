# SPDX-License-Identifier: Apache-2.0
"""From nvdisasm's output to instructions, one function at a time.  Nothing is judged and no process is started here.

nvdisasm 13 prints JSON: predicate, opcode, operands and absolute branch targets per function, without addresses
(start + 16 i).  Its text has labels, and is what older releases print; it alone tells of inlined calls (-gi), so it is
used for binaries with line info too.  Opcodes are not interpreted, so unknown ones do no harm.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from ..errors import CubinError

INSTRUCTION_BYTES = 16
_FUNCTION_START = b'{"function-name"'
_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^\s,]+)")
_LABEL = re.compile(r"^(\.L_\S+|[^\s:]+):\s*$")
#: An inlined instruction has a line for each call around it; the last one is the outermost, the user's own.
_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P[T0-9]\d*)\s+)?([A-Z][\w.]*)\s*([^;]*?)\s*;")
_TARGET = re.compile(r"`\(([^)]+)\)")


@dataclass(slots=True)
class Instruction:
    """One machine instruction.

    Attributes:
        address: byte offset in its function's code.
        predicate: for example "@!P0", or "".
        opcode: with its suffixes, for example "STS.64".
        operands: as text, for example "[UR4+0x4],R3"; branch targets are absolute addresses in hexadecimal.
        file, line: source position where the binary has line info; line 0 where it has not.  Of an inlined instruction
            it is the outermost call, in the function itself.
        inlined: of such a one the positions inside that call, from the instruction's own on.
    """

    address: int
    predicate: str
    opcode: str
    operands: str
    file: str = ""
    line: int = 0
    inlined: tuple[tuple[str, int], ...] = ()

    @property
    def chain(self) -> tuple[tuple[str, int], ...]:
        """Return every position, from the instruction's own to the one in the function itself."""
        return (*self.inlined, (self.file, self.line)) if self.line else ()


@dataclass(slots=True)
class Listing:
    """The instructions of one function."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)


def listings(chunks: Iterable[bytes]) -> Iterator[Listing]:
    """Iterate over the functions in what nvdisasm prints, JSON or text, while it prints it.

    Raises:
        CubinError: the output can not be understood.
    """
    parts = iter(chunks)
    first = next(parts, b"")
    if first.lstrip()[:1] == b"[":
        return _from_json(chain((first,), parts))
    return _from_text(first + b"".join(parts))


def _from_json(chunks: Iterable[bytes]) -> Iterator[Listing]:
    """Cut the array at its functions, so that only one of them is decoded at a time."""
    pending = b""
    begun = False
    for chunk in chunks:
        # A start may lie across two chunks.
        position = max(0, len(pending) - len(_FUNCTION_START))
        pending += chunk
        while (start := pending.find(_FUNCTION_START, max(position, 1 if begun else 0))) >= 0:
            if begun:
                yield _function(pending[:start].rstrip(b", \n\r"))
            pending, begun, position = pending[start:], True, 1
    if begun:
        # The arrays around the functions end here.
        yield _function(pending[: pending.rfind(b"}") + 1])


def _function(chunk: bytes) -> Listing:
    try:
        values = json.loads(chunk)
        address, listing = int(values["start"]), Listing(str(values["function-name"]))
        for entry in values["sass-instructions"]:
            predicate, opcode, operands = entry.get("predicate", ""), entry["opcode"], entry.get("operands", "")
            if not (type(predicate) is type(opcode) is type(operands) is str):
                raise TypeError(f"no instruction: {entry}")
            if predicate == "PR":
                # An operand that the JSON shows as the predicate (13.5): the text has it in its place.
                predicate, operands = "", _with_all_predicates(opcode, operands)
            listing.instructions.append(Instruction(address, predicate, opcode, operands))
            address += INSTRUCTION_BYTES
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CubinError(f"nvdisasm printed JSON of another form: {error!r}") from None
    return listing


def _with_all_predicates(opcode: str, operands: str) -> str:
    """Put PR, all predicates together, where it belongs: first in R2P, second in P2R."""
    first, _, rest = operands.partition(",")
    return f"PR,{operands}" if opcode.startswith("R2P") else f"{first},PR,{rest}"


def _from_text(output: bytes) -> Iterator[Listing]:
    listing: Listing | None = None
    labels: dict[str, int] = {}
    pending: list[str] = []
    file, line = "", 0
    frames: list[tuple[str, int]] = []
    inlined: tuple[tuple[str, int], ...] = ()
    for text in output.decode("utf-8", "replace").splitlines():
        if section := _SECTION.match(text):
            if listing is not None:
                yield _resolved(listing, labels)
            listing, labels, pending, file, line = Listing(section.group(1)), {}, [], "", 0
            frames, inlined = [], ()
        elif listing is None:
            continue
        elif found := _INSTRUCTION.match(text):
            address = int(found.group(1), 16)
            labels.update(dict.fromkeys(pending, address))
            pending = []
            if frames:
                (file, line), inlined, frames = frames[-1], tuple(frames[:-1]), []
            operands = re.sub(r"\s*,\s*", ",", found.group(4))
            listing.instructions.append(
                Instruction(address, found.group(2) or "", found.group(3), operands, file, line, inlined)
            )
        elif label := _LABEL.match(text):
            pending.append(label.group(1))
        elif position := _LINE.match(text):
            frames.append((position.group(1), int(position.group(2))))
    if listing is not None:
        yield _resolved(listing, labels)


def _resolved(listing: Listing, labels: dict[str, int]) -> Listing:
    """Put addresses in the place of labels."""

    def address(match: re.Match[str]) -> str:
        return hex(labels[match.group(1)]) if match.group(1) in labels else match.group()

    for instruction in listing.instructions:
        if "`" in instruction.operands:
            instruction.operands = _TARGET.sub(address, instruction.operands)
    return listing
