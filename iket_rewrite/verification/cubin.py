# SPDX-License-Identifier: Apache-2.0
"""Read a cubin: architecture, functions, metadata arrays, trigger instructions.  It judges nothing.

Only this module imports pyelftools.  Sizes and offsets in the file are not trusted: everything is cut to the bytes that
are there.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from .. import abi
from ..errors import CubinError, ToolError
from .branches import branch_targets
from .early import looks_unoptimised, triggers

_MACHINE_CUDA = 190
_TEXT = ".text."
_PARAMETERS = ".nv.constant0."
_INFO = ".nv.info."
_PTXAS_VERSION = re.compile(rb"release [\d.]+, V([\d.]+)")
_NOT_OPTIMISED = re.compile(rb"(?:^|\s)(?:-O|--opt-level)[ =]?0(?=\s|$)")
#: Variables are of a type of NVIDIA's own where device code is still to be linked (-rdc); pyelftools gives its number.
_VARIABLES = ("STT_OBJECT", "STT_LOPROC", 13)
#: nvcc puts a module's hash before the names of internal-linkage variables when it links device code.
_STATIC = re.compile(rf"^__nv_static_\d+__\w+?_({abi.SYMBOL_PREFIX}\w+)$")


@dataclass(frozen=True, slots=True)
class Function:
    """A function with code.

    Attributes:
        name: its mangled name.
        index: number of its symbol, by which nvdisasm can be restricted to it.
        offset: byte offset of its code in the file.
        size: bytes of its code.
        triggers: byte offsets, in its code, of its trigger instructions.
        entry: it is a kernel.
        calls_events: a device function that ptxas keeps inside its code (`$kernel$function`) has triggers.
        branches: targets of its indirect jumps, by address.
    """

    name: str
    index: int
    offset: int
    size: int
    triggers: tuple[int, ...]
    entry: bool
    calls_events: bool = False
    branches: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Cubin:
    """What a cubin holds.

    Attributes:
        arch: architecture number, for example 90.
        functions: its functions, in the order of the file.
        arrays: bytes of every IKET metadata array, by symbol without nvcc's prefix.
        copies: symbols that stand for more than one array, with all their contents.
        plans: digests of the plans that iket-rewrite left.
        ptxas: release of the assembler, or None where the file does not say.
        line_info: it maps instructions to source lines.
        unoptimised: it was compiled without optimisation (-G, or -O0 of ptxas).
        partial: some functions were left out on request.
    """

    arch: int
    functions: tuple[Function, ...] = ()
    arrays: dict[str, bytes] = field(default_factory=dict)
    copies: dict[str, list[bytes]] = field(default_factory=dict)
    plans: tuple[str, ...] = ()
    ptxas: str | None = None
    line_info: bool = False
    unoptimised: bool = False
    partial: bool = False


def is_cubin(data: bytes) -> bool:
    """Say whether the bytes start as an ELF file for a GPU does."""
    return data[:4] == b"\x7fELF" and len(data) >= 20 and data[18:20] == struct.pack("<H", _MACHINE_CUDA)


def read_cubin(data: bytes) -> Cubin:
    """Read a cubin.

    Raises:
        CubinError: the bytes are no ELF file for a GPU, or are damaged.
        ToolError: pyelftools is not installed.
    """
    with elf_of(data) as elf:
        return _Reader(elf, data).read()


@contextmanager
def elf_of(data: bytes) -> Iterator[Any]:
    """Yield what pyelftools makes of a cubin; in the block, what it stumbles over is an error of ours.

    Raises:
        CubinError: the bytes are no ELF file for a GPU, or are damaged.
        ToolError: pyelftools is not installed.
    """
    try:
        from elftools.common.exceptions import ELFError
        from elftools.construct import ConstructError
        from elftools.elf.elffile import ELFFile
    except ImportError:
        raise ToolError("pyelftools is not installed", remedy="pip install 'iket-rewrite[verify]'") from None

    if not is_cubin(data):
        raise CubinError("this is no cubin: no ELF file for a GPU")
    try:
        yield ELFFile(io.BytesIO(data))
    # A damaged file makes pyelftools stumble in many ways; each means the same to the caller.
    except (
        ELFError,
        ConstructError,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
        struct.error,
    ) as error:
        raise CubinError(f"the cubin is damaged: {error or type(error).__name__}") from None


class _Reader:
    def __init__(self, elf: Any, data: bytes) -> None:
        self.elf, self.data = elf, data
        self.sections = list(elf.iter_sections())
        self.names = {section.name: section for section in self.sections}
        self.table = elf.get_section_by_name(".symtab")
        #: Whether a function with triggers looks like code that is not optimised.
        self.unoptimised = False

    def read(self) -> Cubin:
        if self.table is None:
            raise CubinError("the cubin has no symbol table")
        cubin = Cubin(_arch(self.elf))
        functions: list[Function] = []
        plans: list[str] = []
        for index, symbol in enumerate(self.table.iter_symbols()):
            section = symbol["st_shndx"]
            if not isinstance(section, int) or section >= len(self.sections):
                continue
            kind = symbol["st_info"]["type"]
            if kind == "STT_FUNC":
                function = self._function(index, symbol, self.sections[section])
                if function is not None:
                    functions.append(function)
            elif kind in _VARIABLES:
                self._array(cubin, plans, symbol, self.sections[section])
        cubin.functions = tuple(_outermost(functions))
        cubin.plans = tuple(dict.fromkeys(plans))
        made_by = self._named(".note.nv.tkinfo")
        release = _PTXAS_VERSION.search(made_by)
        cubin.ptxas = release.group(1).decode("ascii") if release else None
        cubin.line_info = bool(self.names.keys() & {".debug_line", ".nv_debug_line_sass"})
        options = made_by.replace(b"\0", b" ")
        told = ".debug_info" in self.names or _NOT_OPTIMISED.search(options) is not None
        # Cubins of releases 12.x for sm_90 have no note of their options.
        cubin.unoptimised = told or (not made_by and self.unoptimised)
        return cubin

    def _function(self, index: int, symbol: Any, section: Any) -> Function | None:
        if not section.name.startswith(_TEXT):
            return None
        code = self._bytes(section, symbol["st_value"], symbol["st_size"], symbol.name)
        offset = section["sh_offset"] + symbol["st_value"]
        # A kernel has a constant bank for its parameters; a device function has none.
        entry = _PARAMETERS + symbol.name in self.names
        found = tuple(triggers(code))
        self.unoptimised = self.unoptimised or (bool(found) and looks_unoptimised(code))
        branches = branch_targets(self._named(_INFO + symbol.name)) if found else {}
        return Function(symbol.name, index, offset, len(code), found, entry, branches=branches)

    def _array(self, cubin: Cubin, plans: list[str], symbol: Any, section: Any) -> None:
        name = symbol.name
        static = _STATIC.match(name)
        name = static.group(1) if static else name
        prefix, suffix = abi.PLAN_SYMBOL.split("{digest}")
        plan = re.search(rf"{prefix}([0-9a-f]{{16}}){suffix}$", name)
        if plan:
            plans.append(plan.group(1))
        if not name.startswith(abi.SYMBOL_PREFIX):
            return
        content = self._bytes(section, symbol["st_value"], symbol["st_size"], symbol.name)
        if name in cubin.arrays:
            cubin.copies.setdefault(name, [cubin.arrays[name]]).append(content)
        else:
            cubin.arrays[name] = content

    def _bytes(self, section: Any, start: int, size: int, what: str = "") -> bytes:
        """Cut bytes out of a section.

        Raises:
            CubinError: there are not so many.
        """
        if section["sh_type"] == "SHT_NOBITS":
            return b""
        begin, length = section["sh_offset"], section["sh_size"]
        if start + size > length or begin + length > len(self.data):
            raise CubinError(
                f"the cubin is damaged: {what or section.name} is said to be {size} bytes long, which is more than "
                "there are"
            )
        return self.data[begin + start : begin + start + size]

    def _named(self, name: str) -> bytes:
        """Return the bytes of the section of a name; none where there is no such section."""
        section = self.names.get(name)
        return self._bytes(section, 0, section["sh_size"]) if section is not None else b""


def _arch(elf: Any) -> int:
    """Return the architecture number: the flags' low byte, or from ABI version 8 on their second one."""
    flags = int(elf["e_flags"])
    return (flags >> 8) & 0xFF if elf["e_ident"]["EI_ABIVERSION"] >= 8 else flags & 0xFF


def _outermost(functions: list[Function]) -> Iterator[Function]:
    """Yield the functions that lie in no other one; nvdisasm shows what is inside as a part of the outer."""
    outer: Function | None = None
    inside: list[Function] = []
    for function in sorted(functions, key=lambda one: (one.offset, -one.size)):
        if outer is not None and function.offset + function.size <= outer.offset + outer.size:
            inside.append(function)
            continue
        if outer is not None:
            yield replace(outer, calls_events=any(one.triggers for one in inside))
        outer, inside = function, []
    if outer is not None:
        yield replace(outer, calls_events=any(one.triggers for one in inside))
