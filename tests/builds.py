# SPDX-License-Identifier: Apache-2.0
"""Real builds that tests share: every fixture rewritten and compiled once, and what a plan says a binary must hold."""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from records import Record, read_records
from toolbox import ARCHES, FIXTURES, INCLUDE, NVCC, Official, nvrtc, site_packages

import iket_rewrite
from iket_rewrite import abi
from iket_rewrite.abi import EventKind
from iket_rewrite.rewriting.plan import PayloadForm

needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc here (PATH, or the variable NVCC)")


# --- Fixtures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixture:
    """One source that the rewriter must serve: where it lies, who wrote it, and for which architectures it is."""

    origin: str
    path: Path
    arches: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.origin}/{self.path.stem}"

    @functools.cached_property
    def expected(self) -> dict:
        """What a person read in the source."""
        return json.loads((FIXTURES / self.origin / "expected.json").read_text(encoding="utf-8"))[self.path.stem]

    @property
    def kernels(self) -> dict[str, list[str]]:
        """Names of the events of each kernel, by its name in a cubin."""
        symbols = self.expected.get("symbols", {})
        return {symbols.get(name, name): events for name, events in self.expected["kernels"].items()}

    @property
    def triggers(self) -> dict[str, int]:
        """Number of triggers of each straight-line kernel, by its name in a cubin."""
        symbols = self.expected.get("symbols", {})
        return {symbols.get(name, name): count for name, count in self.expected.get("triggers", {}).items()}


def _own_arch(path: Path) -> tuple[str, ...]:
    return ("sm_" + path.stem.rsplit("_", 1)[1],)


CUDA = [Fixture("cuda", path, ARCHES) for path in sorted((FIXTURES / "cuda").glob("*.cu"))]
TILELANG = [
    Fixture("tilelang", path, _own_arch(path))
    for path in sorted((FIXTURES / "tilelang").glob("*.cu"))
    if ".instrumented" not in path.name
]
TIRX = [Fixture("tirx", path, _own_arch(path)) for path in sorted((FIXTURES / "tirx").glob("tokens_*.cu"))]
GENERATED = [*TILELANG, *TIRX]


def names(values: list) -> list[str]:
    """Return ids for parameters that are fixtures."""
    return [value.name for value in values]


# --- Builds ---------------------------------------------------------------------------------------------------


