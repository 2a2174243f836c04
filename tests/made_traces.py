# SPDX-License-Identifier: Apache-2.0
"""Traces for tests: the real captures as plain JSON, and small ones made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toolbox import FIXTURES

TRACES = FIXTURES / "trace"
REAL = sorted(path.name.removesuffix(".trace.json") for path in TRACES.glob("*.trace.json"))
TOKEN, PUSH = 1, 2
POP = 31


def real(name: str) -> Path:
    """Return the file of a real capture."""
    return TRACES / f"{name}.trace.json"


def plain(name: str) -> dict[str, Any]:
    """Return a real capture as `json.load` gives it."""
    return json.loads(real(name).read_text(encoding="utf-8"))


def launches(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all launches, those of graphs last."""
    return document["launches"] + [one for nodes in document["graphLaunches"].values() for one in nodes]


class Maker:
    """A document of one launch, filled by hand.  Warps are named by (CTA, number)."""

    def __init__(self, kernel: str = "made", grid: int = 1, block: int = 32, sms: int = 132) -> None:
        self.names: list[str] = []
        self.places: list[tuple[int, int]] = []
        self.sms = sms
        self.launch: dict[str, Any] = {
            "kernelName": kernel,
            "gridId": 1,
            "contextId": 1,
            **{f"gridDim{axis}": size for axis, size in zip("XYZ", (grid, 1, 1), strict=True)},
            **{f"blockDim{axis}": size for axis, size in zip("XYZ", (block, 1, 1), strict=True)},
            "enabledCluster": {"x": 1, "y": 1, "z": 1},
            "singleClusterActive": 0,
            "ranges": [],
            "markers": [],
            "warpLifetimes": [],
        }
        self.more: list[dict[str, Any]] = []

    def name(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def place(self, warp: tuple[int, int]) -> int:
        if warp not in self.places:
            self.places.append(warp)
        return self.places.index(warp)

    def range(self, name: str, start: int, end: int, *, warp=(0, 0), kind=PUSH, payload=None, last=None, **keys):
        first: dict[str, Any] = {"eventId": self.name(name) + 1, "timestamp": start}
        final: dict[str, Any] = {"eventId": POP if kind == PUSH else self.name(name) + 1, "timestamp": end}
        for event, value in ((first, payload), (final, last)):
            if value is not None:
                event["payloadType"], event["payloadVal"] = value
        at = self.place(warp)
        record = {
            "rangeNameIdx": self.name(name),
            "rangeColor": 0xFFFFFFFF,
            "rangeId": 7,
            "rangeScope": 0,
            "rangeType": kind,
            "startTs": start,
            "endTs": end,
            "internalEvents": [first, final],
            "warpLocIdxs": [at, at],
        }
        self.launch["ranges"].append(record | keys)
        return self

    def mark(self, name: str, at: int, *, warp=(0, 0), payload=None, **keys):
        record = {"markerNameIdx": self.name(name), "timestamp": at, "color": 0xFFFFFFFF, "locIdx": self.place(warp)}
        if payload is not None:
            record["payloadType"], record["payloadVal"] = payload
        self.launch["markers"].append(record | keys)
        return self

    def life(self, start: int, end: int, *, warp=(0, 0)):
        self.launch["warpLifetimes"].append({"startTs": start, "endTs": end, "locIdx": self.place(warp)})
        return self

    def again(self, **keys):
        """Close the launch and begin another one of the same kernel."""
        self.more.append(self.launch)
        empty = {"ranges": [], "markers": [], "warpLifetimes": []}
        self.launch = {**self.launch, **empty, "gridId": self.launch["gridId"] + 1, **keys}
        return self

    def document(self) -> dict[str, Any]:
        return {
            "launches": [*self.more, self.launch],
            "graphLaunches": {},
            "stringTable": self.names,
            "locationTable": [
                {"ctaId": [cta, 0, 0], "warpId": warp, "smId": cta % self.sms, "tpcId": -1, "gpcId": -1}
                for cta, warp in self.places
            ],
            "meta": {"version": 1},
        }

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(self.document()), encoding="utf-8")
        return path


def older(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document in the older layout: names and locations inline, no tables."""
    names, places = document["stringTable"], document["locationTable"]

    def turned(launch):
        result = dict(launch)
        result["ranges"] = [
            {key: value for key, value in one.items() if key not in ("rangeNameIdx", "warpLocIdxs")}
            | {"rangeName": names[one["rangeNameIdx"]], "warpLocs": [places[at] for at in one["warpLocIdxs"]]}
            for one in launch["ranges"]
        ]
        result["markers"] = [
            {key: value for key, value in one.items() if key not in ("markerNameIdx", "locIdx")}
            | {"markerName": names[one["markerNameIdx"]], "location": places[one["locIdx"]]}
            for one in launch["markers"]
        ]
        result["warpLifetimes"] = [
            {"startTs": one["startTs"], "endTs": one["endTs"], "warpLocation": places[one["locIdx"]]}
            for one in launch["warpLifetimes"]
        ]
        return result

    return {
        "launches": [turned(launch) for launch in document["launches"]],
        "graphLaunches": {key: [turned(one) for one in nodes] for key, nodes in document["graphLaunches"].items()},
    }
