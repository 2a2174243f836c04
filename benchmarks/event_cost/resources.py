# SPDX-License-Identifier: Apache-2.0
"""What marks take of an SM: registers, spills, shared memory, occupancy and instructions of every example.

python benchmarks/event_cost/resources.py [--output FILE] [--only NAME ...] [--arch ARCH ...]

No GPU is needed: every kernel is compiled with its marks and without, and both are read.  README.md says how.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import iket_rewrite

sys.path.insert(0, str(Path(__file__).parent))
from occupancy import LIMITS, WARP, blocks_per_sm

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
ARCHES = ("sm_90a", "sm_100a")
#: Examples in CUDA C++: the source, and the threads of a block that its program launches.
CUDA = {
    "gemm": ("cuda/gemm/main.cu", 256),
    "lookback_scan": ("cuda/lookback_scan/main.cu", 256),
    "tma_pipeline": ("cuda/tma_pipeline/main.cu", 160),
    "torch_extension": ("cuda/torch_extension/softmax.cu", 128),
}
#: Which environment holds the package of a frontend, and the examples that it generates code for.
FRONTENDS = {"tilelang": ("tilelang_elementwise", "tilelang_gemm"), "tirx": ("tirx_affine",)}
NAMES = (*CUDA, "runtime", *(name for names in FRONTENDS.values() for name in names))
#: ptxas -v: the function, and the bytes that its spills store and load.
_SPILLS = re.compile(r"Function properties for (\S+)\s+\d+ bytes stack frame, (\d+) bytes spill stores, (\d+) bytes")
HEADER = (
    "kernel",
    "threads",
    "registers",
    "spilled bytes, stored / loaded",
    "static shared memory",
    "dynamic",
    "blocks/SM",
    "warps/SM",
    "instructions",
    "outside records",
)


class NotCompiled(Exception):
    """An example that can not be compiled here, and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """One example, twice.

    Attributes:
        name: what the table calls it.
        plain, marked: the sources; where they are the same file, the compiler makes the difference.
        threads: of a block.
        dynamic: bytes of shared memory that the launch asks for.
        options: of nvcc.
    """

    name: str
    plain: Path
    marked: Path
    threads: int
    dynamic: int = 0
    options: tuple[str, ...] = ("-std=c++17",)


