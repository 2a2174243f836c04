# SPDX-License-Identifier: Apache-2.0
"""Wall time and memory of iket-verify against nvdisasm alone on the same file, in one run.

Three files: a small cubin; one of about 5 MB of which a tenth of the kernels hold events; one of about 5 MB in which
every kernel does.  Runs of the two alternate; medians are compared.

Run: python benchmarks/verify_speed/run.py [--check] [--output FILE] [--kernels 700]
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import iket_rewrite
from iket_rewrite.verification.toolchain import find_tool, version_of

#: What the kernels are compiled for.
ARCH = "sm_90a"
FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "cuda" / "tiled_gemm.cu"
#: Time of iket-verify divided by nvdisasm's, at most.
GOALS = {"small": 1.15, "a tenth": 1.0, "every kernel": 1.3}
#: Multiplications per kernel beside the tiled ones; each becomes two or three instructions.
STEPS = 200
#: Memory above the interpreter's own divided by nvdisasm's text, at most.
MEMORY_GOAL = 6.0


def source(*, with_events: bool) -> str:
    """Return a kernel's source, as long as an unrolled kernel is."""
    text = FIXTURE.read_text(encoding="utf-8")
    step = re.search(r"acc = fmaf\(.*?\);", text)
    assert step
    work = "\n".join(step.group().replace("[kk]", f"[{number % 16}]") for number in range(STEPS))
    text = text.replace(step.group(), f"{step.group()}\n}}\n{{\n{work}")
    return text if with_events else "\n".join(line for line in text.splitlines() if "IKET_" not in line)


def compile_ptx(text: str, folder: Path) -> tuple[str, str]:
    """Rewrite and compile; return what stands before the kernel, and the kernel."""
    (folder / "kernel.cu").write_text(iket_rewrite.rewrite(text).text, encoding="utf-8")
    include = f"-I{iket_rewrite.include_dir()}"
    command = ["nvcc", "-ptx", f"-arch={ARCH}", "-std=c++17", include, "kernel.cu", "-o", "kernel.ptx"]
    subprocess.run(command, cwd=folder, check=True)
    head, entry, kernel = (folder / "kernel.ptx").read_text(encoding="utf-8").partition(".visible .entry")
    return head, entry + kernel


def build(path: Path, kernels: int, with_events: int) -> None:
    """Write a cubin of many kernels, the first ones with events.

    They are multiplied as PTX: the compiler's front end takes minutes for hundreds of kernels, ptxas seconds.
    """
    folder = path.parent
    head, kernel = compile_ptx(source(with_events=True), folder)
    _, plain = compile_ptx(source(with_events=False), folder)
    bodies = (kernel if number < with_events else plain for number in range(kernels))
    text = "\n".join(body.replace("tiled_gemm", f"tiled_gemm_{number}") for number, body in enumerate(bodies))
    (folder / "all.ptx").write_text(head + text, encoding="utf-8")
    subprocess.run(["nvcc", "-cubin", f"-arch={ARCH}", "all.ptx", "-o", str(path)], cwd=folder, check=True)


def seconds(command: Sequence[str]) -> float:
    """Return the wall time of a command."""
    begin = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} failed: {done.stderr.decode()}")
    return time.perf_counter() - begin


def peak_megabytes(command: Sequence[str]) -> float:
    """Return the largest memory that a Python command had, in MB, without that of the tools it starts."""
    script = (
        "import re, runpy, sys; sys.argv = sys.argv[1:]\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit: pass\n"
        # Not ru_maxrss, which a process inherits from the one that started it.
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 1024, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=False)
    return float(done.stderr.split()[-1])


def compare(path: Path, runs: int) -> tuple[float, float]:
    """Return the median times of iket-verify and of nvdisasm, run by turns."""
    verify = str(Path(sys.executable).with_name("iket-verify"))
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(seconds([verify, str(path)]))
        theirs.append(seconds([find_tool("nvdisasm"), "-c", str(path)]))
    return statistics.median(ours), statistics.median(theirs)


def measure(count: int, runs: int) -> tuple[list[str], bool]:
    """Return the table's lines and whether every goal was reached."""
    cases = {"small": (1, 1), "a tenth": (count, count // 10), "every kernel": (count, count)}
    command = str(Path(sys.executable).with_name("iket-verify"))
    rows = ["| File | cubin | iket-verify / nvdisasm | Goal | Met |", "| --- | --- | --- | --- | --- |"]
    met = True
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.cubin"
        for name, (kernels, events) in cases.items():
            build(path, kernels, events)
            ours, theirs = compare(path, 4 * runs if name == "small" else max(5, runs // 2))
            ratio, size = ours / theirs, path.stat().st_size / 1e6
            met &= ratio <= GOALS[name]
            rows.append(
                f"| {name} | {size:.2f} MB | {ours:.2f} s / {theirs:.2f} s = {ratio:.2f} "
                f"| at most {GOALS[name]} | {'yes' if ratio <= GOALS[name] else 'no'} |"
            )
        listing = subprocess.run([find_tool("nvdisasm"), "-c", str(path)], capture_output=True, check=True).stdout
        peak = peak_megabytes([command, str(path)]) - peak_megabytes([command, "--version"])
    ratio = peak / (len(listing) / 1e6)
    met &= ratio <= MEMORY_GOAL
    rows.append(
        f"| memory, every kernel | {len(listing) / 1e6:.0f} MB of text | {peak:.0f} MB / text = {ratio:.1f} "
        f"| under {MEMORY_GOAL:.0f} | {'yes' if ratio <= MEMORY_GOAL else 'no'} |"
    )
    return rows, met


def main() -> int:
    """Run the comparison; with --check, exit 1 where a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="exit 1 where a goal is missed")
    options.add_argument("--output", type=Path, help="write the table here as well")
    options.add_argument("--kernels", type=int, default=700)
    options.add_argument("--runs", type=int, default=7)
    arguments = options.parse_args()
    rows, met = measure(arguments.kernels, arguments.runs)
    text = "\n".join(
        [
            "# Speed and memory of iket-verify",
            "",
            "Made by `benchmarks/verify_speed/run.py`; its README says what is measured.",
            "",
            f"* system: {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
            f"* Python: {platform.python_implementation()} {platform.python_version()}",
            f"* iket-rewrite: {metadata.version('iket-rewrite')}",
            f"* nvdisasm: {version_of('nvdisasm')}",
            "",
            *rows,
            "",
        ]
    )
    print(text)
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")
    return int(not met and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
