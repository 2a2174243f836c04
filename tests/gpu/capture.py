# SPDX-License-Identifier: Apache-2.0
"""Run jobs under NVIDIA's own `run-iket` and read its JSON, for tests.

The reader is a few lines of its own, independent of the library: it turns a launch into one list of events per warp.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from toolbox import FIXTURES, INCLUDE, site_packages

import iket_rewrite

HERE = Path(__file__).parent


@dataclass
class Job:
    """One launch: the annotated source, the kernel, and what it is launched with."""

    source: Path
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: list[dict]
    cluster: tuple[int, ...] | None = None
    options: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.kernel

    @classmethod
    def fixture(cls, stem: str, kernel: str, grid, block, *arguments, **more) -> Job:
        return cls(FIXTURES / "cuda" / f"{stem}.cu", kernel, grid, block, list(arguments), **more)


@dataclass(frozen=True)
class Mark:
    """One marker of a warp."""

    name: str
    payload: int | None
    type: int | None
    at: int


@dataclass(frozen=True)
class Range:
    """One range of a warp; each end with its payload."""

    name: str
    first: int | None
    last: int | None
    start: int
    end: int
    type: int
    color: int


@dataclass
class Warp:
    """What one warp recorded."""

    marks: list[Mark] = field(default_factory=list)
    ranges: list[Range] = field(default_factory=list)

    def mark(self, name: str) -> Mark:
        (found,) = [mark for mark in self.marks if mark.name == name]
        return found

    def range(self, name: str) -> Range:
        (found,) = [one for one in self.ranges if one.name == name]
        return found


@dataclass
class Captured:
    """One launch as it was captured: events by (block, warp), and the buffers after the launch."""

    plan: iket_rewrite.Plan
    warps: dict[tuple[tuple[int, int, int], int], Warp]
    buffers: list[dict]
    lifetimes: int

    def warp(self, block: int, warp: int) -> Warp:
        return self.warps[(block, 0, 0), warp]


def f32(value: float) -> int:
    """Return the bits of a 32-bit float."""
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f64(value: float) -> int:
    """Return the bits of a 64-bit float."""
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def run_jobs(jobs: list[Job], folder: Path, arch: str) -> dict[str, Captured]:
    """Rewrite, launch under run-iket in one process, and return each launch by its kernel."""
    plans, prepared = {}, []
    for index, job in enumerate(jobs):
        result = iket_rewrite.rewrite(job.source.read_text(encoding="utf-8"), path=job.source.name, **job.options)
        source = folder / f"{index}.cu"
        source.write_text(result.text, encoding="utf-8")
        plans[job.name] = result.plan
        prepared.append(
            {
                "source": str(source),
                "kernel": job.kernel,
                "arch": arch,
                "std": "c++17",
                "include": [INCLUDE],
                "grid": job.grid,
                "block": job.block,
                "cluster": job.cluster,
                "arguments": job.arguments,
                "output": str(folder / f"{index}.json"),
            }
        )
    (folder / "jobs.json").write_text(json.dumps(prepared), encoding="utf-8")
    trace = profile([sys.executable, str(HERE / "workload.py"), str(folder / "jobs.json")], folder / "trace")
    launches = {launch["kernelName"]: launch for launch in trace["launches"]}
    captured = {}
    for index, job in enumerate(jobs):
        buffers = json.loads((folder / f"{index}.json").read_text(encoding="utf-8"))
        captured[job.name] = read_launch(trace, launches[job.kernel], plans[job.name], buffers)
    return captured


def profile(command: list[str], output: Path) -> dict:
    """Run a command under run-iket and return the JSON trace."""
    done = run_iket(command, output)
    traces = list(output.glob("*.trace.json"))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert len(traces) == 1, [trace.name for trace in traces]
    return json.loads(traces[0].read_text(encoding="utf-8"))


def run_iket(command: list[str], output: Path) -> subprocess.CompletedProcess[str]:
    """Run a command under run-iket, whatever comes of it."""
    runtime = site_packages("nvidia-cutlass-dsl-libs-base", "nvidia_cutlass_dsl/dsl_packages")
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), str(runtime)]))
    iket = [sys.executable, "-m", "iket.cli.main", "--output-dir", str(output), "--clobber", "profile"]
    return subprocess.run(
        [*iket, "--postprocess", "all", "--", *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def prepared(text: str, folder: Path, **job) -> list[str]:
    """Write a job for text that is rewritten already; return the command that runs it."""
    (folder / "kernel.cu").write_text(text, encoding="utf-8")
    values = {"source": str(folder / "kernel.cu"), "std": "c++17", "include": [INCLUDE], "cluster": None}
    values |= {"output": str(folder / "out.json"), **job}
    (folder / "jobs.json").write_text(json.dumps([values]), encoding="utf-8")
    return [sys.executable, str(HERE / "workload.py"), str(folder / "jobs.json")]


def read_launch(trace: dict, launch: dict, plan: iket_rewrite.Plan, buffers: list[dict]) -> Captured:
    """Sort a launch's events by warp, in the order of their stamps."""
    names, places = trace["stringTable"], trace["locationTable"]
    warps: dict[tuple, Warp] = defaultdict(Warp)

    def warp_of(index: int) -> Warp:
        return warps[tuple(places[index]["ctaId"]), places[index]["warpId"]]

    for marker in launch["markers"]:
        mark = Mark(
            names[marker["markerNameIdx"]], marker.get("payloadVal"), marker.get("payloadType"), marker["timestamp"]
        )
        warp_of(marker["locIdx"]).marks.append(mark)
    for one in launch["ranges"]:
        first, last = one["internalEvents"][0], one["internalEvents"][-1]
        assert len(set(one["warpLocIdxs"])) == 1
        warp_of(one["warpLocIdxs"][0]).ranges.append(
            Range(
                names[one["rangeNameIdx"]],
                first.get("payloadVal"),
                last.get("payloadVal"),
                one["startTs"],
                one["endTs"],
                one["rangeType"],
                one["rangeColor"],
            )
        )
    for warp in warps.values():
        warp.marks.sort(key=lambda mark: mark.at)
        warp.ranges.sort(key=lambda one: one.start)
    return Captured(plan, dict(warps), buffers, len(launch["warpLifetimes"]))
