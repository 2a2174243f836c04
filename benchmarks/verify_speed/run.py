# SPDX-License-Identifier: Apache-2.0
"""Wall time and memory of iket-verify against nvdisasm alone on the same file, in one run.

Three files: a small cubin; one of about 5 MB of which a tenth of the kernels hold events; one of about 5 MB in which
every kernel does.  Runs of the two alternate; medians are compared.

Run: python benchmarks/verify_speed/run.py [--check] [--kernels 500]
"""

from __future__ import annotations

import argparse
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

FIXTURE = Path(__file__).resolve().parents[2] / "fixtures" / "cuda" / "tiled_gemm.cu"
#: Time of iket-verify divided by nvdisasm's, at most.
GOALS = {"small": 1.15, "a tenth": 1.0, "every kernel": 1.3}
#: Multiplications per kernel beside the tiled ones; each becomes two or three instructions.
STEPS = 200
#: Memory above the interpreter's own divided by nvdisasm's text, at most.
MEMORY_GOAL = 6.0


def source(kernels: int, with_events: int) -> str:
    """Return a source of many kernels, the first ones with events, each as long as an unrolled kernel is."""
    text = FIXTURE.read_text(encoding="utf-8")
    head, body = text.split('extern "C"', 1)
    step = re.search(r"acc = fmaf\(.*?\);", body)
    assert step
    work = "\n".join(step.group().replace("[kk]", f"[{number % 16}]") for number in range(STEPS))
    body = 'extern "C"' + body.replace(step.group(), f"{step.group()}\n}}\n{{\n{work}")
    plain = "\n".join(line for line in body.splitlines() if "IKET_" not in line)
    parts = [head]
    for number in range(kernels):
        one = body if number < with_events else plain
        parts.append(one.replace("tiled_gemm", f"tiled_gemm_{number}"))
    return "\n".join(parts)


def compile_cubin(text: str) -> bytes:
    """Rewrite and compile."""
    from cuda.core import Program, ProgramOptions

    result = iket_rewrite.rewrite(text)
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=iket_rewrite.include_dir())
    return bytes(Program(result.text, "c++", options).compile("cubin").code)


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
        "import resource, runpy, sys; sys.argv = sys.argv[1:]\n"
        "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)"
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


def main() -> int:
    """Run the comparison; with --check, exit 1 where a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true")
    options.add_argument("--kernels", type=int, default=600)
    options.add_argument("--runs", type=int, default=7)
    arguments = options.parse_args()
    count = arguments.kernels
    cases = {"small": (1, 1), "a tenth": (count, count // 10), "every kernel": (count, count)}
    missed = False
    print(
        f"iket-rewrite {metadata.version('iket-rewrite')}, nvdisasm {version_of('nvdisasm')}, "
        f"Python {platform.python_version()}, {platform.machine()}\n"
    )
    print("file          cubin MB  iket-verify s  nvdisasm s  ratio  goal")
    empty = peak_megabytes([str(Path(sys.executable).with_name("iket-verify")), "--version"])
    with tempfile.TemporaryDirectory() as folder:
        for name, (kernels, events) in cases.items():
            path = Path(folder) / "image.cubin"
            path.write_bytes(compile_cubin(source(kernels, events)))
            ours, theirs = compare(path, 2 * arguments.runs if name == "small" else max(3, arguments.runs // 2))
            ratio = ours / theirs
            missed |= ratio > GOALS[name]
            size = path.stat().st_size / 1e6
            print(f"{name:12} {size:9.2f} {ours:14.2f} {theirs:11.2f} {ratio:6.2f}  {GOALS[name]}")
        listing = subprocess.run([find_tool("nvdisasm"), "-c", str(path)], capture_output=True, check=True).stdout
        peak = peak_megabytes([str(Path(sys.executable).with_name("iket-verify")), str(path)]) - empty
        ratio = peak / (len(listing) / 1e6)
        missed |= ratio > MEMORY_GOAL
        print(
            f"\nmemory above the interpreter's own, every kernel: {peak:.0f} MB, {ratio:.1f} times nvdisasm's text "
            f"(goal {MEMORY_GOAL})"
        )
    return int(missed and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
