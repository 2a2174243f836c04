# SPDX-License-Identifier: Apache-2.0
"""How fast the page of a large trace opens, and how evenly it moves, in headless Chromium without a GPU.

A made trace of 100,000 ranges is written as a page and opened from disk.  *Open* is the time from the navigation to
the first drawn frame.  *Pan* and *zoom* move the timeline by one step per frame, with a row for each SM and with a row
for each warp; what counts is the time between two frames.  A trace ten times larger is reduced: the page must say so.

Run: python benchmarks/page_speed/run.py [--check] [--ranges 100000] [--output benchmarks/results/page_speed.md]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import iket_rewrite
from iket_rewrite.tracing.page import render_page

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from browser import open_browser

#: Seconds until the page is drawn, and milliseconds between two frames in 95 of 100 cases.
OPEN_GOAL, FRAME_GOAL = 3.0, 34.0
FRAMES = 120
_SMS, _WARPS = 132, 4
_TICK = 32
_START = 1_800_000_000_000_000_000


def made_trace(ranges: int) -> dict[str, Any]:
    """Return a document as the runtime writes it: a persistent kernel, in which each warp works on many tiles."""
    warps = _SMS * _WARPS
    # A tile is a range with three in it.
    tiles = max(1, ranges // (4 * warps))
    locations = [
        {"ctaId": [sm, 0, 0], "warpId": warp, "smId": sm, "tpcId": sm // 2, "gpcId": sm // 18}
        for sm in range(_SMS)
        for warp in range(_WARPS)
    ]
    records, lives, markers = [], [], []
    for place in range(warps):
        now = _START + _TICK * (place % 7)
        first = now
        for tile in range(tiles):
            steps = [_TICK * (1 + (place * 31 + tile * 17 + part * 7) % 11) for part in range(3)]
            begin, now = now, now + _TICK
            inner = []
            for part, step in enumerate(steps):
                inner.append(_range(1 + part, now, now + step, place, tile))
                now += step + _TICK
            records += [_range(0, begin, now, place, tile), *inner]
            now += _TICK * (tile % 3)
        markers.append({"markerNameIdx": 4, "timestamp": first, "locIdx": place, "color": 0xFFFFFFFF})
        lives.append({"startTs": first - _TICK, "endTs": now + _TICK, "locIdx": place})
    launch = {
        "kernelName": "persistent",
        "gridId": 1,
        "contextId": 1,
        "enabledCluster": {"x": 1, "y": 1, "z": 1},
        "singleClusterActive": 0,
        **{f"gridDim{axis}": count for axis, count in zip("XYZ", (_SMS, 1, 1), strict=True)},
        **{f"blockDim{axis}": count for axis, count in zip("XYZ", (32 * _WARPS, 1, 1), strict=True)},
        "ranges": records,
        "markers": markers,
        "warpLifetimes": lives,
    }
    names = ["tile", "load", "mma", "store", "begin"]
    return {
        "meta": {"version": 1},
        "stringTable": names,
        "locationTable": locations,
        "launches": [launch],
        "graphLaunches": {},
    }


def _range(name: int, start: int, end: int, place: int, payload: int) -> dict[str, Any]:
    first = {"eventId": name + 1, "timestamp": start, "payloadType": 5, "payloadVal": payload}
    return {
        "rangeNameIdx": name,
        "rangeId": name,
        "rangeType": 2,
        "rangeScope": 0,
        "rangeColor": 0xFFFFFFFF,
        "startTs": start,
        "endTs": end,
        "warpLocIdxs": [place, place],
        "internalEvents": [first, {"eventId": 31, "timestamp": end}],
    }


#: Moves once per frame and returns the times between frames, the longest drawing first.
_MOVE = """([how, frames]) => new Promise((done) => {
  const canvas = document.getElementById("timeline"), times = [];
  let last = null, left = frames;
  const step = (now) => {
    if (last !== null) times.push(now - last);
    last = now;
    if (left-- === 0) return done(times);
    const box = canvas.getBoundingClientRect();
    const at = { clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true, cancelable: true };
    const wheel = how === "pan" ? { deltaX: left % 40 < 20 ? 25 : -25 } : { deltaY: left % 40 < 20 ? -60 : 60 };
    canvas.dispatchEvent(new WheelEvent("wheel", { ...at, ...wheel }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def measure(page: Any, url: str) -> dict[str, float]:
    """Open a page and move in it; return seconds to open, and the frame times in ms."""
    page.goto(url)
    page.wait_for_function("performance.getEntriesByName('iket-ready').length")
    found = {"open": page.evaluate("performance.getEntriesByName('iket-ready')[0].startTime") / 1000}
    for level in ("1", "3"):
        page.keyboard.press(level)
        page.keyboard.press("0")
        for how in ("pan", "zoom"):
            if how == "pan":
                page.keyboard.press("+")
            times = sorted(page.evaluate(_MOVE, [how, FRAMES]))
            found[f"{how}, {'SMs' if level == '1' else 'warps'}"] = times[int(0.95 * len(times))]
    return found


def compare(browser: Any, folder: Path, ranges: int, runs: int) -> tuple[dict[str, str], bool]:
    """Measure one size; return the cells of its row, and whether every goal is met."""
    file, path = folder / "made.trace.json", folder / "made.html"
    file.write_text(json.dumps(made_trace(ranges)))
    trace = iket_rewrite.load_trace(file)
    begin = time.perf_counter()
    path.write_text(render_page(trace), encoding="utf-8")
    written = time.perf_counter() - begin
    found = []
    for _ in range(runs):
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        found.append(measure(page, path.as_uri()))
        drawn, said = page.evaluate("[iket.launch.rangeCount, !document.getElementById('left').hidden]")
        page.close()
    median = {key: statistics.median(run[key] for run in found) for key in found[0]}
    opened, total = median.pop("open"), len(trace.ranges)
    cells = {
        "ranges": f"{total:,}",
        "drawn": f"{drawn:,}",
        "page": f"{path.stat().st_size / 1e6:.1f} MB",
        "written in": f"{written:.2f} s",
        "open in": f"{opened:.2f} s",
        **{key: f"{value:.0f} ms" for key, value in median.items()},
    }
    even = drawn < total or max(median.values()) <= FRAME_GOAL
    met = said == (drawn < total) and opened <= OPEN_GOAL and even
    return cells, met


def main() -> int:
    """Run the measurement; with --check, exit 1 where a goal is missed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true")
    options.add_argument("--ranges", type=int, default=100_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--output", type=Path, help="write the table to a file as well")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        lines = [
            "# Speed of the page",
            "",
            "Made by `benchmarks/page_speed/run.py`; its first lines say what is measured.",
            "",
            f"* Chromium {browser.version}, headless, without a GPU; {os.cpu_count()} cores, {platform.machine()}",
            f"* Python {platform.python_version()}, iket-rewrite {iket_rewrite.__version__}",
            f"* goals: open in {OPEN_GOAL} s; what is not drawn is said; for the smaller trace at most {FRAME_GOAL} ms "
            "from frame to frame in 95 of 100 cases, those at the beginning, when scripts are slow, among them",
            "",
        ]
        verdicts = []
        for ranges in (arguments.ranges, 10 * arguments.ranges):
            cells, met = compare(browser, Path(folder), ranges, arguments.runs)
            if not verdicts:
                lines += [f"| {' | '.join([*cells, 'goals'])} |", f"|{' --- |' * (len(cells) + 1)}"]
            lines.append(f"| {' | '.join([*cells.values(), 'met' if met else 'missed'])} |")
            verdicts.append(met)
    print("\n".join(lines))
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(arguments.check and not all(verdicts))


if __name__ == "__main__":
    sys.exit(main())
