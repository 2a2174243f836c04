# SPDX-License-Identifier: Apache-2.0
"""The three kinds of annotation, each read by itself."""

from __future__ import annotations

import pytest
from texts import failure, kernel, place_and_caret, plan_of
from token_texts import tilelang_token

from iket_rewrite import AnnotationError, abi, encode_event
from iket_rewrite.abi import EventKind
from iket_rewrite.rewriting.annotation import SiteKind

PREFIXES = ("IKET_", "IKETR_")
PAYLOAD_MACROS = {"PTR" if name == "pointer" else name.upper(): name for name in abi.PAYLOADS}


def site(statement):
    (found,) = plan_of(kernel(statement)).sites
    return found


def event(statement):
    (found,) = plan_of(kernel(statement)).events
    return found


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("macro", "site_kind", "kind"),
    [
        ("MARK", SiteKind.MARK, EventKind.MARK),
        ("RANGE_PUSH", SiteKind.PUSH, EventKind.RANGE),
        ("RANGE", SiteKind.SCOPE, EventKind.RANGE),
        ("RANGE_START", SiteKind.START, EventKind.TOKEN_RANGE),
        ("RANGE_END", SiteKind.END, EventKind.TOKEN_RANGE),
    ],
)
def test_every_macro_of_the_header_under_both_prefixes(prefix, macro, site_kind, kind):
    found = site(f'{prefix}{macro}("name");')
    assert (found.kind, found.event.kind, found.event.name) == (site_kind, kind, "name")
    assert (found.expression, found.form, found.event.payload) == (None, None, None)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_pop_needs_no_event(prefix):
    found = site(f"{prefix}RANGE_POP( /* c */ );")
    assert (found.kind, found.event) == (SiteKind.POP, None)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("macro", PAYLOAD_MACROS)
@pytest.mark.parametrize("annotation", ["MARK", "RANGE_PUSH", "RANGE_START", "RANGE_END", "RANGE"])
def test_every_payload_type_in_every_annotation(prefix, macro, annotation):
    found = site(f'{prefix}{annotation}("name", {prefix}{macro}(f(a, b)[3]));')
    assert found.event.payload is abi.PAYLOADS[PAYLOAD_MACROS[macro]]
    assert found.expression == "f(a, b)[3]"


@pytest.mark.parametrize(
    ("literal", "payload"),
    [
        ("0", "i32"),
        ("-1", "i32"),
        ("+1'000", "i32"),
        ("0x7fffffff", "i32"),
        ("-2147483648", "i32"),
        ("0b101", "i32"),
        ("017", "i32"),
        ("1.5", "f32"),
        ("-1.5f", "f32"),
        (".5", "f32"),
        ("1.", "f32"),
        ("1e-5", "f32"),
        ("1'0.5e+3F", "f32"),
    ],
)
def test_a_bare_literal_has_a_type(literal, payload):
    found = site(f'IKET_MARK("name", {literal});')
    assert (found.event.payload.name, found.expression, found.constant) == (payload, literal, True)


@pytest.mark.parametrize(
    ("color", "value"),
    [("0xFF8000", 0xFF8000), ("0", 0), ("0xffffffu", 0xFFFFFF), ("255", 255), (" /* c */ 0b11", 3), ("010", 8)],
)
@pytest.mark.parametrize("payload", ["", ", 1", ", IKET_U64(n)"])
def test_a_colour_is_the_last_argument(color, value, payload):
    found = event(f'IKET_RANGE_PUSH("name"{payload}, IKET_COLOR({color}));')
    assert found.color == value
    assert (found.payload is None) is (payload == "")


@pytest.mark.parametrize(
    ("literals", "name"),
    [
        ('"a"', "a"),
        ('"a" "b"', "ab"),
        ('"a" /* c */ // d\n u8"é" R"x(\\n)x"', "aé\\n"),
        ('"a\\\nb"', "ab"),
        (r'"\x41\u00e9\n"', "Aé\n"),
        ('"IKET_MARK(\\"x\\")"', 'IKET_MARK("x")'),
        ('"a, b)"', "a, b)"),
        ('R"(a " // b)"', 'a " // b'),
    ],
)
def test_a_name_is_what_its_literals_say(literals, name):
    assert event(f"IKET_MARK({literals});").name == name


