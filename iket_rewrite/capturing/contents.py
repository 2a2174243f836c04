# SPDX-License-Identifier: Apache-2.0
"""What a trace file holds, told without reading it all: capturing must not take longer the larger the trace is.

`load_trace` reads; here the bytes are searched, at the memory's speed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KERNEL = re.compile(rb'"kernelName"\s*:\s*("(?:[^"\\]|\\.)*")')
_LIFETIMES = re.compile(rb'"warpLifetimes"\s*:\s*\[\s*\{')
#: Keys that stand once in each marker and each range; inline names are those of an older layout.
_EVENT_KEYS = ((b'"markerNameIdx"', b'"rangeNameIdx"'), (b'"markerName"', b'"rangeName"'))


@dataclass(frozen=True, slots=True)
class Contents:
    """What a trace file holds.

    Attributes:
        kernels: the kernel of each launch.
        ranges, markers: how many.
        lifetimes: whether any warp's lifetime was recorded.
    """

    kernels: tuple[str, ...]
    ranges: int
    markers: int
    lifetimes: bool = True

    @property
    def events(self) -> int:
        """Return how many ranges and markers there are."""
        return self.ranges + self.markers


def look_into(data: bytes) -> Contents:
    """Return what a trace holds."""
    kernels = tuple(str(json.loads(text)) for text in _KERNEL.findall(data))
    lifetimes = _LIFETIMES.search(data) is not None
    for marker, one_range in _EVENT_KEYS:
        ranges, markers = data.count(one_range), data.count(marker)
        if ranges or markers:
            return Contents(kernels, ranges, markers, lifetimes)
    return Contents(kernels, 0, 0, lifetimes)


def together(parts: Sequence[Contents]) -> Contents:
    """Return what several traces hold."""
    kernels = tuple(name for part in parts for name in part.kernels)
    lifetimes = any(part.lifetimes for part in parts)
    return Contents(kernels, sum(part.ranges for part in parts), sum(part.markers for part in parts), lifetimes)


def launches_elsewhere(data: bytes, cluster: Sequence[int]) -> tuple[list[str], list[str]]:
    """Return the kernels that recorded the requested cluster, and those that recorded another one in its place.

    The runtime takes cluster 0,0,0 where the requested one does not exist, and says nothing in the trace.  A block of
    cluster (x, y, z) has an index of at least (x, y, z), whatever the cluster's dimensions are.
    """
    document = json.loads(data)
    places = document.get("locationTable", [])
    launches = [*document.get("launches", [])]
    for replay in document.get("graphLaunches", {}).values():
        launches += replay
    right: list[str] = []
    wrong: list[str] = []
    for launch in launches:
        blocks = [places[life["locIdx"]]["ctaId"] for life in launch.get("warpLifetimes", ())]
        if blocks:
            fits = any(all(have >= want for have, want in zip(block, cluster, strict=False)) for block in blocks)
            (right if fits else wrong).append(launch["kernelName"])
    return right, wrong


@dataclass(frozen=True, slots=True)
class Sizing:
    """What the sizing pass of run-iket found.

    Attributes:
        kernels: the kernel of each launch, annotated or not.
        advice: the most events of any warp, as it recommends them, or None.
        there: whether it left a record.
        processes: how many processes used CUDA.
    """

    kernels: tuple[str, ...]
    advice: int | None
    there: bool
    processes: int


def read_sizing(folder: Path) -> Sizing:
    """Read what the sizing pass left in run-iket's folder."""
    kernels: list[str] = []
    advice: int | None = None
    records = [record for path in sorted(folder.rglob("tracker.json")) if (record := _read_object(path)) is not None]
    for record in records:
        launches = list(record.get("launches") or [])
        for replay in (record.get("graphLaunches") or {}).values():
            launches += replay
        kernels += [launch["kernelName"] for launch in launches if "kernelName" in launch]
        number = record.get("recommended_max_ts_cnt_per_warp")
        if isinstance(number, int):
            advice = max(number, advice or 0)
    return Sizing(tuple(kernels), advice, bool(records), len(list((folder / "tracker").glob("pid*"))))


def _read_object(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
