# SPDX-License-Identifier: Apache-2.0
"""What the operands of an instruction say: which registers it writes, told from their form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from .sass import Instruction

#: A register or predicate with its sign before it and its suffixes behind it.
REGISTER = re.compile(r"^(-|~|\||!)?(U?R(?:Z|\d+)|U?P(?:T|\d+))(\.\w+)*\|?$")
#: The registers and predicates that operands name.
REGISTERS = re.compile(r"(?<![\w.])U?[RP]\d+")
_NO_RESULT = re.compile(
    r"^(ST|BRA|BRX|JMP|JMX|EXIT|RET|BSSY|BSYNC|BREAK|NOP|BAR|MEMBAR|FENCE|PMTRIG|RED(?!UX)|WARPSYNC|YIELD|ERRBAR|CCTL|DEPBAR|"
    r"LDGDEPBAR|LDGSTS|UTMA|UBLK|UCGABAR|CALL|NANOSLEEP|BPT|KILL|SYNCS\.ARRIVE|ACQBULK|ENDCOLLECTIVE|WARPGROUP|UTC|"
    r"PREEXIT|RPCMOV|BMOV|UGETNEXT|ARRIVES|CGAERRBAR|UVIRTCOUNT|STT|UTCBAR)"
)
#: Matrix instructions write as many registers as their tile has.
_MANY_RESULTS = re.compile(r"^(HGMMA|QGMMA|IGMMA|BGMMA|LDT|LDTM|HMMA|IMMA|DMMA|QMMA|OMMA)")


def split_operands(text: str) -> Iterator[str]:
    """Split operands at their commas, which never stand inside brackets."""
    return iter(text.split(",")) if text else iter(())


def immediate(text: str) -> int | None:
    """Return the value of an immediate as it is written; None where it is none."""
    try:
        return int(text, 0)
    except ValueError:
        return None


def number_of(text: str) -> int | None:
    """Return the value of an immediate as 32 bits; None where it is none."""
    try:
        return int(text, 0) & 0xFFFFFFFF
    except ValueError:
        return None


def written(instruction: Instruction) -> tuple[str, ...]:
    """Return the registers and predicates that an instruction may write."""
    first, _, rest = instruction.operands.partition(",")
    # Results stand first; a second one is a predicate, or follows one.
    second = rest.partition(",")[0]
    if instruction.opcode == "R2P":
        second = rest.rpartition(",")[2]
    elif not second.startswith(("P", "UP")) and "P" not in first[:2]:
        second = ""
    return _results(instruction.opcode, first, second)


@lru_cache(maxsize=65536)
def _results(opcode: str, first: str, second: str) -> tuple[str, ...]:
    if _NO_RESULT.match(opcode):
        return ()
    if opcode == "R2P":
        # The mask names the predicates that are written.
        return tuple(f"P{bit}" for bit in range(7) if (number_of(second) or 0) >> bit & 1)
    result: list[str] = []
    for operand in (first, second):
        match = REGISTER.match(operand)
        if match is None or match.group(1):
            break
        name = match.group(2)
        # PT and RZ swallow a result.
        if not name.endswith(("T", "Z")):
            result += [name] if "P" in name else _width(opcode, name)
    return tuple(result)


def _width(opcode: str, name: str) -> list[str]:
    """Return the registers from `name` on that a result of this opcode fills."""
    stem, number = name.rstrip("0123456789"), int(name.lstrip("UR"))
    if _MANY_RESULTS.match(opcode):
        count = 128 if "GMMA" in opcode or opcode.startswith("LDT") else 8
    elif ".128" in opcode or (opcode.startswith("LDSM") and ".4" in opcode):
        count = 4
    elif ".64" in opcode or ".WIDE" in opcode or opcode.startswith(("DADD", "DMUL", "DFMA", "I2F.F64", "F2F.F64")):
        count = 2
    elif opcode.startswith(("LDSM", "TEX", "TLD", "SULD")):
        count = 4
    elif opcode == "CS2R":
        count = 2
    else:
        count = 1
    return [f"{stem}{number + index}" for index in range(count)]