@functools.cache
def toolkit_include() -> Path | None:
    """Return the folder of the CUDA toolkit's headers, from the wheels or from an installation."""
    candidates = [site_packages("nvidia-cuda-nvrtc", "nvidia/cu13/include")]
    candidates += [Path(os.environ[name], "include") for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    candidates += [Path(found).resolve().parents[1] / "include" for found in [shutil.which("nvcc")] if found]
    candidates.append(Path("/usr/local/cuda/include"))
    return next((folder for folder in candidates if (folder / "cuda_fp16.h").is_file()), None)


def toolkit_headers() -> tuple[Path, Path]:
    """Return the include folders of a source that uses the toolkit's headers; skip the test without a toolkit."""
    folder = toolkit_include()
    if folder is None:
        pytest.skip("no headers of the CUDA toolkit here (wheels nvidia-cuda-runtime, -cccl and -crt, or CUDA_HOME)")
    return folder, folder / "cccl"


def tilelang_headers() -> tuple[Path, Path]:
    """Return the include folders of TileLang's own headers."""
    return site_packages("tilelang", "tilelang/src"), site_packages("tilelang", "tilelang/3rdparty/cutlass/include")


@functools.cache
def rewritten(fixture: Fixture, runtime_payloads: bool | None = None, method: str = "auto") -> iket_rewrite.Rewrite:
    """Rewrite a fixture."""
    text = fixture.path.read_text(encoding="utf-8")
    return iket_rewrite.rewrite(text, runtime_payloads=runtime_payloads, method=method, path=fixture.path)


@functools.cache
def cubin(fixture: Fixture, arch: str, runtime_payloads: bool | None = None, method: str = "auto") -> bytes:
    """Rewrite a fixture and compile it with NVRTC, with the options that its generator uses."""
    return nvrtc(rewritten(fixture, runtime_payloads, method).text, arch, **nvrtc_options(fixture.origin))


def nvrtc_options(origin: str) -> dict:
    """Return what NVRTC needs beside the source (see the README of the fixture's folder)."""
    if origin == "tilelang":
        return {
            "std": "c++20",
            "include": (*tilelang_headers(), *toolkit_headers()),
            "device_as_default_execution_space": True,
            "pre_include": "tl_templates/cuda/nvrtc_std.h",
        }
    return {"include": toolkit_headers()} if origin == "tirx" else {}


def ptx(text: str, arch: str = "sm_90a", std: str = "c++17") -> str:
    """Compile CUDA C++ to PTX with NVRTC's bindings: cuda.core asks the driver whether it could load PTX."""
    from cuda.bindings import nvrtc as bindings

    def checked(result):
        code, *values = result
        assert code == bindings.nvrtcResult.NVRTC_SUCCESS, code
        return values[0] if values else None

    program = checked(bindings.nvrtcCreateProgram(text.encode(), b"source.cu", 0, [], []))
    options = [f"--gpu-architecture=compute_{arch[3:]}".encode(), f"--std={std}".encode(), f"-I{INCLUDE}".encode()]
    checked(bindings.nvrtcCompileProgram(program, len(options), options))
    result = b" " * checked(bindings.nvrtcGetPTXSize(program))
    checked(bindings.nvrtcGetPTX(program, result))
    return result.rstrip(b"\0").decode()


def cuda_arch(arch: str) -> int:
    """Return `__CUDA_ARCH__` of a name such as sm_90a."""
    return 10 * int("".join(filter(str.isdigit, arch)))


# --- What a plan says of a binary --------------------------------------------------------------------------------


def check_declarations(plan: iket_rewrite.Plan, cubin: bytes) -> Official:
    """Check that the official parser finds exactly the plan's events and ranges."""
    found = Official(cubin)
    method = {"native": 3, "extended": 5}[plan.method.value]
    position = {EventKind.MARK: 0, EventKind.RANGE: 1, EventKind.TOKEN_RANGE: 4}
    assert found.events == {
        event.id: (
            event.name,
            event.payload.code if event.payload else 0,
            position[event.kind],
            event.range_id,
            method,
        )
        for event in plan.events
    }
    kinds = {EventKind.RANGE: (2, 0), EventKind.TOKEN_RANGE: (1, 1)}
    assert found.ranges == {
        event.range_id: (event.name, *kinds[event.kind], -1 if event.color is None else event.color)
        for event in plan.events
        if event.kind is not EventKind.MARK
    }
    return found


def check_kernels(fixture: Fixture, plan: iket_rewrite.Plan, found: Official) -> None:
    """Check that each kernel triggers exactly the events that a person read in it, pops where it pushes, no others."""
    by_name: dict[str, set[int]] = {}
    for event in plan.events:
        by_name.setdefault(event.name, set()).add(event.id)
    pushed = {event.id for event in plan.events if event.kind is EventKind.RANGE}
    expected = {}
    for kernel, event_names in fixture.kernels.items():
        ids = set().union(*(by_name[name] for name in event_names))
        expected[kernel] = ids | ({abi.ID_POP} if ids & pushed else set())
    assert {kernel: {number for number, _ in points} for kernel, points in found.triggers.items()} == expected


def expected_shape(plan: iket_rewrite.Plan, number: int) -> tuple[tuple[str, int], ...]:
    """Return the stores that an event's record must have, in their order, from the contract's words."""
    payload = next((event.payload for event in plan.events if event.id == number), None)
    wide = payload is not None and payload.bits == 64
    if plan.method is abi.Method.NATIVE:
        return (("STS", 0),) if payload is None else (("STS", 0), ("STS.64", 8) if wide else ("STS", 4))
    return (("STS.64", 0),) if payload is None else (("STS.64", 0), ("STS.64" if wide else "STS", 8))


def check_records(plan: iket_rewrite.Plan, cubin: bytes, found: Official | None = None) -> dict[str, list[Record]]:
    """Check shape, order and guard of every record in a cubin; return the records by kernel."""
    records = read_records(cubin)
    found = found or Official(cubin)
    # What the runtime will patch is what was read.
    read = {kernel: [(one.id, one.address) for one in found_here] for kernel, found_here in records.items()}
    assert read == found.triggers
    guarded: dict[int, Counter] = {}
    for kernel, found_here in records.items():
        for one in found_here:
            where = f"{kernel}: {one}"
            assert not one.fault, where
            assert one.shape == expected_shape(plan, one.id), where
            assert len(one.predicates) == 1, where
            # ptxas predicates a short event under a condition as a whole, its trigger included.
            assert not one.predicate or one.predicates == {one.predicate}, where
            guarded.setdefault(one.id, Counter())["" not in one.predicates] += 1
    _check_election(plan, guarded)
    return records


def _check_election(plan: iket_rewrite.Plan, guarded: dict[int, Counter]) -> None:
    """Check that payloads of an event whose sites are all elected are stored under a predicate."""
    forms: dict[int, set[PayloadForm | None]] = {}
    for site in plan.sites:
        if site.event is not None:
            forms.setdefault(site.event.id, set()).add(site.form)
    for number, used in forms.items():
        if used == {PayloadForm.ELECTED} and number in guarded:
            assert set(guarded[number]) == {True}, number


def arrays(cubin: bytes) -> dict[str, bytes]:
    """Return the bytes of every data object in an ELF image, by its symbol."""
    elf = ELFFile(io.BytesIO(cubin))
    found = {}
    for symbol in elf.get_section_by_name(".symtab").iter_symbols():
        if symbol["st_info"]["type"] == "STT_OBJECT" and isinstance(symbol["st_shndx"], int) and symbol["st_size"]:
            data = elf.get_section(symbol["st_shndx"]).data()
            found[symbol.name] = data[symbol["st_value"] : symbol["st_value"] + symbol["st_size"]]
    return found


def cuobjdump() -> Path:
    """Return the tool of the wheel that takes cubins out of objects and executables."""
    return site_packages("nvidia-cuda-cuobjdump", "nvidia/cu13/bin/cuobjdump")


def embedded(container: Path) -> list[tuple[str, bytes]]:
    """Return (architecture, cubin) of every image in an object file, executable or library."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(cuobjdump()), "-xelf", "all", str(container.resolve())]
        subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
        files = sorted(Path(folder).iterdir())
        return [(path.name.split(".")[-2], path.read_bytes()) for path in files]


def pmtrig_words(cubin: bytes) -> int:
    """Count the triggers in the code's bytes, without a disassembler: PMTRIG is opcode 0x801."""
    count = 0
    for section in ELFFile(io.BytesIO(cubin)).iter_sections():
        if section.name.startswith(".text."):
            data = section.data()
            opcodes = (int.from_bytes(data[at : at + 2], "little") & 0xFFF for at in range(0, len(data), 16))
            count += sum(opcode == 0x801 for opcode in opcodes)
    return count