@pytest.mark.parametrize(
    "statement",
    [
        'IKET_MARK("a", IKET_I32(n))',
        'IKET_MARK ( "a" , IKET_I32 ( n ) )',
        'IKET_MARK(\n  "a",\n  IKET_I32(\n    n\n  )\n)',
        'IKET_MARK("a" /* c, d */, // e\n IKET_I32(/* f */ n /* g */))',
        'IKET_\\\nMARK("a"\\\n, IKET_I\\\n32(n))',
    ],
)
def test_layout_and_comments_do_not_matter(statement):
    found = site(statement + ";")
    assert (found.event.name, found.event.payload.name) == ("a", "i32")
    assert found.expression.strip("/* fgn") == ""


@pytest.mark.parametrize(
    "expression",
    [
        "f(\"a, b)\", ')')",
        "f<1, 2>(n)",
        "(n, 1)",
        "[&](int a) { return a; }(n)",
        "a[{1, 2}.x]",
        "f((n), g(h(n)))",
        "n /* ) */",
    ],
)
def test_a_payload_is_any_expression(expression):
    assert site(f'IKET_MARK("a", IKET_I32({expression}));').expression == expression


def test_a_token_of_ours_says_everything():
    token = encode_event("range_push", "größe", payload="f64", color=0x123456, file="a.py", line=3, column=4)
    found = site(f'IKET_EVENT("{token}", f<1, 2>(n));')
    assert (found.kind, found.event.kind, found.event.name) == (SiteKind.PUSH, EventKind.RANGE, "größe")
    assert (found.event.payload.name, found.event.color, found.expression) == ("f64", 0x123456, "f<1, 2>(n)")
    assert (found.position.file, found.position.line, found.position.column) == ("a.py", 3, 4)


@pytest.mark.parametrize("kind", ["mark", "range_push", "range_start", "range_end"])
def test_every_kind_of_token_of_ours(kind):
    assert site(f'IKET_EVENT("{encode_event(kind, "a")}");').kind.value == kind


def test_a_pop_by_token():
    assert site(f'IKET_EVENT("{encode_event("range_pop")}");').kind is SiteKind.POP


@pytest.mark.parametrize(
    ("callee", "payload", "arguments"),
    [
        ("TL_IKET_EVENT", None, "7, {token}"),
        ("TL_IKET_EVENT_PAYLOAD_U32", "i32", "7, n, {token}"),
        ("TL_IKET_EVENT_PAYLOAD_U32", "u32", "007, f<1, 2>(n), {token}"),
        ("TL_IKET_EVENT_PAYLOAD_F32", "f32", "0, (n * 0x1p-1f/*5.000000e-01*/), {token}"),
    ],
)
@pytest.mark.parametrize(("word", "kind"), [("mark", SiteKind.MARK), ("range", SiteKind.PUSH)])
def test_the_type_of_a_call_of_tilelang_is_that_of_its_token(callee, payload, arguments, word, kind):
    text = arguments.format(token=f'"{tilelang_token("größe", word, payload)}"')
    (found,) = plan_of(kernel(f"{callee}({text});"), runtime_payloads=True).sites
    assert (found.kind, found.event.name) == (kind, "größe")
    assert (found.event.payload.name if found.event.payload else None) == payload


@pytest.mark.parametrize("number", ["31", "031"])
def test_the_pop_of_tilelang_goes_without_a_token(number):
    assert site(f"TL_IKET_EVENT({number});").kind is SiteKind.POP


def test_the_ids_of_tilelang_are_ignored():
    tokens = [f'TL_IKET_EVENT(900, "{tilelang_token(name, "mark", None)}");' for name in "ab"]
    assert [event.id for event in plan_of(kernel("\n".join(tokens))).events] == [1, 2]


TOKEN = tilelang_token("a", "mark", None)
I32_TOKEN = tilelang_token("a", "mark", "i32")
OUR_TOKEN = encode_event("mark", "a")
OUR_I32_TOKEN = encode_event("mark", "a", payload="i32")

