# SPDX-License-Identifier: Apache-2.0
"""Metadata arrays decoded: what we pack is read, and what is broken is told."""

from __future__ import annotations

import struct

import pytest

from iket_rewrite import rewrite
from iket_rewrite.abi import EventKind, Method
from iket_rewrite.metadata_records import RecordError, decode_header, decode_module
from iket_rewrite.rewriting.readback import read_arrays
from iket_rewrite.source import Source

TEXT = """\
IKET_MARK("mark", IKET_U16(n));
IKET_RANGE_PUSH("größe / 1", IKET_COLOR(0xFF8000));
IKET_RANGE_START("token", IKET_F64(n));
"""
LONG = TEXT + f'IKET_RANGE_PUSH("{"x" * 70}");'


def arrays(text: str = TEXT) -> dict[str, bytes]:
    return read_arrays(Source(rewrite(text).text))


def symbol(found: dict[str, bytes], start: str) -> str:
    return next(name for name in found if name.startswith(start))


@pytest.mark.parametrize(("text", "minor", "longest"), [(TEXT, 5, 32), (LONG, 7, 0xFFFFFFFF)])
def test_the_header_says_which_form_the_names_have(text, minor, longest):
    header = decode_module(arrays(text)).header
    assert (header.size, header.major, header.minor, header.longest_name) == (48, 0, minor, longest)
    assert (header.highest_id, header.event_size, header.magic, header.features) == (31, 60, 0xBABEF19D, 3)


@pytest.mark.parametrize("text", [TEXT, LONG])
def test_events_and_ranges_are_those_of_the_plan(text):
    module, plan = decode_module(arrays(text)), rewrite(text).plan
    assert module.method is Method.NATIVE
    assert [(e.id, e.kind, e.name, e.payload, e.range_id) for e in module.events] == [
        (e.id, e.kind, e.name, e.payload, e.range_id) for e in plan.events
    ]
    ranges = [event for event in plan.events if event.kind is not EventKind.MARK]
    facts = {EventKind.RANGE: (2, 0), EventKind.TOKEN_RANGE: (1, 1)}
    assert [(r.range_id, r.name, r.color, (r.type, r.pairing)) for r in module.ranges] == [
        (e.range_id, e.name, e.color, facts[e.kind]) for e in ranges
    ]


def test_extended_modules_have_their_own_ids():
    module = decode_module(read_arrays(Source(rewrite(TEXT, method="extended").text)))
    assert (module.method, module.header.highest_id, module.events[0].id) == (Method.EXTENDED, 4095, 64)


@pytest.mark.parametrize(
    ("start", "offset", "value", "message"),
    [
        ("__iket_meta", 24, 1, "has the magic number 0x00000001, not 0xbabef19d"),
        ("__iket_evt", 8, 4, "has the unknown method 4"),
        ("__iket_evt", 12, 9, "has the unknown payload type 9"),
        ("__iket_evt", 16, 2, "has the unknown position 2"),
        ("__iket_evt", 28, 0xFFFFFFFF, "has a name that is not UTF-8"),
        ("__iket_range", 36, 0xFFFFFFFF, "has a name that is not UTF-8"),
        ("__iket_evt", 24, 33, "has a long name, but its text is missing"),
        ("__iket_range", 32, 33, "has a long name, but its text is missing"),
    ],
)
def test_a_word_that_the_contract_does_not_know_is_told_with_its_symbol(start, offset, value, message):
    found = arrays()
    name = symbol(found, start)
    data = bytearray(found[name])
    struct.pack_into("<I", data, offset, value)
    with pytest.raises(RecordError, match=f"^{name} {message}"):
        decode_module(found | {name: bytes(data)})


@pytest.mark.parametrize("start", ["__iket_meta", "__iket_evt", "__iket_range"])
@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: b""])
def test_an_array_of_another_size_is_told(start, change):
    found = arrays()
    name = symbol(found, start)
    with pytest.raises(RecordError, match=f"^{name} has .* bytes, not (48|60|72)$"):
        decode_module(found | {name: change(found[name])})


def test_a_module_without_a_header_is_told():
    found = arrays()
    del found["__iket_meta_info"]
    with pytest.raises(RecordError, match="there is no __iket_meta_info"):
        decode_module(found)


def test_events_of_two_methods_are_told():
    found = arrays()
    name = symbol(found, "__iket_evt")
    data = bytearray(found[name])
    struct.pack_into("<I", data, 8, 5)
    with pytest.raises(RecordError, match="its events are of two methods"):
        decode_module(found | {name: bytes(data)})


def test_a_header_alone_declares_nothing():
    module = decode_module({"__iket_meta_info": arrays()["__iket_meta_info"]})
    assert (module.events, module.ranges) == ((), ())
    assert decode_header(arrays()["__iket_meta_info"]) == module.header
