# SPDX-License-Identifier: Apache-2.0
"""Metadata arrays read back out of source text: TileLang's, TIRx's and ours."""

from __future__ import annotations

import pytest
from texts import expected, fixture, kernel

from iket_rewrite import MetadataError, rewrite
from iket_rewrite.abi import EventKind, Method
from iket_rewrite.rewriting.readback import read_arrays, read_events
from iket_rewrite.source import Source

TIRX = [stem for stem in expected("tirx") if not stem.startswith("tokens")]
TILELANG = [
    (stem, form)
    for stem in expected("tilelang")
    for form in ("instrumented", "no_payload.instrumented")
    if fixture("tilelang", f"{stem}.{form}").exists()
]


def declared(path):
    return read_events(Source(path.read_bytes(), str(path)))


def rows(events):
    return [(event.kind.value, event.name, event.payload.name if event.payload else None) for event in events]


def test_there_are_fixtures_of_both():
    assert len(TIRX) == 4
    assert len(TILELANG) == 8


@pytest.mark.parametrize("stem", TIRX)
def test_what_tirx_wrote_is_read(stem):
    wanted = expected("tirx")[stem]
    method, events = declared(fixture("tirx", stem))
    assert method.facts.title == wanted["method"]
    assert [(event.id, *row) for event, row in zip(events, rows(events), strict=True)] == [
        (event["id"], event["kind"], event["name"], event["payload"]) for event in wanted["events"]
    ]


@pytest.mark.parametrize(("stem", "form"), TILELANG)
def test_what_tilelang_wrote_is_read(stem, form):
    captured = form == "instrumented"
    method, events = declared(fixture("tilelang", f"{stem}.{form}"))
    assert method is Method.NATIVE
    assert sorted(rows(events), key=str) == sorted(
        (
            (event["kind"], event["name"], event["payload"] if captured else None)
            for event in expected("tilelang")[stem]["events"]
        ),
        key=str,
    )


FORMS = {
    "native": 'IKET_MARK("a", IKET_F16(n)); IKET_RANGE("größe / 1", 1, IKET_COLOR(0xFF8000)); IKET_RANGE_END("t");',
    "extended": "".join(f'IKET_MARK("m{index}");' for index in range(40)) + 'IKET_RANGE("r", IKET_PTR(p));',
    "long": f'IKET_MARK("{"x" * 32}"); IKET_RANGE_START("{"é" * 40}", 1); IKET_RANGE("r");',
    "bool": 'IKET_MARK("a", IKET_BOOL(n));',
    "pops": "IKET_RANGE_POP();",
}


@pytest.mark.parametrize("form", FORMS)
def test_what_we_wrote_is_read(form):
    result = rewrite(kernel(FORMS[form]))
    method, events = read_events(Source(result.text))
    assert method is result.plan.method
    assert len(events) == len(result.plan.events)
    for event, planned in zip(events, result.plan.events, strict=True):
        payload = planned.payload.name if planned.payload else None
        assert (event.id, event.kind, event.name) == (planned.id, planned.kind, planned.name)
        assert (event.payload.name if event.payload else None) == ("u8" if payload == "bool" else payload)
        assert event.color == (planned.color if planned.kind is not EventKind.MARK else None)


def array(symbol, data, size=None):
    size = len(data) if size is None else size
    return f"__device__ unsigned char {symbol}[{size}] = {{{', '.join(map(str, data))}}};\n"


@pytest.mark.parametrize(
    ("body", "data"),
    [
        ("[3] = {1, 2, 3}", [1, 2, 3]),
        ("[] = {0x1, 0xFFu, 07}", [1, 255, 7]),
        ("[4] = {1}", [1, 0, 0, 0]),
        ("[2]={\n1,\n2,\n}", [1, 2]),
        ("[2] = {0}", [0, 0]),
    ],
)
def test_an_array_is_what_c_makes_of_it(body, data):
    text = f"unsigned char __iket_x{body};"
    assert read_arrays(Source(text)) == {"__iket_x": bytes(data)}


@pytest.mark.parametrize(
    "body",
    [
        "[3] = {1, x, 3}",
        "[1] = {256}",
        "[1] = {-1}",
        "[2] = {1, 2, 3}",
        "[1] = {1.5}",
        "[1] = {'a'}",
        '[1] = {"a"}',
        "[1] = {1 +}",
    ],
)
def test_an_array_of_anything_but_bytes_is_an_error_at_its_place(body):
    with pytest.raises(MetadataError, match=r"^k.cu:2:15: the array __iket_x "):
        read_arrays(Source(f"\nunsigned char __iket_x{body};", "k.cu"))


@pytest.mark.parametrize("size", ["1048577", "99999999999", "9" * 5000])
def test_an_array_of_a_huge_size_is_an_error(size):
    with pytest.raises(MetadataError, match="larger than any"):
        read_arrays(Source(f"unsigned char __iket_x[{size}] = {{1}};"))


def test_text_without_arrays_has_no_events():
    with pytest.raises(MetadataError, match=r"k.cu: there is no __iket_meta_info\n  fix: instrument the source again"):
        read_events(Source("int a;", "k.cu"))


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [(24, 0, "the magic number"), (None, None, "has 47 bytes, not 48")],
)
def test_a_broken_header_is_an_error(offset, value, message):
    arrays = read_arrays(Source(rewrite(kernel('IKET_MARK("a");')).text))
    data = bytearray(arrays["__iket_meta_info"])
    if offset is None:
        data.pop()
    else:
        data[offset] = value
    with pytest.raises(MetadataError, match=message):
        read_events(Source(array("__iket_meta_info", data)))
