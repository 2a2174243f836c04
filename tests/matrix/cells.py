# SPDX-License-Identifier: Apache-2.0
"""Judge one cell of the ptxas matrix: a release, an architecture, a level and a method."""

from __future__ import annotations

import functools
import hashlib
import io
from dataclasses import dataclass, replace
from pathlib import Path

from assembling import assemble_with
from builds import check_declarations, pmtrig_words, ptx
from elftools.elf.elffile import ELFFile
from matrix.sources import module

import iket_rewrite

LEVELS = ("-O0", "-O1", "-O2", "-O3")
METHODS = ("native", "extended")
#: NVIDIA's parser misses events of ExtendedNativeDump in code that is not optimised, and iket-verify warns of it.
UNOPTIMISED = "unoptimised-extended"
#: Where registers run out, ptxas may put a timestamp aside in local memory, where NVIDIA's parser does not follow it.
SPILLED, SPILLING_KERNEL = "id-unproven", "spilled"


@dataclass(frozen=True, slots=True)
class Cell:
    """What one cell holds.

    Attributes:
        triggers: how many the code's bytes hold.
        parsed: how many of them NVIDIA's parser reads.
        merged: how many records iket-verify finds merged.
        findings: rules of its errors and warnings, those of limits included.
        limit: a limit of NVIDIA's parser that shows, and nothing else is wrong: "unoptimised" or "spilled"; or an empty
            string.
        fault: what else is wrong, or an empty string.
        same_as: the cell with the same machine code, whose verdict this is; or an empty string.
    """

    release: str
    arch: str
    level: str
    method: str
    triggers: int
    parsed: int
    merged: int
    findings: tuple[str, ...]
    limit: str = ""
    fault: str = ""
    same_as: str = ""

    @property
    def good(self) -> bool:
        """Say whether nothing is wrong but a known limit."""
        clean = self.parsed == self.triggers and not self.findings
        return not self.fault and not self.merged and (clean or bool(self.limit))


@functools.cache
def assembly(method: str, arch: str) -> str:
    """Return the PTX of the module."""
    return ptx(module(method).text, arch)


_judged: dict[str, Cell] = {}


def judge(release: str, ptxas: Path, arch: str, level: str, method: str, folder: Path) -> Cell:
    """Assemble and judge; code that was judged before is not judged again."""
    try:
        binary = assemble_with(ptxas, assembly(method, arch), release, arch, level, folder)
    except AssertionError as error:
        return Cell(release, arch, level, method, 0, 0, 0, (), fault=f"ptxas: {str(error)[:200]}")
    key = _code(binary)
    if key in _judged:
        old = _judged[key]
        name = f"{old.release} {old.arch} {old.level}"
        return replace(old, release=release, arch=arch, level=level, same_as=name)
    _judged[key] = _judge(binary, release, arch, level, method)
    return _judged[key]


def _judge(binary: bytes, release: str, arch: str, level: str, method: str) -> Cell:
    report = iket_rewrite.verify(binary)
    failing = [finding for finding in report.findings if finding.fails]
    merged = sum(finding.rule == "merged-record" for finding in failing)
    parsed, fault = 0, ""
    try:
        found = check_declarations(module(method).plan, binary)
        parsed = sum(map(len, found.triggers.values()))
    except AssertionError as error:
        fault = f"declarations: {str(error)[:200]}"
    rules = tuple(sorted({finding.rule for finding in failing}))
    triggers = pmtrig_words(binary)
    limit = ""
    if method == "extended" and level == "-O0" and rules == (UNOPTIMISED,):
        limit = "unoptimised"
    elif method == "extended" and rules == (SPILLED,) and {one.kernel for one in failing} == {SPILLING_KERNEL}:
        # iket-verify names exactly what the parser misses.
        limit = "spilled" if parsed + len(failing) == triggers else ""
    return Cell(release, arch, level, method, triggers, parsed, merged, rules, limit, fault)


def _code(binary: bytes) -> str:
    """Return a digest of everything but the notes, which name the release and its options."""
    digest = hashlib.sha256()
    for section in ELFFile(io.BytesIO(binary)).iter_sections():
        if not section.name.startswith((".note", ".shstrtab", ".debug")):
            digest.update(section.name.encode() + b"\0" + section.data())
    return digest.hexdigest()
