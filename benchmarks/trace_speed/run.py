# SPDX-License-Identifier: Apache-2.0
"""Time and memory of reading a large trace, against `json.loads` on the same file.

Run: python benchmarks/trace_speed/run.py [--check] [--output FILE] [--ranges 1000000]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from made import write_trace

#: Time of load and summary divided by that of `json.loads`, and peak memory divided by the file's size, at most.
TIME_GOAL, MEMORY_GOAL = 1.5, 3.0
#: What runs in a process of its own; each prints processor seconds, wall seconds and peak memory in bytes.
_JOBS = {
    "json.loads": "import json; json.loads(open(path, 'rb').read())",
    "load": "import iket_rewrite; iket_rewrite.load_trace(path)",
    "load and summary": (
        "import iket_rewrite; from iket_rewrite.tracing.summary import summarize; "
        "summarize(iket_rewrite.load_trace(path), by='payload')"
    ),
    "load and Perfetto": (
        "import iket_rewrite; from iket_rewrite.tracing.export_perfetto import perfetto_bytes; "
        "perfetto_bytes(iket_rewrite.load_trace(path))"
    ),
    "load and Chrome": (
        "import iket_rewrite; from iket_rewrite.tracing.export_chrome import chrome_bytes; "
        "chrome_bytes(iket_rewrite.load_trace(path))"
    ),
}
_SCRIPT = """\
import resource, sys, time
path, wall, spent = sys.argv[1], time.perf_counter(), time.process_time()
{job}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(time.process_time() - spent, time.perf_counter() - wall, peak)
"""


def measure(name: str, path: Path) -> tuple[float, float, float]:
    """Run a job in a process of its own; return processor seconds, wall seconds and peak bytes, imports included."""
    script = _SCRIPT.format(job=_JOBS[name])
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed: {done.stderr}")
    spent, wall, peak = map(float, done.stdout.split())
    return spent, wall, peak


def main() -> int:
    """Run the comparison; with --check, exit 1 where a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true")
    options.add_argument("--output", type=Path, help="write the table as Markdown")
    options.add_argument("--ranges", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.trace.json"
        write_trace(path, arguments.ranges)
        size = path.stat().st_size
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(measure("load and summary", path))
            theirs.append(measure("json.loads", path))
        rest = {name: measure(name, path) for name in ("load", "load and Perfetto", "load and Chrome")}
    ratio = statistics.median(one[0] / other[0] for one, other in zip(ours, theirs, strict=True))
    memory = max(one[2] for one in ours) / size
    rows = table(arguments.ranges, size, ours, theirs, rest, ratio, memory)
    print(json.dumps(rows, indent=2, ensure_ascii=False))
    if arguments.output:
        arguments.output.write_text(page(rows), encoding="utf-8")
    return int(arguments.check and (ratio > TIME_GOAL or memory > MEMORY_GOAL))


def table(ranges, size, ours, theirs, rest, ratio, memory) -> list[tuple[str, str, str, str]]:
    """Return the rows of results: what, result, goal, met."""

    def middle(runs, part):
        return statistics.median(run[part] for run in runs)

    rows = [
        (
            f"{ranges:,} ranges ({size / 1e6:.0f} MB): load and summary / `json.loads`, processor time",
            f"{middle(ours, 0):.1f} s / {middle(theirs, 0):.1f} s = {ratio:.2f}",
            f"at most {TIME_GOAL}",
            "yes" if ratio <= TIME_GOAL else "no",
        ),
        ("the same, wall time", f"{middle(ours, 1):.1f} s / {middle(theirs, 1):.1f} s", "", ""),
        (
            "peak memory of load and summary / size of the file",
            f"{memory * size / 1e6:.0f} MB / {size / 1e6:.0f} MB = {memory:.2f}",
            f"less than {MEMORY_GOAL:.0f}",
            "yes" if memory < MEMORY_GOAL else "no",
        ),
        ("peak memory of `json.loads` / size of the file", f"{middle(theirs, 2) / size:.2f}", "", ""),
    ]
    rows += [
        (f"{name}, processor time and peak memory", f"{run[0]:.1f} s, {run[2] / 1e6:.0f} MB", "", "")
        for name, run in rest.items()
    ]
    return rows


def page(rows: list[tuple[str, str, str, str]]) -> str:
    """Return the results as Markdown."""
    releases = [f"* {name}: {metadata.version(name)}" for name in ("iket-rewrite", "numpy", "msgspec", "perfetto")]
    lines = [
        "# Speed and memory of reading traces",
        "",
        "Made by `benchmarks/trace_speed/run.py`; its README says what is measured.",
        "",
        f"* processor: {processor()}",
        f"* system: {platform.system()} {platform.machine()}",
        f"* Python: {platform.python_implementation()} {platform.python_version()}",
        *releases,
        "",
        "| What | Result | Goal | Met |",
        "| --- | --- | --- | --- |",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def processor() -> str:
    """Return the processor's maker and the number of cores."""
    import os

    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        names = [line.partition(":")[2].split()[:2] for line in file if line.startswith("model name")]
    return f"{' '.join(names[0]) if names else 'unknown'}, {os.cpu_count()} cores"


if __name__ == "__main__":
    sys.exit(main())