@dataclass(frozen=True, slots=True)
class Build:
    """What one build of a kernel takes; `stored` and `loaded` are bytes that spilled registers take."""

    registers: int
    stored: int
    loaded: int
    static: int
    blocks: int
    warps: int
    instructions: int
    outside: int


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel without marks and with them."""

    name: str
    threads: int
    dynamic: int
    before: Build
    after: Build

    def cells(self) -> list[str]:
        """Return what the table shows: one number where both builds have it."""
        names = ("registers", "stored", "loaded", "static", "blocks", "warps", "instructions", "outside")
        shown = {name: _both(getattr(self.before, name), getattr(self.after, name)) for name in names}
        spills = f"{shown['stored']} / {shown['loaded']}"
        rest = [shown[name] for name in ("blocks", "warps", "instructions", "outside")]
        return [self.name, str(self.threads), shown["registers"], spills, shown["static"], str(self.dynamic), *rest]


def _both(before: int, after: int) -> str:
    return str(before) if before == after else f"{before} → {after}"


# --- Sources ----------------------------------------------------------------------------------------------------


def sources(arch: str, folder: Path, wanted: list[str], missing: dict[str, str]) -> Iterator[Source]:
    """Give each wanted example; those that are not to be had are put into `missing` with the reason."""
    for name, (path, threads) in CUDA.items():
        if name in wanted:
            yield Source(name, EXAMPLES / path, EXAMPLES / path, threads)
    if "runtime" in wanted:
        example = runpy.run_path(str(EXAMPLES / "runtime" / "kernel.py"))
        path = folder / "axpy.cu"
        path.write_text(example["SOURCE"], encoding="utf-8")
        yield Source("runtime", path, path, example["BLOCK"])
    for frontend, names in FRONTENDS.items():
        chosen = [name for name in names if name in wanted]
        if not chosen:
            continue
        try:
            described = _generated(frontend, arch, folder)
        except NotCompiled as error:
            missing.update(dict.fromkeys(chosen, str(error)))
            continue
        for name in chosen:
            one = described[name]
            plain, marked = folder / f"{name}.plain.cu", folder / f"{name}.marked.cu"
            yield Source(name, plain, marked, one["threads"], one["dynamic"], tuple(one["options"]))


def _generated(frontend: str, arch: str, folder: Path) -> dict[str, dict]:
    """Have a frontend generate its examples' code, in the environment that holds it."""
    python = sys.executable
    if frontend == "tirx":
        python = str(ROOT / os.environ.get("TIRX_VENV", ".venv-tirx") / "bin" / "python")
        if not os.access(python, os.X_OK):
            raise NotCompiled("no environment of TIRx here (make test makes one)")
    command = [python, str(Path(__file__).with_name("generated.py")), frontend, arch, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise NotCompiled((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return json.loads((folder / "generated.json").read_text(encoding="utf-8"))


# --- Builds -----------------------------------------------------------------------------------------------------


def compiled(source: Source, arch: str, folder: Path, *, marks: bool) -> tuple[Path, dict[str, tuple[int, int]]]:
    """Compile one build; return its cubin, and by function the bytes that its spills store and load."""
    text = source.marked if marks else source.plain
    nvcc = [os.environ.get("NVCC") or shutil.which("nvcc") or "nvcc"]
    environment = dict(os.environ)
    if source.plain == source.marked and marks:
        environment.pop("IKET", None)
        environment["IKET_NVCC"] = nvcc[0]
        nvcc = [sys.executable, "-m", "iket_rewrite.cli.nvcc_command"]
    cubin = folder / f"{source.name}.{'marked' if marks else 'plain'}.cubin"
    options = [*source.options, "-cubin", f"-arch={arch}", "-Xptxas", "-v", f"-I{iket_rewrite.include_dir()}"]
    try:
        line = [*nvcc, *options, str(text), "-o", str(cubin)]
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    except OSError as error:
        raise NotCompiled(f"{nvcc[0]}: {error.strerror}") from None
    if done.returncode:
        raise NotCompiled((done.stderr.strip().splitlines() or ["nvcc ended without a word"])[0])
    return cubin, {name: (int(stored), int(loaded)) for name, stored, loaded in _SPILLS.findall(done.stderr)}


def row(source: Source, arch: str, folder: Path) -> Row:
    """Compile an example twice and read its one kernel.

    Raises:
        NotCompiled: it can not be compiled here.
    """
    (plain, plain_spills), (marked, marked_spills) = (
        compiled(source, arch, folder, marks=marks) for marks in (False, True)
    )
    (kernel,) = iket_rewrite.compare_binaries(plain, marked).kernels
    assert kernel.before is not None
    assert kernel.after is not None
    assert kernel.before.event_instructions == 0 < kernel.after.event_instructions
    builds = []
    for build, spills in ((kernel.before, plain_spills), (kernel.after, marked_spills)):
        assert build.registers is not None
        limits = LIMITS[kernel.arch]
        # ptxas counts what the system reserves where a kernel has shared memory of its own.
        static = max(build.shared_bytes - limits.reserved_bytes, 0)
        blocks = blocks_per_sm(
            kernel.arch,
            threads=source.threads,
            registers=build.registers,
            shared_bytes=static + source.dynamic,
            barriers=build.barriers,
        )
        warps = blocks * -(-source.threads // WARP)
        builds.append(
            Build(build.registers, *spills[kernel.name], static, blocks, warps, build.instructions, build.outside)
        )
    return Row(source.name, source.threads, source.dynamic, *builds)


def rows(arch: str, wanted: list[str]) -> tuple[list[Row], dict[str, str]]:
    """Return the rows of one architecture, and why others are missing."""
    found, missing = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for source in sources(arch, folder, wanted, missing):
            try:
                found.append(row(source, arch, folder))
            except NotCompiled as error:
                missing[source.name] = str(error)
    return found, missing


# --- The table --------------------------------------------------------------------------------------------------


def table(found: list[Row], missing: dict[str, str]) -> list[str]:
    """Return the lines of one architecture's table."""
    lines = [f"| {' | '.join(HEADER)} |", f"| {' | '.join('---' for _ in HEADER)} |"]
    lines += [f"| {' | '.join(one.cells())} |" for one in found]
    if missing:
        lines += ["", *(f"* {name}: not compiled here: {reason}" for name, reason in missing.items())]
    return lines


def totals(found: list[Row]) -> str:
    """Say in a sentence what the rows have in common."""
    more = [one.after.registers - one.before.registers for one in found]
    spilling = sum(one.after.stored > one.before.stored or one.after.loaded > one.before.loaded for one in found)
    shared = sum(one.after.static != one.before.static for one in found)
    fewer = [one.name for one in found if one.after.blocks < one.before.blocks]
    return (
        f"{len(found)} kernels: registers change by {min(more):+d} to {max(more):+d}; {spilling} spill more; "
        f"{shared} have other static shared memory; {len(fewer)} have fewer blocks on an SM"
        f"{' (' + ', '.join(fewer) + ')' if fewer else ''}."
    )


def release() -> str:
    """Return nvcc's release."""
    nvcc = os.environ.get("NVCC") or "nvcc"
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    return found[1] if found else said.strip()


def main() -> int:
    """Compile, read and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="write the tables here")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), help="examples")
    parser.add_argument("--arch", nargs="+", choices=ARCHES, default=list(ARCHES), help="architectures")
    options = parser.parse_args()
    lines = [
        "# What marks take of an SM",
        "",
        "Made by `benchmarks/event_cost/resources.py`; its README says what is compared.  Without marks → with marks;",
        "one number where both builds have it.",
        "",
        f"* nvcc: {release()}",
        f"* iket-rewrite: {iket_rewrite.__version__}",
    ]
    complete = True
    for arch in options.arch:
        found, missing = rows(arch, options.only)
        complete &= not missing
        lines += ["", f"## {arch}", "", *([totals(found), ""] if found else []), *table(found, missing)]
    print("\n".join(lines))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
