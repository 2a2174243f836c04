# SPDX-License-Identifier: Apache-2.0
"""A trace as a file for Perfetto, written with the `perfetto` package's protobufs.

A process per launch; below it a track per SM, CTA and warp.  The warp's track holds its stacked ranges and markers;
its lifetime, and what does not nest, have tracks of their own below it (see `tracks`).  Payloads, source positions and
declared colours are arguments: track events have no colours.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from ..errors import ToolError
from . import payloads
from .model import COLOR_AUTOMATIC, KIND_PUSH, Trace, kind_name
from .tracks import WarpTracks, clock_offsets, draw_launch, launch_title, nested

#: All packets are of one sequence, so that names are written once.
_SEQUENCE = 1
_ARGUMENTS = ("payload", "payload_type", "end_payload", "kind", "own_ns", "recorded_ns", "source", "color")


def perfetto_bytes(
    trace: Trace, *, launches: Iterable[int] | None = None, progress: Callable[[float], None] | None = None
) -> bytes:
    """Return a trace as the content of a `.pftrace` file; arguments as for `write_perfetto`."""
    file = io.BytesIO()
    write_perfetto(trace, file, launches=launches, progress=progress)
    return file.getvalue()


def write_perfetto(
    trace: Trace,
    file: BinaryIO,
    *,
    launches: Iterable[int] | None = None,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Write a trace as a Perfetto file.

    Args:
        trace: the trace.
        file: where to.
        launches: which launches, by row; all by default.
        progress: called with the share that has been written, 0 to 1.

    Raises:
        ToolError: the package `perfetto` is not installed.
    """
    chosen = list(range(len(trace.launches)) if launches is None else launches)
    writer = _Writer(trace, file)
    for done, launch in enumerate(chosen):
        for share in writer.launch(launch):
            if progress is not None:
                progress((done + share) / len(chosen))
    writer.flush()


