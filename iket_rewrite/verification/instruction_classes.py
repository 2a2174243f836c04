# SPDX-License-Identifier: Apache-2.0
"""What an instruction is for, by its opcode: memory traffic, matrix products, copies, waits, arithmetic.

Opcodes that are not known are `other`, never arithmetic: a new one is seen, and changes no label.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from .sass import Instruction


class InstructionClass(Enum):
    """What an instruction is for."""

    GLOBAL = "global"
    SHARED = "shared"
    GENERIC = "generic"
    LOCAL = "local"
    TENSOR_MEMORY = "tensor memory"
    MMA = "mma"
    COPY = "copy issue"
    WAIT = "wait"
    BARRIER = "barrier"
    FLOAT = "float"
    INTEGER = "integer"
    CONTROL = "control"
    OTHER = "other"


#: The first that matches decides.
_RULES: tuple[tuple[InstructionClass, str], ...] = (
    # Copies that go on by themselves: LDGSTS is cp.async, UTMA and UBLK are the copy engine's, STAS is st.async.
    (InstructionClass.COPY, r"LDGSTS|LDGDEPBAR|UTMA(LDG|STG|REDG|PF|CMDFLUSH)|UBLK|STAS|REDAS"),
    (InstructionClass.TENSOR_MEMORY, r"LDTM?\b|STTM?\b|UTCCP|UTCSHIFT|UTCATOMSWS"),
    (InstructionClass.BARRIER, r"UTCBAR"),
    (InstructionClass.MMA, r"[HIDQOB]MMA|[HIQB]GMMA|UTC\w*MMA"),
    (InstructionClass.WAIT, r"BAR\.(SYNC|RED)|B2R\.RESULT|DEPBAR|SYNCS\.PHASECHK|WARPGROUP\.DEPBAR|NANOSLEEP"),
    (InstructionClass.WAIT, r"UCGABAR_WAIT|ACQBULK"),
    (InstructionClass.BARRIER, r"BAR\b|SYNCS|WARPGROUP|ARRIVES|MEMBAR|FENCE|ERRBAR|CGAERRBAR|UCGABAR|PREEXIT"),
    (InstructionClass.BARRIER, r"WARPSYNC(?!\.COLLECTIVE)"),
    (InstructionClass.SHARED, r"LDS|STS|ATOMS|REDS\b"),
    (InstructionClass.LOCAL, r"LDL|STL"),
    (InstructionClass.GLOBAL, r"LDG|STG|ATOMG|RED\b|REDG|TEX|TLD|TMML|TXD|TXQ|SULD|SUST|SURED|SUATOM"),
    (InstructionClass.GENERIC, r"(LD|ST|ATOM)\b"),
    (
        InstructionClass.CONTROL,
        r"BRA|BRX|JMP|JMX|CALL|RET|EXIT|BSSY|BSYNC|BREAK|NOP|KILL|BPT|YIELD|WARPSYNC|ENDCOLLECTIVE|BMOV|PMTRIG|RPCMOV|"
        r"LEPC",
    ),
    (InstructionClass.OTHER, r"IMAD\.MOV|IMAD\.U32 \w+,RZ,RZ,|HFMA2(\.MMA)? \w+,-RZ,RZ,|U?MOV"),
    (
        InstructionClass.FLOAT,
        r"U?(FADD|FMUL|FFMA|FMNMX|FSEL|FSET|FCHK|FRND|FSWZADD|MUFU|[FI]2F|F2[FI]|I2F|F2IP)|[HD](ADD|MUL|FMA|MNMX|SET)|"
        r"VHMNMX",
    ),
    (
        InstructionClass.INTEGER,
        r"U?(V?IADD|IMAD|IMUL|ISET|LEA|LOP|PLOP|SHF|SHL|SHR|V?IMNMX|VIADD|IABS|IDP|POPC|FLO|BREV|BMSK|SGXT|I2I|"
        r"VABSDIFF)|BFE|BFI",
    ),
)
_COMPILED = tuple((found, re.compile(rf"(?:{pattern})")) for found, pattern in _RULES)
#: Of `other` and of arithmetic, what does nothing but compute its result.
_PURE = re.compile(
    r"U?MOV|S2U?R|CS2U?R|U?LDC|R2UR|U?SEL|U?PRMT|U?P2U?R|R2P|VOTE|ELECT|SHFL|MATCH|REDUX|IMAD|HFMA2|LD[GSL]?\b|LDS"
)
#: Predicates under which nothing runs: ptxas puts such loads before cp.async, to work around a fault of the hardware.
NEVER = ("@!PT", "@!UPT")
_COMPUTING = (InstructionClass.FLOAT, InstructionClass.INTEGER)


def classify(instruction: Instruction) -> InstructionClass:
    """Return what an instruction is for."""
    if instruction.predicate in NEVER:
        return InstructionClass.CONTROL
    # These two are written for a plain move too, which only their operands tell.
    told = instruction.opcode.startswith(("IMAD.U32", "HFMA2"))
    return _class_of(f"{instruction.opcode} {instruction.operands}" if told else instruction.opcode)


def is_pure(instruction: Instruction) -> bool:
    """Say whether an instruction has no effect but its result (a load counts as one without)."""
    return classify(instruction) in _COMPUTING or _PURE.match(instruction.opcode) is not None


@lru_cache(maxsize=65536)
def _class_of(text: str) -> InstructionClass:
    return next((found for found, pattern in _COMPILED if pattern.match(text)), InstructionClass.OTHER)
