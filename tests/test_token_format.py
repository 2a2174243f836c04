# SPDX-License-Identifier: Apache-2.0
"""Tokens: ours and TileLang's, read and refused."""

from __future__ import annotations

import base64

import pytest
from token_texts import pack

from iket_rewrite import EventToken, OptionError, abi, decode_event, encode_event
from iket_rewrite.rewriting.token_format import TokenError, read_tilelang_token, read_token

OURS, TILELANG = "__iket_v1_", "__tl_iket_v1_"
MARK = {"kind": "mark", "name": "a"}
TILELANG_MARK = {
    "version": 1,
    "name": "a",
    "event_id": 1,
    "kind": "mark",
    "range_id": 0,
    "payload_type": "int32",
    "payload_iket_id": 5,
}

EVENTS = [
    EventToken("mark", "a"),
    EventToken("mark", "größe ?????~~~~~ 🚀", "pointer"),
    EventToken("range_push", "x" * 1000, "i32", 0xFF8000),
    EventToken("range_pop"),
    EventToken("range_pop", file="a.py", line=3, column=4),
    EventToken("range_start", "a", "f64", 0, "dir/ü.py", 1),
    EventToken("range_end", "a", None, 0xFFFFFF, "a.py", 2**31 - 1, 1),
    *(EventToken("mark", "a", payload) for payload in abi.PAYLOADS),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_decoding_gives_back_what_was_encoded(event):
    token = encode_event(**{key: getattr(event, key) for key in EventToken.__slots__})
    assert decode_event(token) == event
    assert token.startswith(OURS)
    assert set(token) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def test_a_token_is_compact_json_with_sorted_keys():
    body = encode_event("mark", "é", payload="i32", color=1, file="f", line=1, column=2)[len(OURS) :]
    data = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
    assert data == '{"color":1,"column":2,"file":"f","kind":"mark","line":1,"name":"é","payload":"i32"}'


BAD_VALUES = [
    ({"kind": "scope", "name": "a"}, "the kind is 'scope', not one of mark, range_push"),
    ({"kind": "range", "name": "a"}, "the kind is 'range'"),
    ({"kind": 1, "name": "a"}, "the kind is 1"),
    ({"kind": ["mark"], "name": "a"}, r"the kind is \['mark'\]"),
    ({"kind": "mark"}, "the name is None, not text"),
    ({"kind": "mark", "name": 3}, "the name is 3, not text"),
    ({"kind": "mark", "name": ""}, "the name is empty"),
    ({"kind": "mark", "name": "a\0"}, "the name holds a NUL"),
    ({"kind": "mark", "name": "\ud800"}, "the name is not valid UTF-8"),
    ({"kind": "range_pop", "name": "a"}, "a pop has no name"),
    ({"kind": "range_pop", "payload": "i32"}, "a pop carries no payload"),
    ({"kind": "range_pop", "color": 1}, "a pop has no colour"),
    ({**MARK, "payload": "int32"}, "the payload type is 'int32', not one of i8, u8, bool"),
    ({**MARK, "payload": 5}, "the payload type is 5"),
    ({**MARK, "payload": {}}, "the payload type is {}"),
    ({**MARK, "color": -1}, "the colour is -1"),
    ({**MARK, "color": 0x1000000}, "the colour is 16777216"),
    ({**MARK, "color": True}, "the colour is True"),
    ({**MARK, "color": 1.0}, "the colour is 1.0"),
    ({**MARK, "color": "red"}, "the colour is 'red'"),
    ({**MARK, "file": "a.py"}, "a file needs a line"),
    ({**MARK, "line": 1}, "a line needs a file"),
    ({**MARK, "column": 1}, "a column needs a line"),
    ({**MARK, "file": "", "line": 1}, "the file is ''"),
    ({**MARK, "file": 3, "line": 1}, "the file is 3"),
    ({**MARK, "file": "a", "line": 0}, "the line is 0"),
    ({**MARK, "file": "a", "line": 2**31}, "the line is 2147483648"),
    ({**MARK, "file": "a", "line": True}, "the line is True"),
    ({**MARK, "file": "a", "line": 1, "column": 0}, "the column is 0"),
]


@pytest.mark.parametrize(("values", "message"), BAD_VALUES)
def test_values_that_form_no_event_are_refused_on_both_sides(values, message):
    with pytest.raises(OptionError, match=f"no event token: {message}"):
        encode_event(**values)
    with pytest.raises(TokenError, match=message):
        read_token(pack(OURS, values))


BAD_TEXT = [
    ("", "does not start with '__iket_v1_': it is of another version"),
    ("__iket_v2_e30", "does not start with '__iket_v1_': it is of another version"),
    (TILELANG + "e30", "does not start with '__iket_v1_'"),
    (OURS, "does not hold JSON"),
    (OURS + "!!!", "not base64"),
    (OURS + "e30=", "not base64"),
    (OURS + "e3+0", "not base64"),
    (OURS + "e3/0", "not base64"),
    (OURS + "e30\n", "not base64"),
    (OURS + "é", "not base64"),
    (OURS + "e30ab", "not base64"),
    (pack(OURS, b"\xff"), "does not hold JSON"),
    (pack(OURS, b"{"), "does not hold JSON"),
    (pack(OURS, b'{"kind":' + b"[" * 100_000), "does not hold JSON"),
    (pack(OURS, b'{"line":' + b"1" * 5000 + b"}"), "does not hold JSON|unknown key|lacks"),
    (pack(OURS, []), "the token's JSON is no object"),
    (pack(OURS, None), "the token's JSON is no object"),
    (pack(OURS, {}), "lacks the key 'kind'"),
    (pack(OURS, {"name": "a"}), "lacks the key 'kind'"),
    (pack(OURS, {**MARK, "id": 1}), "unknown key 'id'"),
    (pack(OURS, {**MARK, "version": 1}), "unknown key 'version'"),
    (pack(OURS, {**MARK, "payload": None}), "the token's key 'payload' is null; leave it out"),
]


@pytest.mark.parametrize(("token", "message"), BAD_TEXT)
def test_text_that_is_no_token_of_ours_is_refused(token, message):
    with pytest.raises(OptionError, match=message):
        decode_event(token)


@pytest.mark.parametrize("token", [None, 3, b"__iket_v1_e30"])
def test_a_token_is_text(token):
    with pytest.raises(OptionError, match="not text"):
        decode_event(token)


def test_a_position_needs_file_and_line():
    assert EventToken("mark", "a").position is None
    position = EventToken("mark", "a", file="k.py", line=3, column=4).position
    assert (position.file, position.line, position.column) == ("k.py", 3, 4)


@pytest.mark.parametrize(
    ("changes", "event"),
    [
        ({}, EventToken("mark", "a", "i32")),
        ({"payload_type": "uint32", "payload_iket_id": 6}, EventToken("mark", "a", "u32")),
        ({"payload_type": "float32", "payload_iket_id": 13}, EventToken("mark", "a", "f32")),
        ({"payload_type": "NoPayload", "payload_iket_id": 0}, EventToken("mark", "a")),
        ({"kind": "range", "range_id": 9, "event_id": 900}, EventToken("range_push", "a", "i32")),
    ],
)
def test_a_token_of_tilelang_says_kind_name_and_payload(changes, event):
    assert read_tilelang_token(pack(TILELANG, {**TILELANG_MARK, **changes})) == event


BAD_TILELANG = [
    ({"version": 2}, "version 2; only version 1 is known"),
    ({"version": "1"}, "version '1'; only version 1"),
    ({"extra": 1}, "unknown key 'extra'"),
    ({"event_id": -1}, "'event_id' is -1, not a number"),
    ({"event_id": "1"}, "'event_id' is '1', not a number"),
    ({"range_id": 1.5}, "'range_id' is 1.5, not a number"),
    ({"range_id": True}, "'range_id' is True, not a number"),
    ({"kind": "range_push"}, "kind is 'range_push', not one of mark, range"),
    ({"kind": []}, r"kind is \[\], not one of"),
    ({"payload_type": "float64"}, "payload type is 'float64', not one of NoPayload, int32"),
    ({"payload_type": None}, "payload type is None, not one of"),
    ({"payload_iket_id": 6}, "payload number is 6, but int32 is 5"),
    ({"payload_type": "NoPayload"}, "payload number is 5, but NoPayload is 0"),
    ({"name": ""}, "the name is empty"),
    ({"name": None}, "the name is None, not text"),
    ({"name": "a\0b"}, "the name holds a NUL"),
]


@pytest.mark.parametrize(("changes", "message"), BAD_TILELANG)
def test_a_token_of_tilelang_with_other_values_is_refused(changes, message):
    with pytest.raises(TokenError, match=message):
        read_tilelang_token(pack(TILELANG, {**TILELANG_MARK, **changes}))


@pytest.mark.parametrize("key", TILELANG_MARK)
def test_a_token_of_tilelang_without_one_of_its_keys_is_refused(key):
    values = {name: value for name, value in TILELANG_MARK.items() if name != key}
    with pytest.raises(TokenError, match=f"lacks the key '{key}'"):
        read_tilelang_token(pack(TILELANG, values))