class _Writer:
    def __init__(self, trace: Trace, file: BinaryIO) -> None:
        try:
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos
        except ImportError:
            raise ToolError(
                "writing Perfetto files needs the package perfetto, which is not installed",
                remedy="pip install 'iket-rewrite[trace]', or export to a .json file",
            ) from None
        self.protos: Any = protos
        self.trace, self.file = trace, file
        self.batch: Any = protos.Trace()
        self.tracks = 0
        self.offsets = clock_offsets(trace)
        self.offset = 0
        self.sources: dict[tuple[str, str], str] = {}
        self.arguments = {name: number for number, name in enumerate(_ARGUMENTS, 1)}
        self._names()

    def launch(self, launch: int) -> Iterator[float]:
        """Write the process of one launch; yield the share that is done, warp by warp."""
        trace = self.trace
        self.offset = int(self.offsets[trace.launches.process[launch]])
        self.sources = {}
        top = self._track(None, "", 0)
        top.process.pid = launch + 1
        top.process.process_name = launch_title(trace, launch)
        top.process.process_labels.append(trace.processes[trace.launches.process[launch]].path)
        parents: dict[tuple[Any, ...], int] = {}
        warps = trace.launches.warps_of(launch)
        uuid = top.uuid
        for warp in draw_launch(trace, launch):
            self._warp(launch, warp, uuid, parents)
            self.flush()
            yield (warp.warp + 1 - warps.start) / (warps.stop - warps.start)

    def flush(self) -> None:
        """Write out what has been gathered: files of one message can be joined end to end."""
        self.file.write(self.batch.SerializeToString())
        # A new one: clearing a message keeps its memory.
        self.batch = self.protos.Trace()

    def _warp(self, launch: int, drawn: WarpTracks, top: int, parents: dict[tuple[Any, ...], int]) -> None:
        trace, ranges = self.trace, self.trace.ranges
        place = trace.locations
        row = int(trace.warps.location[drawn.warp])
        sm, cta = int(place.sm[row]), tuple(place.cta[row].tolist())
        if (sm,) not in parents:
            parents[sm,] = self._track(top, f"SM {sm}", len(parents)).uuid
        if (sm, cta) not in parents:
            parents[sm, cta] = self._track(parents[sm,], f"CTA {cta[0]},{cta[1]},{cta[2]}", len(parents)).uuid
        warp = self._track(parents[sm, cta], f"warp {int(place.warp[row])}", int(place.warp[row])).uuid
        for begins, one in nested(drawn.stacked, ranges.start_ns, ranges.end_ns):
            self._range(launch, warp, one, begins)
        for one in drawn.markers:
            self._marker(launch, warp, one)
        for number, track in enumerate(drawn.extra, 1):
            own = self._track(warp, track.name, number).uuid
            for begins, one in nested(track.rows, ranges.start_ns, ranges.end_ns):
                self._range(launch, own, one, begins)
        if trace.warps.recorded[drawn.warp]:
            own = self._track(warp, "lifetime", 0).uuid
            start, end = int(trace.warps.start_ns[drawn.warp]), int(trace.warps.end_ns[drawn.warp])
            self._event(own, start, "TYPE_SLICE_BEGIN").name = "warp"
            self._event(own, max(start, end), "TYPE_SLICE_END")

    def _range(self, launch: int, track: int, row: int, begins: bool) -> None:
        ranges = self.trace.ranges
        start, end = int(ranges.start_ns[row]), int(ranges.end_ns[row])
        if not begins:
            self._event(track, max(start, end), "TYPE_SLICE_END")
            return
        event = self._event(track, start, "TYPE_SLICE_BEGIN")
        event.name_iid = int(ranges.name[row]) + 1
        self._payload(event, "payload", int(ranges.start_type[row]), int(ranges.start_bits[row]))
        self._payload(event, "end_payload", int(ranges.end_type[row]), int(ranges.end_bits[row]))
        kind = kind_name(int(ranges.kind[row]))
        if ranges.kind[row] != KIND_PUSH:
            self._argument(event, "kind").string_value = kind
        self._argument(event, "own_ns").int_value = int(ranges.own_ns[row])
        if end < start:
            self._argument(event, "recorded_ns").int_value = end - start
        self._describe(event, launch, kind, int(ranges.name[row]), int(ranges.color[row]))

    def _marker(self, launch: int, track: int, row: int) -> None:
        markers = self.trace.markers
        event = self._event(track, int(markers.ns[row]), "TYPE_INSTANT")
        event.name_iid = int(markers.name[row]) + 1
        self._payload(event, "payload", int(markers.type[row]), int(markers.bits[row]))
        self._describe(event, launch, "mark", int(markers.name[row]), int(markers.color[row]))

    def _describe(self, event: Any, launch: int, kind: str, name: int, color: int) -> None:
        text = self.trace.names[name]
        if self.trace.events:
            if (kind, text) not in self.sources:
                places = self.trace.places(kind, text, self.trace.launches.kernel[launch])
                self.sources[kind, text] = ", ".join(map(str, places))
            if self.sources[kind, text]:
                self._argument(event, "source").string_value = self.sources[kind, text]
        if color != COLOR_AUTOMATIC:
            self._argument(event, "color").string_value = f"#{color:06x}"

    def _payload(self, event: Any, name: str, code: int, bits: int) -> None:
        value = payloads.decode(code, bits)
        if value is None:
            return
        argument = self._argument(event, name)
        if isinstance(value, float):
            argument.double_value = value
        elif isinstance(value, str):
            argument.pointer_value = bits
        elif value < 0:
            argument.int_value = value
        else:
            argument.uint_value = value
        if name == "payload":
            self._argument(event, "payload_type").string_value = payloads.type_name(code)

    def _argument(self, event: Any, name: str) -> Any:
        argument = event.debug_annotations.add()
        argument.name_iid = self.arguments[name]
        return argument

    def _event(self, track: int, stamp: int, kind: str) -> Any:
        packet = self._packet()
        packet.timestamp = stamp - self.offset
        packet.track_event.type = getattr(self.protos.TrackEvent, kind)
        packet.track_event.track_uuid = track
        return packet.track_event

    def _track(self, parent: int | None, name: str, rank: int) -> Any:
        track = self._packet().track_descriptor
        self.tracks += 1
        track.uuid = self.tracks
        track.child_ordering = self.protos.TrackDescriptor.EXPLICIT
        # Or tracks of one name are joined, and what overlaps on the joined track is dropped.
        track.sibling_merge_behavior = self.protos.TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE
        if parent is not None:
            track.parent_uuid, track.name, track.sibling_order_rank = parent, name, rank
        return track

    def _packet(self) -> Any:
        packet = self.batch.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = self.protos.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return packet

    def _names(self) -> None:
        packet = self._packet()
        packet.sequence_flags |= self.protos.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        for number, name in enumerate(self.trace.names, 1):
            packet.interned_data.event_names.add(iid=number, name=name)
        for name, number in self.arguments.items():
            packet.interned_data.debug_annotation_names.add(iid=number, name=name)
