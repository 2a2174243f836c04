# SPDX-License-Identifier: Apache-2.0
"""Measure the rewriter beside TileLang's own injector: time, memory, linearity; and the command's start.

python benchmarks/rewrite_speed/run.py [--check] [--output benchmarks/results/rewrite_speed.md]
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import sources

import iket_rewrite

KERNELS = 1000
#: As many, without their annotations, are 5 MB.
BARE_KERNELS = 1430
TARGET = "cuda -arch=sm_90a"


@dataclass(frozen=True)
class Row:
    """One line of the table; `met` is None where nothing is promised."""

    what: str
    result: str
    goal: str = ""
    met: bool | None = None


def main() -> int:
    """Measure everything and print the table; with --check, exit 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description="Measure the rewriter beside TileLang's injector.")
    parser.add_argument("--check", action="store_true", help="exit 1 where a goal is missed")
    parser.add_argument("--output", type=Path, metavar="FILE.md", help="write the table there too")
    parser.add_argument("--rounds", type=int, default=11, help="rounds of each comparison (default: %(default)s)")
    parser.add_argument("--peak", choices=PEAKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(PEAKS[options.peak]())
        return 0
    rows = [
        *_against_injector(options.rounds),
        *_memory(),
        *_linearity(options.rounds),
        *_payloads(),
        *_unannotated(options.rounds),
        *_start(),
    ]
    table = _table(rows)
    print(table)
    if options.output:
        options.output.write_text(table + "\n", encoding="utf-8")
    missed = [row.what for row in rows if row.met is False]
    for what in missed:
        print(f"missed: {what}", file=sys.stderr)
    return 1 if missed and options.check else 0


# --- Time ---------------------------------------------------------------------------------------------------


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds that the work takes: processor time, which other work on the machine disturbs less."""
    gc.collect()  # nobody pays for what was there before
    start = clock()
    work()
    return clock() - start


def _interleaved(
    rounds: int, *works: Callable[[], object], clock: Callable[[], float] = time.process_time
) -> list[list[float]]:
    """Return the seconds of each piece of work, one per round; every round does them all, after one to warm up."""
    for work in works:
        work()
    times = [[_seconds(work, clock) for work in works] for _ in range(rounds)]
    return [list(column) for column in zip(*times, strict=True)]


def _against_injector(rounds: int) -> list[Row]:
    from tilelang.tools.cuda.iket.codegen import inject_iket_cuda

    rows = []
    cases = [
        (f"{KERNELS:,} generated kernels", sources.generated_kernels(KERNELS), False, 3.0),
        ("the same, payloads captured", sources.generated_kernels(KERNELS), True, None),
        ("the same, every kernel with events of its own", sources.distinct_events(KERNELS), False, None),
    ]
    for what, text, payloads, goal in cases:

        def ours(text: str = text, payloads: bool = payloads) -> iket_rewrite.Rewrite[str]:
            return iket_rewrite.rewrite(text, runtime_payloads=payloads)

        def theirs(text: str = text, payloads: bool = payloads) -> str:
            return str(inject_iket_cuda(text, TARGET, runtime_payloads=payloads))

        sites = len(ours().plan.sites)
        if sites != sources.CALLS * KERNELS or "__iket_meta_info" not in theirs():
            raise SystemExit(f"{what}: {sites} sites found")
        mine, other = _interleaved(rounds, ours, theirs)
        ratio = statistics.median(b / a for a, b in zip(mine, other, strict=True))
        best = min(other) / min(mine)
        rows.append(
            Row(
                f"{what} ({len(text) / 1e6:.1f} MB, {sites:,} calls): time of TileLang's injector / ours",
                f"{_ms(other)} / {_ms(mine)} = {ratio:.2f} (of the fastest rounds: {best:.2f})",
                f"at least {goal:g}" if goal else "",
                ratio >= goal if goal else None,
            )
        )
    return rows


def _linearity(rounds: int) -> list[Row]:
    counts = (10, 100, 1000)
    texts = [sources.generated_kernels(count) for count in counts]
    works = [lambda text=text: iket_rewrite.rewrite(text) for text in texts]
    best = [min(times) for times in _interleaved(rounds, *works)]
    few, many = ((best[i + 1] - best[i]) / (counts[i + 1] - counts[i]) for i in (0, 1))
    each = ", ".join(f"{count:,}: {seconds * 1e3:.2f} ms" for count, seconds in zip(counts, best, strict=True))
    return [
        Row("time by number of kernels", each),
        Row(
            "time of one more kernel, from 100 to 1,000 / from 10 to 100",
            f"{many * 1e6:.0f} us / {few * 1e6:.0f} us = {many / few:.2f}",
            "at most 1.5",
            many / few <= 1.5,
        ),
    ]


def _payloads() -> list[Row]:
    seconds = []
    for salt in range(3):  # an expression is judged once in a process: each round needs others
        text = sources.distinct_payloads(KERNELS, salt)
        seconds.append(_seconds(lambda text=text: iket_rewrite.rewrite(text)))
    expressions = sources.CALLS * KERNELS
    return [
        Row(
            f"{expressions:,} distinct payload expressions ({len(text) / 1e6:.1f} MB)",
            f"{min(seconds):.2f} s, {min(seconds) / expressions * 1e3:.2f} ms each",
        )
    ]


def _unannotated(rounds: int) -> list[Row]:
    rows = []
    for what, text in (
        ("source without annotations", sources.without_annotations(BARE_KERNELS)),
        ("the same with continued lines", sources.continued_lines(BARE_KERNELS)),
    ):
        data = text.encode()
        speed = len(data) / 1e6 / min(_interleaved(rounds, lambda data=data: iket_rewrite.rewrite(data))[0])
        size = f"{len(data) / 1e6:.1f} MB"
        if splices := text.count("\\\n"):
            size += f", {splices:,} of them"
        rows.append(Row(f"{what} ({size})", f"{speed:.0f} MB/s", "at least 200 MB/s", speed >= 200))
    return rows


def _start() -> list[Row]:
    script = shutil.which("iket-rewrite", path=os.path.dirname(sys.executable))
    command = [script] if script else [sys.executable, "-m", "iket_rewrite.cli.rewrite_command"]
    help_, python = _interleaved(
        20, lambda: _run(*command, "--help"), lambda: _run(sys.executable, "-c", "pass"), clock=time.perf_counter
    )
    ratio = statistics.median(help_) / statistics.median(python)
    first, second = map(float, _run(sys.executable, __file__, "--peak", "first").split())
    return [
        Row(
            "`iket-rewrite --help` / `python -c pass`",
            f"{_ms(help_)} / {_ms(python)} = {ratio:.2f}",
            "at most 4",
            ratio <= 4,
        ),
        Row(
            "first call of `rewrite` in a process, imports included / second (one generated kernel)",
            f"{first * 1e3:.0f} ms / {second * 1e3:.1f} ms",
        ),
    ]


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _ms(times: list[float]) -> str:
    return f"{statistics.median(times) * 1e3:.0f} ms"


# --- Memory: each in a process of its own ---------------------------------------------------------------------


def _memory() -> list[Row]:
    size = len(sources.generated_kernels(KERNELS))
    resident, traced = (int(_run(sys.executable, __file__, "--peak", how)) for how in ("resident", "traced"))
    return [
        Row(
            f"peak memory beyond the source, {KERNELS:,} generated kernels",
            f"resident {resident / 1e6:.0f} MB = {resident / size:.1f} x the source; "
            f"Python's allocations {traced / 1e6:.0f} MB = {traced / size:.1f} x",
            "less than 10 x",
            max(resident, traced) < 10 * size,
        )
    ]


def _peak_resident() -> int:
    iket_rewrite.rewrite(sources.generated_kernels(2))
    text = sources.generated_kernels(KERNELS)
    # The peak starts anew.  (That of `getrusage` does not, and a child's starts at what its parent held.)
    Path("/proc/self/clear_refs").write_text("5")
    before = _resident_peak()
    iket_rewrite.rewrite(text)
    return _resident_peak() - before


def _resident_peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def _peak_traced() -> int:
    iket_rewrite.rewrite(sources.generated_kernels(2))
    text = sources.generated_kernels(KERNELS)
    tracemalloc.start()
    iket_rewrite.rewrite(text)
    return tracemalloc.get_traced_memory()[1]


def _first_call() -> str:
    text = sources.generated_kernels(1)
    return " ".join(str(_seconds(lambda: iket_rewrite.rewrite(text))) for _ in range(2))


PEAKS: dict[str, Callable[[], object]] = {
    "resident": _peak_resident,
    "traced": _peak_traced,
    "first": _first_call,
}


# --- Table ---------------------------------------------------------------------------------------------------


def _table(rows: list[Row]) -> str:
    lines = [
        "# Speed and memory of the rewriter",
        "",
        "Made by `benchmarks/rewrite_speed/run.py`; its README says what is measured.",
        "",
        *(f"* {name}: {value}" for name, value in _machine()),
        "",
        "| What | Result | Goal | Met |",
        "| --- | --- | --- | --- |",
    ]
    words = {None: "", True: "yes", False: "**no**"}
    return "\n".join(lines + [f"| {row.what} | {row.result} | {row.goal} | {words[row.met]} |" for row in rows])


def _machine() -> list[tuple[str, str]]:
    return [
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("system", f"{platform.system()} {platform.machine()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        *((name, metadata.version(name)) for name in ("iket-rewrite", "tilelang", "jinja2", "pycparser")),
    ]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    sys.exit(main())
