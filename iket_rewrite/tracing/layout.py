# SPDX-License-Identifier: Apache-2.0
"""The layout of a trace file: its records as typed structures, and their decoding with the place of every error.

Two layouts are read.  The current one has tables of names (`stringTable`) and of locations (`locationTable`) and
refers to them by index; the older one has names and locations inside each record.  `inline` turns the older records
into the current form.

Records are decoded in chunks, straight into slotted structures: that takes a fifth of the time of `json.loads` and
little memory, since only one chunk exists as objects.  A chunk that does not fit is decoded once more into plain
dictionaries: then either it has keys that we do not know, which are put aside, or it is wrong, and the error names
the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec

from .. import abi
from ..errors import TraceError

#: How many records exist as objects at a time.
CHUNK = 1 << 14
#: The ways out of a file that can not be read.
_CUT = "the capture or a copy did not end: capture or copy it again"
ANOTHER = "name a .trace.json file as run-iket --postprocess json or a capture in the process wrote it"
#: What stands for a payload's value that the file does not give: no file can, values are not negative.
NO_VALUE = -(1 << 63)
T = TypeVar("T")
Raw = msgspec.Raw
#: Turns a record of the older layout into one of the current layout, in place.
Normalise = Callable[[dict[str, Any], str], None]
#: Takes key, index and value of what we do not know.
Keep = Callable[[str, int, Any], None]


class InternalEvent(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One event of a range."""

    timestamp: int
    eventId: int = -1
    payloadType: int = abi.PAYLOAD_NONE
    payloadVal: int = NO_VALUE


class Range(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One range."""

    rangeNameIdx: int
    startTs: int
    endTs: int
    warpLocIdxs: list[int]
    internalEvents: list[InternalEvent]
    rangeType: int
    rangeColor: int = abi.COLOR_AUTOMATIC
    rangeScope: int = abi.RANGE_SCOPE_WARP
    rangeId: int = 0


class Marker(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One marker."""

    markerNameIdx: int
    timestamp: int
    locIdx: int
    color: int = abi.COLOR_AUTOMATIC
    payloadType: int = abi.PAYLOAD_NONE
    payloadVal: int = NO_VALUE


class Lifetime(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The lifetime of one warp."""

    startTs: int
    endTs: int
    locIdx: int


class Location(msgspec.Struct, gc=False, frozen=True, forbid_unknown_fields=True):
    """One place on the GPU.  A container may hide GPC and TPC; then they are -1."""

    ctaId: tuple[int, int, int]
    warpId: int
    smId: int
    tpcId: int
    gpcId: int
    clusterId: tuple[int, int, int] = (-1, -1, -1)


#: Dimensions and numbers of a launch; CUDA's own limit is below the first.
Dimension = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Point(msgspec.Struct):
    """Three dimensions."""

    x: Dimension = 0
    y: Dimension = 0
    z: Dimension = 0


class Launch(msgspec.Struct):
    """One launch without its records."""

    kernelName: str
    gridId: Number
    gridDimX: Dimension
    gridDimY: Dimension
    gridDimZ: Dimension
    blockDimX: Dimension
    blockDimY: Dimension
    blockDimZ: Dimension
    contextId: Number = 0
    enabledCluster: Point = msgspec.field(default_factory=Point)
    singleClusterActive: bool | int = False


#: The keys under which a launch keeps its records.
RECORD_LISTS = ("ranges", "markers", "warpLifetimes")


def decode(raw: Any, form: type[T], place: str, *, first: int | None = None) -> T:
    """Decode JSON text.

    Args:
        raw: the text.
        form: what it must be.
        place: where it stands, for errors.
        first: where `raw` is a chunk of a list, the index of its first item.

    Raises:
        TraceError: it is something else.
    """
    try:
        return msgspec.json.decode(raw, type=form)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _placed(error, place, first) from None


def convert(value: Any, form: type[T], place: str, *, first: int | None = None) -> T:
    """Turn plain values into structures; errors as in `decode`."""
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise _placed(error, place, first) from None


def records(
    raws: list[Any], form: type[T], place: str, normalise: Normalise | None, keep: Keep
) -> Iterator[tuple[int, list[T]]]:
    """Yield the records of a list in chunks, each with the index of its first record.

    Args:
        raws: the text of each record.
        form: `Range`, `Marker`, `Lifetime` or `Location`.
        place: the list's place.
        normalise: for the older layout.
        keep: called with key, index and value for what we do not know.

    Raises:
        TraceError: a record is wrong.
    """
    decoder = msgspec.json.Decoder(list[form])  # type: ignore[valid-type]
    for first in range(0, len(raws), CHUNK):
        text = b"[" + b",".join(raws[first : first + CHUNK]) + b"]"
        if normalise is None:
            try:
                yield first, decoder.decode(text)
                continue
            except (msgspec.DecodeError, RecursionError):
                pass
        plain = decode(text, list[Any], place, first=first)
        for number, item in enumerate(plain, first):
            if isinstance(item, dict):
                if normalise is not None:
                    normalise(item, f"{place}[{number}]")
                _set_aside(item, form, number, "", keep)
        yield first, convert(plain, list[form], place, first=first)  # type: ignore[valid-type]


def _set_aside(item: dict[str, Any], form: Any, number: int, prefix: str, keep: Keep) -> None:
    for key in [key for key in item if key not in form.__struct_fields__]:
        keep(prefix + key, number, item.pop(key))
    inner = item.get("internalEvents") if form is Range else None
    for position, event in enumerate(inner if isinstance(inner, list) else ()):
        if isinstance(event, dict):
            _set_aside(event, InternalEvent, number, f"internalEvents[{position}].", keep)


def _placed(error: Exception, place: str, first: int | None) -> TraceError:
    if isinstance(error, RecursionError):
        return TraceError(f"{place}: is nested too deeply", remedy=ANOTHER)
    found = re.fullmatch(r"(?s)(.*?)(?: - at `(?:key in )?\$(.*)`)?", str(error))
    said, path = (found.group(1), found.group(2) or "") if found else (str(error), "")
    if first is not None and (index := re.match(r"\[(\d+)\]", path)):
        path = f"[{first + int(index.group(1))}]" + path[index.end() :]
    said = re.sub(r"Object missing required field `(\w+)`", r"the key \1 is missing", said)
    said = said.replace("`", "").replace("Input data was truncated", "the JSON text is cut short")
    if not said.startswith("JSON"):
        said = said[:1].lower() + said[1:]
    return TraceError(f"{place}{path}: {said}", remedy=_CUT if "cut short" in said else ANOTHER)
