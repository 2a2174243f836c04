# SPDX-License-Identifier: Apache-2.0
"""What tests share: fixtures, real compilers, the official parser, and SASS read back with nvdisasm."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import iket_rewrite
from iket_rewrite import abi

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
INCLUDE = iket_rewrite.include_dir()
ARCHES = ("sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a")


def site_packages(distribution: str, relative: str) -> Path:
    """Return a file or folder that an installed distribution brings."""
    return Path(str(metadata.distribution(distribution).locate_file(relative)))


@functools.cache
def iket_runtime():
    """Return NVIDIA's `iket` package; the wheel keeps it in a folder of its own."""
    folder = str(site_packages("nvidia-cutlass-dsl-libs-base", "nvidia_cutlass_dsl/dsl_packages"))
    if folder not in sys.path:
        sys.path.append(folder)
    import iket

    return iket


@functools.cache
def nvdisasm() -> str:
    """Return the disassembler of the wheel."""
    return str(site_packages("nvidia-cuda-nvdisasm", "nvidia/cu13/bin/nvdisasm"))


def nvrtc(source: str, arch: str = "sm_90a", *, std: str = "c++17", include=(), **options) -> bytes:
    """Compile CUDA C++ with NVRTC to a cubin."""
    from cuda.core import Program, ProgramOptions

    folders = [INCLUDE, *map(str, include)]
    settings = ProgramOptions(arch=arch, std=std, include_path=folders, **options)
    return bytes(Program(source, "c++", settings).compile("cubin").code)


NVCC = os.environ.get("NVCC") or shutil.which("nvcc")


def nvcc(source: Path | str, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run nvcc on a file and return what it said; the caller judges."""
    command = [NVCC or "nvcc", f"-I{INCLUDE}", *options, str(source), "-o", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


#: The strictest warnings that a user may have on.
STRICT = ("-Xcompiler", "-Wall,-Wextra,-Werror", "-Werror", "all-warnings")


def _any_color(cls, value: int):
    """The runtime's enumeration knows a few colours only, and would refuse to list the ranges that have another."""
    member = int.__new__(cls, value)
    member._name_, member._value_ = f"{value:#08x}", value
    return member


class Official:
    """What the official parser reads from a cubin.

    Attributes:
        instrumented: whether it finds a module's metadata, on an architecture that it supports; else all else is empty.
        kernels: names in the order of the triggers, by the kernel's mangled name; a pop is `pop_range`.
        triggers: the same as (event id, offset of the trigger in the kernel's code).
        events: (name, payload type, position, range id, method) of every declared event, by its id.
        ranges: (name, type, pairing, colour) of every declared range, by its id; -1 is the automatic colour.
    """

    def __init__(self, cubin: bytes) -> None:
        iket = iket_runtime()
        iket.Colors._missing_ = classmethod(_any_color)
        context = iket.Context(cubin)
        self.instrumented = bool(context.is_instrumented())
        self.kernels: dict[str, list[str]] = {}
        self.triggers: dict[str, list[tuple[int, int]]] = {}
        self.events: dict[int, tuple[str, int, int, int, int]] = {}
        self.ranges: dict[int, tuple[str, int, int, int]] = {}
        if not self.instrumented:
            return
        for kernel in context.get_kernels_instrument_info():
            points = kernel.instrument_points
            self.kernels[kernel.kernel_name] = [point.event_attr.event_name for point in points]
            self.triggers[kernel.kernel_name] = [(point.event_attr.event_id, point.offset_end) for point in points]
        reserved = (abi.ID_NONE, abi.ID_POP)
        self.events = {
            event.event_id: (
                event.event_name,
                int(event.payload_type),
                int(event.event_pos),
                event.range_id,
                int(event.instrument_method),
            )
            for event in context.get_all_events()
            if event.event_id not in reserved
        }
        self.ranges = {
            one.range_id: (one.range_name, int(one.range_type), int(one.evt_pair_mode), int(one.color))
            for one in context.get_all_ranges()
        }

    def kernel(self, name: str) -> list[str]:
        """Return the events of the one kernel whose mangled name holds `name`."""
        found = [events for mangled, events in self.kernels.items() if name in mangled]
        assert len(found) == 1, (name, list(self.kernels))
        return found[0]


_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z0-9_.]+)\s*([^;]*);")


def sass(cubin: bytes, tmp_path: Path) -> dict[str, list[tuple[str, str, str]]]:
    """Return (predicate, opcode, operands) of every instruction, by the kernel's mangled name."""
    path = tmp_path / "listing.cubin"
    path.write_bytes(cubin)
    done = subprocess.run([nvdisasm(), "-c", str(path)], capture_output=True, text=True, check=True)
    functions: dict[str, list[tuple[str, str, str]]] = {}
    current: list[tuple[str, str, str]] = []
    for line in done.stdout.splitlines():
        if section := re.match(r"\s*\.section\s+\.text\.(\S+?),", line):
            current = functions.setdefault(section.group(1), [])
        elif found := _INSTRUCTION.search(line):
            current.append((found.group(1) or "", found.group(2), found.group(3).strip()))
    return functions
