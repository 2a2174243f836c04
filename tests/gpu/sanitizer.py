# SPDX-License-Identifier: Apache-2.0
"""Run a program under NVIDIA's compute-sanitizer and read its findings, for tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from gpu.program_code import Code
from toolbox import NVCC, site_packages

NAME = "compute-sanitizer"
TOOLS = ("memcheck", "racecheck", "synccheck")
#: What it says of a device that it can not look into, such as one behind some virtual machines.
REFUSED = "device not supported"

_LEAD = "========="
#: The last word of each tool; a second line, of errors "not printed", is no summary.
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) errors?|RACECHECK SUMMARY: (\d+) hazards? displayed \(.*\)")
#: Where a finding is: in which function, at which of its instructions.
_PLACE = re.compile(r" at .*")
_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
#: One end of a race; the first stands in the finding's first line, each other one in a line of its own.
_ACCESS = re.compile(r"\b(?P<kind>Read|Write) access(?: at (?P<function>.+)\+0x(?P<offset>[0-9a-f]+))?")


@dataclass(frozen=True)
class Access:
    """One end of a race: `Read` or `Write`, the function's name as the tool prints it, the instruction's offset."""

    kind: str
    function: str | None
    offset: int

    def is_record(self, code: Code) -> bool:
        """Say whether it is a store of a record."""
        return self.kind == "Write" and self.function is not None and code.is_record(self.function, self.offset)

    def described(self, code: Code | None) -> str:
        """Return it without the offset, which differs from build to build."""
        if code is None or self.function is None:
            return f"{self.kind} access"
        what = "a record" if self.is_record(code) else code.opcode(self.function, self.offset)
        return f"{self.kind} access of {what} in {self.function}"


@dataclass
class Finding:
    """What the tool says in one paragraph: a text without places, and the ends of a race.

    The first access races with each of the others; it is None where the finding is no race.
    """

    text: str
    first: Access | None = None
    others: list[Access] = field(default_factory=list)

    def kinds(self, code: Code | None) -> set[str]:
        """Return its kinds, a race's for each pair of ends, without those of two records."""
        if self.first is None:
            return {self.text}
        if not self.others:
            return {f"{self.text} {self.first.described(code)}"}
        pairs = [
            (self.first, other)
            for other in self.others
            if code is None or not (self.first.is_record(code) and other.is_record(code))
        ]
        return {f"{self.text} {' and '.join(sorted(end.described(code) for end in pair))}" for pair in pairs}


@dataclass(frozen=True)
class Verdict:
    """What one tool said of one program.

    Attributes:
        kinds: the findings without their places: the same fault in two builds has the same kind.
        count: how many the summary counts, without those of records only.
        log: everything that the tool wrote.
        of_records: how many findings are races of records with each other, and nothing else.
    """

    kinds: frozenset[str]
    count: int
    log: str
    of_records: int = 0

    def beyond(self, other: Verdict) -> list[str]:
        """Return what this program has and the other lacks.

        How often a kind is found depends on timing and on how a loop is unrolled.  It is compared where the other has
        nothing at all.
        """
        found = sorted(self.kinds - other.kinds)
        if self.count and not other.count and not found:
            found = [f"{self.count} findings of no known form"]
        return found


def find() -> str | None:
    """Return the path of compute-sanitizer: on PATH, beside nvcc, in CUDA_HOME, or in NVIDIA's wheel."""
    folders = [Path(os.environ[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    if NVCC:
        folders.insert(0, Path(NVCC).resolve().parent)
    with suppress(metadata.PackageNotFoundError):
        folders.append(site_packages("nvidia-cuda-sanitizer-api", "nvidia/cu13/bin"))
    beside = (shutil.which(NAME, path=str(folder)) for folder in folders)
    return shutil.which(NAME) or next(filter(None, beside), None)


def run(tool: str, command: list[str], log: Path) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a program under a tool; return how it ended, with what it printed itself, and what the tool wrote."""
    options = ["--tool", tool, "--log-file", str(log), "--show-backtrace", "no", "--print-limit", "0"]
    # A symbol names one function for certain; a demangled name needs a demangler to be found in a binary.
    line = [find() or NAME, *options, "--demangle", "no", *command]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    return done, log.read_text(encoding="utf-8") if log.exists() else ""


def read(log: str, code: Code | None = None) -> Verdict:
    """Read what a tool wrote.

    Args:
        log: the tool's text.
        code: the code of the program that ran.  With it, races of records with each other are told apart: without the
            runtime every warp stores its records to the same reserved bytes, and nobody reads them.

    Raises:
        ValueError: there is not one summary: the program was not checked to its end.
    """
    found: list[Finding] = []
    counts, hazards = [], 0
    for line in log.splitlines():
        if not line.startswith(f"{_LEAD} "):
            continue
        text = line.removeprefix(f"{_LEAD} ")
        summary = _SUMMARY.fullmatch(text.strip())
        if summary:
            counts.append(int(summary[1] or summary[2]))
            hazards = int(summary[2] or 0)
        elif text.startswith(" "):
            # All that is indented tells the place, but for the other ends of a race.
            if found and found[-1].first and (access := _access(text)):
                found[-1].others.append(access)
        elif text.strip() and "SUMMARY:" not in text and text.strip() != "COMPUTE-SANITIZER":
            access = _access(text)
            text = _ACCESS.split(text)[0] if access else _PLACE.sub("", text)
            found.append(Finding(_ADDRESS.sub("0x", text.strip()), access))
    if len(counts) != 1:
        raise ValueError(f"{len(counts)} summaries instead of one:\n{log}")
    kinds = [finding.kinds(code) for finding in found]
    of_records = sum(not each for each in kinds)
    unread = hazards - sum(finding.first is not None for finding in found)
    if unread > 0:
        kinds.append({f"{unread} hazards of no known form"})
    return Verdict(frozenset().union(*kinds), counts[0] - of_records, log, of_records)


def _access(text: str) -> Access | None:
    match = _ACCESS.search(text)
    return Access(match["kind"], match["function"], int(match["offset"] or "0", 16)) if match else None
