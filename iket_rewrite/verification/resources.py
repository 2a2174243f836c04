# SPDX-License-Identifier: Apache-2.0
"""What each function of a cubin takes of its SM, as ptxas wrote it down: attributes and sizes of sections."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

from .attributes import attributes
from .cubin import elf_of

#: Attributes of the module, each a pair of the function's symbol and a number.
_REGISTERS, _FRAME = 0x2F, 0x11
#: Attributes of a function.
_BARRIERS, _TRANSACTION_BARRIERS = 0x4C, 0x38
_PAIR = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Resources:
    """What a function takes.

    Attributes:
        registers: per thread; None where the file does not say.
        local_bytes: local memory per thread: the stack frame, in which spilled registers lie, and arrays.
        shared_bytes: static shared memory, with what the system reserves of it (1 KiB from sm_90 on).
        barriers: named barriers (`__syncthreads` is one).
        transaction_barriers: how many mbarriers ptxas counted.
    """

    registers: int | None = None
    local_bytes: int = 0
    shared_bytes: int = 0
    barriers: int = 0
    transaction_barriers: int = 0


def read_resources(data: bytes) -> dict[str, Resources]:
    """Return what each function of a cubin takes, by its mangled name.

    Raises:
        CubinError: the bytes are no ELF file for a GPU, or are damaged.
        ToolError: pyelftools is not installed.
    """
    with elf_of(data) as elf:
        return _read(elf, data)


def _read(elf: Any, data: bytes) -> dict[str, Resources]:
    sections = {section.name: section for section in elf.iter_sections()}
    table = elf.get_section_by_name(".symtab")
    symbols = enumerate(table.iter_symbols()) if table is not None else ()
    names = {index: symbol.name for index, symbol in symbols if symbol["st_info"]["type"] == "STT_FUNC"}
    found = {name: _of_function(sections, name, data) for name in names.values()}
    for attribute, value in attributes(_content(sections.get(".nv.info"), data)):
        if attribute not in (_REGISTERS, _FRAME) or len(value) < _PAIR.size:
            continue
        symbol, number = _PAIR.unpack_from(value)
        name = names.get(symbol)
        if name is None:
            continue
        if attribute == _REGISTERS:
            found[name] = replace(found[name], registers=number)
        else:
            found[name] = replace(found[name], local_bytes=found[name].local_bytes + number)
    return found


def _of_function(sections: dict[str, Any], name: str, data: bytes) -> Resources:
    info = dict(attributes(_content(sections.get(f".nv.info.{name}"), data)))
    local, shared = sections.get(f".nv.local.{name}"), sections.get(f".nv.shared.{name}")
    return Resources(
        local_bytes=int(local["sh_size"]) if local is not None else 0,
        shared_bytes=int(shared["sh_size"]) if shared is not None else 0,
        # A number of one byte stands in the first of the two.
        barriers=info.get(_BARRIERS, b"\0")[0] if info.get(_BARRIERS) else 0,
        transaction_barriers=int.from_bytes(info.get(_TRANSACTION_BARRIERS, b""), "little"),
    )


def _content(section: Any, data: bytes) -> bytes:
    """Return a section's bytes, cut to those that are there."""
    if section is None or section["sh_type"] == "SHT_NOBITS":
        return b""
    return data[section["sh_offset"] : section["sh_offset"] + section["sh_size"]]
