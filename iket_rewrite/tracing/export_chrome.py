# SPDX-License-Identifier: Apache-2.0
"""A trace as Chrome's Trace Event JSON, which chrome://tracing, Perfetto, Speedscope and others read.

A process per launch and a thread per track, sorted by SM, CTA and warp.  Stamps are microseconds with three decimals.
The format knows a fixed set of colours only: the nearest one stands in `cname`, the declared one in the arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from . import payloads
from .model import COLOR_AUTOMATIC, Trace, kind_name
from .tracks import WarpTracks, clock_offsets, draw_launch, launch_title

#: The highest integer that every reader of JSON keeps.
_EXACT = 1 << 53
#: Some of the format's reserved names with their colours.
_COLORS = {
    "thread_state_uninterruptible": (182, 125, 143),
    "thread_state_iowait": (255, 140, 0),
    "thread_state_running": (126, 200, 148),
    "thread_state_runnable": (133, 160, 210),
    "good": (0, 125, 0),
    "terrible": (180, 0, 0),
    "black": (0, 0, 0),
    "grey": (221, 221, 221),
    "yellow": (255, 255, 0),
    "olive": (100, 100, 0),
    "rail_response": (67, 135, 253),
    "rail_animation": (244, 74, 63),
    "rail_load": (13, 168, 97),
}


def chrome_bytes(
    trace: Trace, *, launches: Iterable[int] | None = None, progress: Callable[[float], None] | None = None
) -> bytes:
    """Return a trace as Trace Event JSON.

    Args:
        trace: the trace.
        launches: which launches, by row; all by default.
        progress: called with the share that has been written, 0 to 1.
    """
    chosen = list(range(len(trace.launches)) if launches is None else launches)
    encode = msgspec.json.Encoder().encode
    parts: list[bytes] = []
    for done, launch in enumerate(chosen):
        for share, events in _Drawing(trace, launch).events():
            parts += map(encode, events)
            if progress is not None:
                progress((done + share) / len(chosen))
    return b'{"displayTimeUnit":"ns","traceEvents":[\n' + b",\n".join(parts) + b"\n]}\n"


class _Drawing:
    def __init__(self, trace: Trace, launch: int) -> None:
        self.trace, self.launch = trace, launch
        self.offset = int(clock_offsets(trace)[trace.launches.process[launch]])
        self.thread = 0
        self.sources: dict[tuple[str, str], str] = {}

    def events(self) -> Iterator[tuple[float, Iterable[dict[str, Any]]]]:
        """Yield the events of the launch warp by warp, with the share that is done."""
        head = {"ph": "M", "pid": self.launch + 1}
        yield (
            0.0,
            [
                {**head, "name": "process_name", "args": {"name": launch_title(self.trace, self.launch)}},
                {**head, "name": "process_sort_index", "args": {"sort_index": self.launch}},
            ],
        )
        warps = self.trace.launches.warps_of(self.launch)
        for warp in draw_launch(self.trace, self.launch):
            yield (warp.warp + 1 - warps.start) / (warps.stop - warps.start), self._warp(warp)

    def _warp(self, drawn: WarpTracks) -> Iterator[dict[str, Any]]:
        trace, place = self.trace, self.trace.locations
        row = int(trace.warps.location[drawn.warp])
        cta = ",".join(map(str, place.cta[row].tolist()))
        label = f"SM {place.sm[row]} / CTA {cta} / warp {place.warp[row]}"
        yield from self._named(label)
        yield from map(self._range, drawn.stacked)
        yield from map(self._marker, drawn.markers)
        for track in drawn.extra:
            yield from self._named(f"{label} / {track.name}")
            yield from map(self._range, track.rows)
        if trace.warps.recorded[drawn.warp]:
            yield from self._named(f"{label} / lifetime")
            start, end = int(trace.warps.start_ns[drawn.warp]), int(trace.warps.end_ns[drawn.warp])
            yield self._slice("warp", start, end)

    def _named(self, name: str) -> Iterator[dict[str, Any]]:
        """Begin a track."""
        self.thread += 1
        where = {"ph": "M", "pid": self.launch + 1, "tid": self.thread}
        yield {**where, "name": "thread_name", "args": {"name": name}}
        yield {**where, "name": "thread_sort_index", "args": {"sort_index": self.thread}}

    def _slice(self, name: str, start: int, end: int) -> dict[str, Any]:
        where = {"pid": self.launch + 1, "tid": self.thread, "ts": (start - self.offset) / 1000}
        return {"ph": "X", "name": name, **where, "dur": max(0, end - start) / 1000}

    def _range(self, row: int) -> dict[str, Any]:
        ranges = self.trace.ranges
        name, kind = self.trace.names[ranges.name[row]], kind_name(int(ranges.kind[row]))
        start, end = int(ranges.start_ns[row]), int(ranges.end_ns[row])
        arguments: dict[str, Any] = {"kind": kind, "own_ns": int(ranges.own_ns[row])}
        self._payload(arguments, "payload", int(ranges.start_type[row]), int(ranges.start_bits[row]))
        self._payload(arguments, "end_payload", int(ranges.end_type[row]), int(ranges.end_bits[row]))
        if end < start:
            arguments["recorded_ns"] = end - start
        event = {**self._slice(name, start, end), "cat": kind, "args": arguments}
        return self._describe(event, kind, name, int(ranges.color[row]))

    def _marker(self, row: int) -> dict[str, Any]:
        markers = self.trace.markers
        name = self.trace.names[markers.name[row]]
        arguments: dict[str, Any] = {}
        self._payload(arguments, "payload", int(markers.type[row]), int(markers.bits[row]))
        event = {
            "ph": "i",
            "s": "t",
            "name": name,
            "cat": "mark",
            "pid": self.launch + 1,
            "tid": self.thread,
            "ts": (int(markers.ns[row]) - self.offset) / 1000,
            "args": arguments,
        }
        return self._describe(event, "mark", name, int(markers.color[row]))

    def _describe(self, event: dict[str, Any], kind: str, name: str, color: int) -> dict[str, Any]:
        if self.trace.events:
            if (kind, name) not in self.sources:
                places = self.trace.places(kind, name, self.trace.launches.kernel[self.launch])
                self.sources[kind, name] = ", ".join(map(str, places))
            if self.sources[kind, name]:
                event["args"]["source"] = self.sources[kind, name]
        if color != COLOR_AUTOMATIC:
            event["args"]["color"] = f"#{color:06x}"
            event["cname"] = _nearest(color)
        return event

    def _payload(self, arguments: dict[str, Any], key: str, code: int, bits: int) -> None:
        value = payloads.decode(code, bits)
        if value is None:
            return
        lost = math.isinf(value) or math.isnan(value) if isinstance(value, float) else False
        if lost or (isinstance(value, int) and abs(value) > _EXACT):
            value = str(value)
        arguments[key] = value
        arguments[f"{key}_type"] = payloads.type_name(code)


def _nearest(color: int) -> str:
    parts = (color >> 16 & 255, color >> 8 & 255, color & 255)
    return min(_COLORS, key=lambda name: sum((a - b) ** 2 for a, b in zip(_COLORS[name], parts, strict=True)))
