# SPDX-License-Identifier: Apache-2.0
"""Everything that issue 2 lists as bad input: place, caret, remedy, exit code 1, and nothing written."""

from __future__ import annotations

import pytest
from texts import kernel, place_and_caret
from token_texts import pack, tilelang_token

from iket_rewrite import encode_event
from iket_rewrite.cli.rewrite_command import main

OURS, TILELANG = "__iket_v1_", "__tl_iket_v1_"
MARK = {"kind": "mark", "name": "a"}
ANY = object()


def ours(token: str) -> str:
    return kernel(f'  IKET_EVENT("{token}");')


def tilelang(token: str) -> str:
    return kernel(f'  TL_IKET_EVENT(1, "{token}");')


def marks(count: int) -> str:
    return kernel("\n".join(f'  IKET_MARK("m{index}");' for index in range(count)))


def case(name: str, text: str, place: str, caret: object, message: str, remedy: str, *options: str):
    return pytest.param(text, place, caret, message, remedy, options, id=name)


AS_PRINTED = "print the token exactly as encode_event (or TileLang) returned it"
CASES = [
    case("ours, not base64", ours(OURS + "!*"), "2:14", '"__iket_v1_!*"', "the token is not base64", AS_PRINTED),
    case("ours, not JSON", ours(pack(OURS, b"{]")), "2:14", ANY, "base64 does not hold JSON", AS_PRINTED),
    case("ours, other version", ours("__iket_v2_e30"), "2:14", ANY, "is of another version, or no token", AS_PRINTED),
    case("ours, no token", ours("hello"), "2:14", '"hello"', "is of another version, or no token", AS_PRINTED),
    case("ours, missing key", ours(pack(OURS, {"name": "a"})), "2:14", ANY, "lacks the key 'kind'", AS_PRINTED),
    case("ours, extra key", ours(pack(OURS, MARK | {"id": 1})), "2:14", ANY, "the unknown key 'id'", AS_PRINTED),
    case("ours, kind", ours(pack(OURS, MARK | {"kind": "m"})), "2:14", ANY, "the kind is 'm', not one of", AS_PRINTED),
    case(
        "ours, payload type",
        ours(pack(OURS, MARK | {"payload": "float"})),
        "2:14",
        ANY,
        "the payload type is 'float', not one of",
        AS_PRINTED,
    ),
    case("ours, empty name", ours(pack(OURS, MARK | {"name": ""})), "2:14", ANY, "the name is empty", AS_PRINTED),
    case("ours, NUL", ours(pack(OURS, MARK | {"name": "\0"})), "2:14", ANY, "the name holds a NUL", AS_PRINTED),
    case("TileLang, not base64", tilelang(TILELANG + "!"), "2:20", ANY, "the token is not base64", AS_PRINTED),
    case("TileLang, not JSON", tilelang(pack(TILELANG, b"x")), "2:20", ANY, "does not hold JSON", AS_PRINTED),
    case("TileLang, other prefix", tilelang("__tl_iket_v2_e30"), "2:20", ANY, "of another version", AS_PRINTED),
    case(
        "TileLang, other version",
        tilelang(tilelang_token("a", "mark", None, version=2)),
        "2:20",
        ANY,
        "the token is of version 2; only version 1 is known",
        AS_PRINTED,
    ),
    case("TileLang, missing keys", tilelang(pack(TILELANG, {})), "2:20", ANY, "lacks the key 'event_id'", AS_PRINTED),
    case(
        "TileLang, extra key",
        tilelang(tilelang_token("a", "mark", None, color=1)),
        "2:20",
        ANY,
        "the unknown key 'color'",
        AS_PRINTED,
    ),
    case(
        "TileLang, kind",
        tilelang(tilelang_token("a", "token_range", None)),
        "2:20",
        ANY,
        "the token's kind is 'token_range', not one of mark, range",
        AS_PRINTED,
    ),
    case(
        "TileLang, payload type",
        tilelang(tilelang_token("a", "mark", None, payload_type="float64")),
        "2:20",
        ANY,
        "the token's payload type is 'float64', not one of NoPayload, int32",
        AS_PRINTED,
    ),
    case(
        "unknown payload macro",
        kernel('  IKET_MARK("a", IKET_I128(n));'),
        "2:18",
        "IKET_I128(n)",
        "the payload's type can not be told",
        "give its type, for example IKET_I32(IKET_I128(n))",
    ),
    case("empty name", kernel('  IKET_MARK("");'), "2:13", '""', "the name is empty", "a name is any text of UTF-8"),
    case(
        "NUL", kernel('  IKET_MARK("a\\0");'), "2:13", '"a\\0"', "the name holds a NUL", "a name is any text of UTF-8"
    ),
    case(
        "no literal",
        kernel("  IKET_RANGE(name);"),
        "2:14",
        "name",
        "the event's name is no string literal",
        "write the name as a string literal at its place",
    ),
    case(
        "two payload types",
        kernel('  IKET_MARK("a", IKET_I32(n));\n  IKET_MARK("a", IKET_F32(n));'),
        "3:3",
        "IKET_MARK",
        "the event 'a' has two payload types: f32 here, i32 before",
        "use one type at every place, or another name",
    ),
    case(
        "payload at one end",
        kernel('  IKET_RANGE_START("a", IKET_I32(n));\n  IKET_RANGE_END("a");'),
        "3:3",
        "IKET_RANGE_END",
        "the token range 'a' has a payload at one end only",
        "give both ends a payload of one type, or neither",
    ),
    case(
        "payload on a pop",
        kernel("  IKET_RANGE_POP(IKET_I32(n));"),
        "2:18",
        "IKET_I32(n)",
        "IKET_RANGE_POP takes no argument: a pop ends the innermost range",
        "leave the parentheses empty; a payload belongs to the push",
    ),
    case(
        "payload on a pop's token",
        ours(pack(OURS, {"kind": "range_pop", "payload": "i32"})),
        "2:14",
        ANY,
        "a pop carries no payload",
        AS_PRINTED,
    ),
    case(
        "payload behind a pop's token",
        kernel(f'  IKET_EVENT("{encode_event("range_pop")}", n);'),
        "2:55",
        "n",
        "a pop carries no payload",
        "leave the argument out; a payload belongs to the push",
    ),
    case(
        "4,032 events",
        marks(4032),
        "4033:3",
        "IKET_MARK",
        "4032 events, but ExtendedNativeDump has room for 4031; this is the first too many",
        "use fewer distinct names, or put what differs into a payload",
    ),
    case(
        "native with 31",
        marks(31),
        "32:3",
        "IKET_MARK",
        "31 events, but NativeDump has room for 30; this is the first too many",
        "choose the method auto or extended, or use fewer distinct names",
        "--method",
        "native",
    ),
    case(
        "unclosed call",
        '__global__ void k() {\n  IKET_MARK("a"',
        "2:3",
        "IKET_MARK",
        "the call of IKET_MARK is not closed",
        "close its parenthesis",
    ),
    case(
        "unbalanced brackets",
        kernel('  IKET_MARK("a", IKET_I32(a[(n]));'),
        "2:31",
        "]",
        "unbalanced brackets in the call of IKET_MARK: '(' is closed by ']'",
        "balance the brackets of the payload",
    ),
    case(
        "range id collision",
        kernel('  IKET_RANGE_PUSH("load_warp_35873");\n  IKET_RANGE_PUSH("gemm_block_38510");'),
        "3:3",
        "IKET_RANGE_PUSH",
        "the ranges 'gemm_block_38510' and 'load_warp_35873' have one range id, 0x29afa899",
        "rename one of them: the id is a hash of the name, and these two collide",
    ),
    case(
        "push and token range",
        kernel('  IKET_RANGE_PUSH("a");\n  IKET_RANGE_START("a");'),
        "3:3",
        "IKET_RANGE_START",
        "'a' is used as a push/pop range and as a token range",
        "give one of the two another name: they would share one range id and one symbol",
    ),
    case(
        "scoped range among labels",
        kernel('  switch (n) { case 0: IKET_RANGE("a"); case 1: ; }'),
        "2:24",
        "IKET_RANGE",
        "a scoped range stands among the labels of a switch",
        "put braces around what the range covers, or use IKET_RANGE_PUSH and IKET_RANGE_POP",
    ),
    case(
        "constexpr function",
        '__device__ constexpr int f() {\n  IKET_RANGE("a");\n  return 1;\n}\n',
        "2:3",
        "IKET_RANGE",
        "a scoped range can not stand in a constexpr function",
        "use IKET_RANGE_PUSH and IKET_RANGE_POP",
    ),
    case(
        "side effect that is not captured",
        kernel('  IKET_MARK("a", IKET_I32(n++));'),
        "2:27",
        "n++",
        "the payload has a side effect, but payloads are not captured, so it would not happen",
        "move the side effect to a statement of its own, or capture payloads (--runtime-payloads)",
        "--no-runtime-payloads",
    ),
    case(
        "a directive inside",
        kernel('  IKET_MARK("a",\n#if X\n  1);\n#endif'),
        "3:1",
        "#",
        "a preprocessor directive stands inside the call of IKET_MARK",
        "put whole calls into the branches of the directive",
    ),
    case(
        "two macros deep",
        "#define W(n) IKET_MARK(n)\n#define V(m) W(m)\n" + kernel('  V("a");'),
        "2:16",
        "m",
        "the name that W passes on is no string literal",
        "a name can pass through one macro only",
    ),
    case(
        "spliced",
        kernel('  IKET_\\\nMARK("a");\n  IKET_\\\nMARK(n\\\name);'),
        "5:6",
        "n\\",
        "the event's name is no string literal",
        "write the name as a string literal",
    ),
]


@pytest.mark.parametrize(("text", "place", "caret", "message", "remedy", "options"), CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_bad_input_is_told_with_its_place_and_writes_nothing(
    text, place, caret, message, remedy, options, newline, tmp_path, capfd
):
    source = tmp_path / "k.cu"
    source.write_text(text, newline=newline)
    assert main([str(source), *options]) == 1
    out, told = capfd.readouterr()
    assert out == ""
    assert told.startswith(f"{source}:{place}: ")
    found = place_and_caret(told.rstrip("\n").replace(str(source), "k.cu"))
    assert found[0] == place
    if caret is not ANY:
        assert found[1] == caret
    assert message in told.split("\n")[0]
    assert f"\n  fix: {remedy}" in told
    assert [path.name for path in tmp_path.iterdir()] == ["k.cu"]
