# SPDX-License-Identifier: Apache-2.0
"""The whole ptxas matrix, as a table: `make test-matrix`.

python tests/matrix/run.py [--output FILE] [--release 12.4.131 ...] [--resume FILE]

Every release at hand, every architecture that it knows, -O0 to -O3, both methods.  The exit status is 1 where a cell is
not good.  With `--resume` cells that the file holds already are not judged again, and those judged are added to it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from assembling import all_releases, knows  # noqa: E402
from matrix.cells import LEVELS, METHODS, Cell, judge  # noqa: E402
from matrix.sources import module  # noqa: E402
from toolbox import ARCHES  # noqa: E402

import iket_rewrite  # noqa: E402

OUTPUT = TESTS.parent / "benchmarks" / "results" / "ptxas_matrix.md"


def keys(wanted: list[str]) -> list[tuple[str, str, str, str]]:
    """Return every cell; the levels that differ most come first."""
    return [
        (release, arch, level, method)
        for level in sorted(LEVELS, key=("-O3", "-O0", "-O1", "-O2").index)
        for release in all_releases()
        if not wanted or release in wanted
        for arch in ARCHES
        if knows(release, arch)
        for method in METHODS
    ]


def judged(wanted: list[str], resume: Path | None) -> list[Cell]:
    """Judge every cell that is not judged yet."""
    done: dict[tuple[str, ...], Cell] = {}
    if resume and resume.exists():
        for line in resume.read_text(encoding="utf-8").splitlines():
            values = json.loads(line)
            cell = Cell(**{**values, "findings": tuple(values["findings"])})
            done[cell.release, cell.arch, cell.level, cell.method] = cell
    with tempfile.TemporaryDirectory() as folder:
        for key in keys(wanted):
            if key in done:
                continue
            release, arch, level, method = key
            cell = judge(release, all_releases()[release], arch, level, method, Path(folder))
            done[key] = cell
            print(*key, "good" if cell.good else f"NOT GOOD: {cell}", flush=True)
            if resume:
                with resume.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(cell)) + "\n")
    return [done[key] for key in keys(wanted)]


def table(cells: list[Cell]) -> str:
    """Write the cells as a table of releases and architectures."""
    arches = [arch for arch in ARCHES if any(cell.arch == arch for cell in cells)]
    lines = [
        f"| ptxas | method | level | {' | '.join(arches)} |",
        f"| --- | --- | --- | {' | '.join('---' for _ in arches)} |",
    ]
    by_key = {(cell.release, cell.method, cell.level, cell.arch): cell for cell in cells}
    for release in dict.fromkeys(cell.release for cell in cells):
        for method in METHODS:
            for level in LEVELS:
                found = [by_key.get((release, method, level, arch)) for arch in arches]
                lines.append(f"| {release} | {method} | {level} | {' | '.join(map(_entry, found))} |")
    return "\n".join(lines)


def _entry(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if cell.good:
        return f"{cell.parsed} of {cell.triggers} ({cell.limit})" if cell.limit else str(cell.triggers)
    what = cell.fault or f"{cell.parsed} of {cell.triggers}, {cell.merged} merged, {' '.join(cell.findings)}"
    return f"**{what}**"


def page(cells: list[Cell]) -> str:
    """Return the text of the results."""
    sites = {method: len(module(method).plan.sites) for method in METHODS}
    events = len(module("native").plan.events)
    good, limited = sum(cell.good for cell in cells), sum(bool(cell.limit) for cell in cells)
    same = sum(bool(cell.same_as) for cell in cells)
    return f"""# The ptxas matrix

Made by `make test-matrix` (`tests/matrix/run.py`); the source that is assembled is `tests/matrix/sources.py`.

* iket-rewrite: {iket_rewrite.__version__}
* {events} events at {sites["native"]} sites in seven kernels: in a straight line, in a loop, unrolled, in divergent
  branches, beside the kernel's own shared memory, under register pressure (64 registers) and under more of it (32);
  every payload type, and both widths elected and uniform
* PTX of NVRTC 13.0, with its `.version` lowered for releases 12.x
* {len(cells)} cells, {good} of them good, {limited} of these with a limit; {same} have the machine code of another cell
  and share its verdict; merged records: {sum(cell.merged for cell in cells)}

A cell shows how many triggers the code holds.  It is good where iket-verify finds no error and no warning, no record is
merged, and NVIDIA's parser reads every declaration and every trigger.  A release does not know the architectures with a
dash.  A cell that is not good is bold.  Two limits of NVIDIA's parser are counted as good, *a of b* triggers read:

* unoptimised: it misses events of ExtendedNativeDump in code that is not optimised.  iket-verify warns of it
  (`unoptimised-extended`).
* spilled: with 32 registers for 40 live values ptxas puts timestamps of ExtendedNativeDump aside in local memory, and
  the parser does not follow them there.  iket-verify warns of exactly those events (`id-unproven`).

{table(cells)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Judge every cell of the ptxas matrix.")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--release", action="append", default=[])
    parser.add_argument("--resume", type=Path)
    options = parser.parse_args()
    cells = judged(options.release, options.resume)
    options.output.write_text(page(cells), encoding="utf-8")
    bad = [cell for cell in cells if not cell.good]
    print(f"{len(cells)} cells, {len(bad)} not good: {options.output}")
    return 1 if bad or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