BAD = [
    ("IKET_MARK();", "2:1", "IKET_MARK", "the event has no name"),
    ("IKET_MARK( , 1);", "2:1", "IKET_MARK", "the event has no name"),
    ("IKET_MARK(name);", "2:11", "name", "the event's name is no string literal"),
    ("IKET_MARK('a');", "2:11", "'a'", "the event's name is no string literal"),
    ('IKET_MARK("a" NAME);', "2:11", '"a" NAME', "the event's name is no string literal"),
    ('IKET_MARK("a"_x);', "2:11", '"a"_x', "the event's name is no string literal"),
    ('IKET_MARK(f("a"));', "2:11", 'f("a")', "the event's name is no string literal"),
    ('IKET_MARK("a" + 1);', "2:11", '"a" + 1', "the event's name is no string literal"),
    ("IKET_MARK(#n);", "2:11", "#n", "the event's name is no string literal"),
    ('IKET_MARK(L"a");', "2:11", 'L"', "a literal with the prefix L is not of bytes"),
    ('IKET_MARK("a\\q");', "2:13", "\\q", "the escape \\q is none"),
    ('IKET_MARK("");', "2:11", '""', "the name is empty"),
    ('IKET_MARK("" "");', "2:11", '"" ""', "the name is empty"),
    ('IKET_MARK("a\\0b");', "2:11", '"a\\0b"', "the name holds a NUL"),
    ('IKET_MARK("a\\xff");', "2:11", '"a\\xff"', "the name is not valid UTF-8"),
    ('IKET_MARK("a\ud800");', "2:11", '"a\ufffd"', "the name is not valid UTF-8"),
    ('IKET_MARK("a", );', "2:16", ")", "an argument is empty"),
    ('IKET_MARK("a", , 1);', "2:16", ",", "an argument is empty"),
    ('IKET_MARK("a", n);', "2:16", "n", "the payload's type can not be told"),
    ('IKET_MARK("a", 5u);', "2:16", "5u", "the payload's type can not be told"),
    ('IKET_MARK("a", true);', "2:16", "true", "the payload's type can not be told"),
    ('IKET_MARK("a", 1, 2);', "2:16", "1, 2", "the payload's type can not be told"),
    ('IKET_MARK("a", IKET_I32);', "2:16", "IKET_I32", "the payload's type can not be told"),
    ('IKET_MARK("a", IKET_I33(n));', "2:16", "IKET_I33(n)", "the payload's type can not be told"),
    ('IKET_MARK("a", 2147483648);', "2:16", "2147483648", "the literal does not fit a signed 32-bit payload"),
    ('IKET_MARK("a", 0xFFFFFFFF);', "2:16", "0xFFFFFFFF", "the literal does not fit a signed 32-bit payload"),
    (f'IKET_MARK("a", {"9" * 5000});', "2:16", None, "the literal does not fit a signed 32-bit payload"),
    ('IKET_MARK("a", IKET_I32());', "2:16", "IKET_I32()", "IKET_I32 holds no expression"),
    ('IKET_MARK("a", IKET_I32(n, m));', "2:28", "m", "IKET_I32 has an argument too many"),
    ('IKET_MARK("a", IKET_I32(n) + 1);', "2:28", "+ 1", "something follows IKET_I32(...)"),
    ('IKET_MARK("a", IKET_I32(n), IKET_I32(n));', "2:29", "IKET_I32(n)", "an argument too many"),
    ('IKET_MARK("a", IKET_I32(n), );', "2:29", ")", "an argument is empty"),
    ('IKET_MARK("a", IKET_COLOR(1), IKET_I32(n));', "2:16", "IKET_COLOR(1), IKET_I32(n)", "the colour stands before"),
    ('IKET_MARK("a", IKET_COLOR(c));', "2:16", "IKET_COLOR(c)", "the colour is no literal from 0 to 0xFFFFFF"),
    ('IKET_MARK("a", IKET_COLOR());', "2:16", "IKET_COLOR()", "the colour is no literal"),
    ('IKET_MARK("a", IKET_COLOR(1, 2));', "2:16", "IKET_COLOR(1, 2)", "the colour is no literal"),
    ('IKET_MARK("a", IKET_COLOR(0x1000000));', "2:16", "IKET_COLOR(0x1000000)", "the colour is no literal"),
    ('IKET_MARK("a", IKET_COLOR(-1));', "2:16", "IKET_COLOR(-1)", "the colour is no literal"),
    ('IKET_MARK("a", IKET_COLOR(1) + 1);', "2:16", "IKET_COLOR(1) + 1", "the colour is no literal"),
    ('IKET_MARK("a", IKET_COLOR(09));', "2:16", "IKET_COLOR(09)", "the colour is no literal"),
    ('IKET_MARK("a", IKET_COLOR);', "2:16", "IKET_COLOR", "the colour is no literal"),
    ("IKET_RANGE_POP(1);", "2:16", "1", "IKET_RANGE_POP takes no argument"),
    ('IKET_RANGE_POP("a", IKET_I32(n));', "2:16", '"a"', "IKET_RANGE_POP takes no argument"),
    ("IKET_EVENT();", "2:1", "IKET_EVENT", "IKET_EVENT has no token"),
    ("IKET_EVENT(token);", "2:12", "token", "IKET_EVENT needs its token as one string literal"),
    (f'IKET_EVENT("{OUR_TOKEN[:12]}" "{OUR_TOKEN[12:]}");', "2:12", None, "IKET_EVENT needs its token as one string"),
    (f'IKET_EVENT("{TOKEN}");', "2:12", None, "the token does not start with '__iket_v1_'"),
    (f'IKET_EVENT("{OUR_TOKEN}", n);', "2:61", "n", "the call has a payload, but its token declares none"),
    (f'IKET_EVENT("{OUR_I32_TOKEN}");', "2:1", "IKET_EVENT", "the token declares a payload of type i32, but the call"),
    (f'IKET_EVENT("{OUR_I32_TOKEN}", );', "2:1", "IKET_EVENT", "the payload is empty"),
    ("TL_IKET_EVENT();", "2:1", "TL_IKET_EVENT", "TL_IKET_EVENT does not start with an event id"),
    (f'TL_IKET_EVENT("{TOKEN}");', "2:15", None, "TL_IKET_EVENT does not start with an event id"),
    ("TL_IKET_EVENT(\u00b2);", "2:15", "\u00b2", "TL_IKET_EVENT does not start with an event id"),
    ("TL_IKET_EVENT(\u0663\u0661);", "2:15", None, "TL_IKET_EVENT does not start with an event id"),
    ("TL_IKET_EVENT(30);", "2:15", "30", "the event has no token; only the pop (31) goes without"),
    (f"TL_IKET_EVENT({'1' * 5000});", "2:15", None, "the event has no token"),
    (f'TL_IKET_EVENT(1, n, "{TOKEN}");', "2:18", None, "TL_IKET_EVENT takes an id and a token"),
    (f'TL_IKET_EVENT(1, "{OUR_TOKEN}");', "2:18", None, "the token does not start with '__tl_iket_v1_'"),
    (
        f'TL_IKET_EVENT(1, "{I32_TOKEN}");',
        "2:1",
        "TL_IKET_EVENT",
        "TL_IKET_EVENT does not fit its token, whose payload",
    ),
    (f'TL_IKET_EVENT_PAYLOAD_U32(1, "{TOKEN}");', "2:1", None, "TL_IKET_EVENT_PAYLOAD_U32 takes an id, a payload and"),
    (f'TL_IKET_EVENT_PAYLOAD_U32(1, n, "{TOKEN}");', "2:1", None, "does not fit its token, whose payload is none"),
    (f'TL_IKET_EVENT_PAYLOAD_F32(1, n, "{I32_TOKEN}");', "2:1", None, "does not fit its token, whose payload is i32"),
    (f'TL_IKET_EVENT_PAYLOAD_U32(1, , "{I32_TOKEN}");', "2:1", None, "the payload is empty"),
]


@pytest.mark.parametrize(("statement", "place", "caret", "message"), BAD)
def test_what_can_not_be_understood_is_an_error_at_its_place(statement, place, caret, message):
    found = failure(kernel(statement), AnnotationError)
    where, underlined = place_and_caret(found)
    assert (where, message in found.split("\n")[0]) == (place, True)
    if caret is not None:
        assert underlined == caret
    assert "\n  fix: " in found
