# SPDX-License-Identifier: Apache-2.0
"""Run a program under NVIDIA's compute-sanitizer and read its findings, for tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

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
_ACCESS = re.compile(r"\b(?:Read|Write) access\b")


@dataclass(frozen=True)
class Verdict:
    """What one tool said of one program.

    Attributes:
        kinds: the findings without their places: the same fault in two builds has the same kind.
        count: how many the summary counts.
        log: everything that the tool wrote.
    """

    kinds: frozenset[str]
    count: int
    log: str

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
    line = [find() or NAME, *options, *command]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)
    return done, log.read_text(encoding="utf-8") if log.exists() else ""


def read(log: str) -> Verdict:
    """Read what a tool wrote.

    Raises:
        ValueError: there is not one summary: the program was not checked to its end.
    """
    found: list[tuple[str, set[str]]] = []
    counts = []
    for line in log.splitlines():
        if not line.startswith(f"{_LEAD} "):
            continue
        text = line.removeprefix(f"{_LEAD} ")
        summary = _SUMMARY.fullmatch(text.strip())
        if summary:
            counts.append(int(summary[1] or summary[2]))
        elif text.startswith(" "):
            # All that is indented tells the place, but for the other ends of a race.
            if found and found[-1][1]:
                found[-1][1].update(_ACCESS.findall(text))
        elif text.strip() and "SUMMARY:" not in text and text.strip() != "COMPUTE-SANITIZER":
            accesses = set(_ACCESS.findall(text))
            text = _ACCESS.split(text)[0] if accesses else _PLACE.sub("", text)
            found.append((_ADDRESS.sub("0x", text.strip()), accesses))
    if len(counts) != 1:
        raise ValueError(f"{len(counts)} summaries instead of one:\n{log}")
    kinds = frozenset(" ".join([text, " and ".join(sorted(accesses))]).strip() for text, accesses in found)
    return Verdict(kinds, counts[0], log)
