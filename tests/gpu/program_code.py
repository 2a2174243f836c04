# SPDX-License-Identifier: Apache-2.0
"""The machine code of a program by function and offset, to tell what a tool's `function+0xoffset` is, for tests.

The offset that compute-sanitizer prints is the instruction's own in its function, as in a listing of nvdisasm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import iket_rewrite
from iket_rewrite.verification.containers import opened
from iket_rewrite.verification.cubin import read_cubin
from iket_rewrite.verification.disassembly import show

_UNNAMED = re.compile(r"\(anonymous namespace\)|<unnamed>")


@dataclass(frozen=True)
class Function:
    """One function of one of the program's cubins.

    Attributes:
        symbol: its mangled name.
        opcodes: the instruction at each offset, without its modifiers.
        records: offsets of the stores of records that iket-verify finds right.
    """

    symbol: str
    opcodes: Mapping[int, str]
    records: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Code:
    """All functions of a program."""

    functions: tuple[Function, ...] = ()

    @classmethod
    def of(cls, program: Path) -> Code:
        """Read the very binary that runs."""
        records: dict[tuple[str, str], set[int]] = {}
        for site in iket_rewrite.verify(program).sites:
            if site.verdict == "ok":
                stores = {address for address, _, _, _, role in site.instructions if role != "trigger"}
                records.setdefault((site.image, site.kernel), set()).update(stores)
        functions = []
        with opened(str(program), program.read_bytes()) as container:
            for image in container.images:
                cubin, failures = read_cubin(image.data), dict[str, str]()
                # Without functions to choose, nvdisasm would be asked for none by an empty list.
                listings = show(image.path, cubin, cubin.functions, None, failures) if cubin.functions else ()
                for listing in listings:
                    opcodes = {one.address: one.opcode.split(".")[0] for one in listing.instructions}
                    own = frozenset(records.get((image.name, listing.name), ()))
                    functions.append(Function(listing.name, opcodes, own))
                assert not failures, failures
        return cls(tuple(functions))

    def is_record(self, name: str, offset: int) -> bool:
        """Say whether a store of a record, and nothing else, can be at a place that a tool names."""
        found = self._called(name)
        return bool(found) and all(offset in function.records for function in found)

    def opcode(self, name: str, offset: int) -> str:
        """Return what instruction is at a place, or "?" where that can not be said."""
        found = {function.opcodes.get(offset, "?") for function in self._called(name)}
        return found.pop() if len(found) == 1 else "?"

    def _called(self, name: str) -> list[Function]:
        """Return every function that a name may mean: of a symbol those that have it, in whatever image.

        A demangled name means all whose symbol holds its first identifier: the right one is among them.
        """
        exact = [function for function in self.functions if function.symbol == name]
        if exact:
            return exact
        words = re.findall(r"\w+", re.split(r"[<(]", _UNNAMED.sub("", name))[0])
        part = f"{len(words[-1])}{words[-1]}" if words else "?"
        return [function for function in self.functions if part in function.symbol]
