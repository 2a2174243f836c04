# SPDX-License-Identifier: Apache-2.0
"""A trace of any size, written as NVIDIA's runtime writes it, without holding it in memory."""

from __future__ import annotations

import json
import random
from pathlib import Path

#: CTAs, warps of a CTA and SMs of the made launch.
CTAS, WARPS, SMS = 264, 8, 132
_FIRST = 1795964002201138976
_NAMES = ["tile", "load", "mma", "stage", "enter"]
_RANGE = (
    '{"endTs":%d,"internalEvents":[{"eventId":%d%s,"timestamp":%d},{"eventId":%d%s,"timestamp":%d}],'
    '"rangeColor":4294967295,"rangeId":%d,"rangeNameIdx":%d,"rangeScope":0,"rangeType":%d,"startTs":%d,'
    '"warpLocIdxs":[%d,%d]}'
)
_HEAD = {
    "blockDimX": 32 * WARPS,
    "blockDimY": 1,
    "blockDimZ": 1,
    "contextId": 1,
    "enabledCluster": {"x": 1, "y": 1, "z": 1},
    "gridDimX": CTAS,
    "gridDimY": 1,
    "gridDimZ": 1,
    "gridId": 3,
    "kernelName": "made",
    "singleClusterActive": 0,
}


def write_trace(path: Path, ranges: int) -> None:
    """Write a trace of one launch with that many ranges.

    Each iteration of a warp is a range with two nested ones, one of them with a payload, and a token range that runs
    from the middle of one iteration into the next.
    """
    dice = random.Random(1)
    warps = CTAS * WARPS
    with path.open("w", encoding="ascii") as file:
        file.write('{"graphLaunches":{},"launches":[{' + json.dumps(_HEAD, separators=(",", ":"))[1:-1])
        lives, marks = [], []
        file.write(',"ranges":[')
        for warp in range(warps):
            count = ranges * (warp + 1) // warps - ranges * warp // warps
            begin = now = _FIRST + 32 * dice.randrange(200)
            marks.append({"color": 4294967295, "locIdx": warp, "markerNameIdx": 4, "timestamp": begin})
            for number in range(count):
                now = _range(file, dice, warp, number, now, first=warp == number == 0)
            lives.append({"endTs": now + 3200, "locIdx": warp, "startTs": begin - 64})
        file.write("],")
        places = [
            {"ctaId": [cta, 0, 0], "gpcId": cta % 8, "smId": cta % SMS, "tpcId": cta % SMS // 2, "warpId": warp}
            for cta in range(CTAS)
            for warp in range(WARPS)
        ]
        rest = {"markers": marks, "warpLifetimes": lives}
        file.write(json.dumps(rest, separators=(",", ":"))[1:] + "],")
        tables = {"locationTable": places, "meta": {"version": 1}, "stringTable": _NAMES}
        file.write(json.dumps(tables, separators=(",", ":"))[1:])


def _range(file, dice: random.Random, warp: int, number: int, now: int, *, first: bool) -> int:
    """Write one range; return when the next one begins."""
    step = number % 4
    length = 32 * dice.randrange(1, 30)
    payload = f',"payloadType":5,"payloadVal":{number}'
    end, after = {
        0: (now + 32 * 60, now),
        1: (now + length, now + length),
        2: (now + length, now + 32),
        3: (now + 32 * 70, now + 32 * 62 - 32),
    }[step]
    ends = payload if step == 3 else ""
    last = step + 1 if step == 3 else 31
    text = _RANGE % (
        end,
        step + 1,
        payload if step in (2, 3) else "",
        now,
        last,
        ends,
        end,
        1304083330 + step,
        step,
        1 if step == 3 else 2,
        now,
        warp,
        warp,
    )
    file.write(text if first else "," + text)
    return after
