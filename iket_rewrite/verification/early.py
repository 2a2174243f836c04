# SPDX-License-Identifier: Apache-2.0
"""Start nvdisasm before anything heavy is imported: its own start is most of what a small cubin takes."""

from __future__ import annotations

import re

from .toolchain import RunningTool, find_tool

#: Below this many bytes nvdisasm's own start is what takes the time, and it may as well show everything.
SMALL = 128 * 1024
_CUBIN = re.compile(rb"\x7fELF.{14}\xbe\x00", re.DOTALL)
_LINE_INFO = b".nv_debug_line_sass"


def start_early(path: str) -> tuple[RunningTool | None, bytes | None]:
    """Start nvdisasm on a small cubin with triggers; return it with the file's bytes, None where there is no need."""
    try:
        with open(path, "rb") as file:
            data = file.read(SMALL + 1)
            if len(data) > SMALL or not _CUBIN.match(data) or not may_have_triggers(data):
                return None, None
    except OSError:
        return None, None
    return start_whole(path, line_info=_LINE_INFO in data), data


def start_whole(path: str, *, line_info: bool) -> RunningTool:
    """Start nvdisasm on a whole file."""
    return RunningTool([find_tool("nvdisasm"), *output_form(line_info=line_info), path])


def output_form(*, line_info: bool) -> list[str]:
    """Return the options that choose what is printed: only the text tells of inlined calls, and so the user's line."""
    form = ["--print-code", "--print-line-info-inline"] if line_info else ["--emit-json"]
    # Its data flow analysis looks for targets of indirect jumps: no verdict rests on it, and it takes a quarter of the
    # time.
    return [*form, "--no-dataflow"]


# --- Triggers by their encoding -------------------------------------------------------------------------------

INSTRUCTION_BYTES = 16
#: PMTRIG's encoding has 0x801 in its low twelve bits, sm_75 to sm_121 (nvdisasm 13.5); the bits above are a predicate.
_TRIGGER = re.compile(b"\x01[" + b"".join(re.escape(bytes([0x08 | high << 4])) for high in range(16)) + b"]")


def triggers(code: bytes) -> list[int]:
    """Return the offsets of the trigger instructions in code; much faster than disassembling it."""
    return [match.start() for match in _TRIGGER.finditer(code) if match.start() % INSTRUCTION_BYTES == 0]


#: A move of a register to itself, by MOV's encoding; the register is the first group.
_SELF_MOVE = re.compile(
    b"\x02[" + b"".join(re.escape(bytes([2 | high << 4])) for high in range(16)) + b"](.).\\1", re.S
)


def looks_unoptimised(code: bytes) -> bool:
    """Say whether many instructions move a register to itself: a quarter does in code of -O0, none in any other."""
    count = sum(match.start() % INSTRUCTION_BYTES == 0 for match in _SELF_MOVE.finditer(code))
    return 20 * count > len(code) // INSTRUCTION_BYTES


def may_have_triggers(data: bytes) -> bool:
    """Say whether anything in a file looks like a trigger."""
    return any(match.start() % INSTRUCTION_BYTES == 0 for match in _TRIGGER.finditer(data))
