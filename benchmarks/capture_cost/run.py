# SPDX-License-Identifier: Apache-2.0
"""The wall time of a whole capture: in the process, against run-iket, and against TIRx's own `iket.run`.

python benchmarks/capture_cost/run.py [--rounds N] [--output FILE]      needs a GPU; README.md says what is measured
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import iket_rewrite
from iket_rewrite.capturing.contents import look_into
from iket_rewrite.capturing.devices import ask_driver
from iket_rewrite.capturing.runtime import find_runtime

HERE = Path(__file__).resolve().parent
TIMEOUT = 150
#: The goal: a capture in the process takes at most this share of a replaying one.
GOAL = 1 / 3


@dataclass(frozen=True)
class Subject:
    """A program that can be captured, and what it needs."""

    title: str
    script: str
    package: str
    ways: tuple[str, ...]


SUBJECTS = (
    Subject("TIRx's guide", "tirx_affine.py", "tvm_tirx", ("inprocess", "iket-profile", "TIRx iket.run")),
    Subject("TileLang GEMM", "tilelang_gemm.py", "tilelang", ("inprocess", "iket-profile")),
)


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which the programs find this package, and TIRx a run-iket that can start."""
    runtime = find_runtime()
    script = folder / "bin" / "run-iket"
    script.parent.mkdir(exist_ok=True)
    code = f"import sys; sys.path.append({str(runtime.folder)!r}); from iket.cli.main import entrypoint; entrypoint()"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    own = str(Path(iket_rewrite.__file__).resolve().parents[1])
    paths = [own, *filter(None, [os.environ.get("PYTHONPATH")])]
    return dict(os.environ) | {
        "PATH": os.pathsep.join([str(script.parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(paths),
        "TILELANG_CACHE_DIR": str(folder / "cache"),
    }


def command(subject: Subject, way: str, output: Path) -> list[str]:
    """Return the command line of one way."""
    program = [sys.executable, str(HERE / subject.script)]
    if way == "iket-profile":
        ours = [sys.executable, "-m", "iket_rewrite.cli.profile_command", "-q", "--postprocess", "json"]
        return [*ours, "-o", str(output), "--", *program, "plain", str(output)]
    return [*program, "theirs" if way == "TIRx iket.run" else way, str(output)]


def once(subject: Subject, way: str, folder: Path, number: int) -> tuple[float, int]:
    """Capture once; return the seconds from the command's start to its end, and how many events it recorded."""
    output = folder / f"{subject.package}-{way.replace(' ', '-')}-{number}"
    began = time.perf_counter()
    done = subprocess.run(
        command(subject, way, output),
        env=environment(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    took = time.perf_counter() - began
    traces = sorted(output.glob("*.trace.json")) if output.is_dir() else []
    if done.returncode != 0 or len(traces) != 1:
        raise RuntimeError(f"{way} failed with status {done.returncode}: {(done.stdout + done.stderr)[-1500:]}")
    return took, look_into(traces[0].read_bytes()).events


def measure(subject: Subject, rounds: int, folder: Path) -> list[tuple[str, str, str, str]]:
    """Return the rows of one program; the ways take turns."""
    if find_spec(subject.package) is None:
        return [(subject.title, "not measured", "", f"the package {subject.package} is not installed")]
    times: dict[str, list[float]] = {}
    events: dict[str, set[int]] = {}
    failed: dict[str, str] = {}
    # Whoever comes first reads the packages from a cold disk: that run is not counted.
    with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
        once(subject, "inprocess", folder, -1)
    for number in range(rounds):
        for way in subject.ways:
            try:
                took, count = once(subject, way, folder, number)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed[way] = str(error)
                print(f"{subject.title}, {way}: {error}", file=sys.stderr)
                continue
            print(f"{subject.title}, {way}: {took:.1f} s, {count} events", file=sys.stderr)
            times.setdefault(way, []).append(took)
            events.setdefault(way, set()).add(count)
    if len({frozenset(counts) for counts in events.values()}) > 1:
        raise SystemExit(f"the ways did not record the same: {events}")
    here = statistics.median(times["inprocess"]) if "inprocess" in times else None
    rows = []
    for way in subject.ways:
        if way not in times:
            rows.append((subject.title, way, "failed", failed[way].splitlines()[0][:120]))
            continue
        median = statistics.median(times[way])
        ratio = "" if way == "inprocess" or here is None else f"{here / median:.2f}"
        verdict = "" if not ratio else "yes" if float(ratio) <= GOAL else "no"
        rows.append((subject.title, way, f"{median:.1f} s", f"{ratio} ({verdict})" if ratio else ""))
    return rows


def repeated(folder: Path) -> list[tuple[str, str]]:
    """Return what repeated captures in one process cost."""
    done = subprocess.run(
        [sys.executable, str(HERE / "repeated.py")],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    if done.returncode != 0:
        return [("failed", done.stderr[-300:].replace("\n", " "))]
    series = json.loads(done.stdout.splitlines()[-1])
    plain = statistics.median(series["plain"])
    later = [one - plain for one in series["capture"][1:]]
    return [
        ("a launch alone, median", f"{plain:.2f} ms"),
        ("the first capture adds", f"{series['capture'][0] - plain:.0f} ms"),
        ("each later one adds: median, worst of 11 (goal: at most 50 ms)", f"{_two(later)}"),
        ("reading the first one's trace, with imports", f"{series['reading'][0]:.0f} ms"),
        ("reading each later one's: median, worst", f"{_two(series['reading'][1:])}"),
    ]


def _two(values: list[float]) -> str:
    return f"{statistics.median(values):.1f}, {max(values):.1f} ms"


def report(folder: Path, rounds: int) -> str:
    """Measure everything; return the page."""
    driver = ask_driver()
    made_by = "Made by `benchmarks/capture_cost/run.py`; its README says what is measured."
    lines = ["# The cost of a capture", "", made_by, ""]
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    release = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    lines += [
        f"* GPU: {', '.join(map(str, driver.devices))}, driver {release}",
        f"* Python: {platform.python_version()}",
    ]
    lines += [f"* runtime: {find_runtime().version}", f"* rounds: {rounds}"]
    for name in ("iket-rewrite", "torch", "tilelang", "apache-tvm-tirx", "cuda-core"):
        try:
            lines.append(f"* {name}: {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"* {name}: {'from the source tree' if name == 'iket-rewrite' else 'not installed'}")
    lines += ["", "| repeated captures in one process | |", "| --- | --- |"]
    lines += [f"| {what} | {value} |" for what, value in repeated(folder)]
    lines += ["", "| program | way | wall time | in the process / this (at most a third) |"]
    lines += ["| --- | --- | --- | --- |"]
    for subject in SUBJECTS:
        lines += [f"| {' | '.join(row)} |" for row in measure(subject, rounds, folder)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1, help="how often each way is measured (default: once)")
    parser.add_argument("--output", type=Path, help="write the page here too")
    options = parser.parse_args()
    driver = ask_driver()
    if driver.error:
        print(f"needs a GPU: {driver.error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        text = report(Path(folder), options.rounds)
    print(text, end="")
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
