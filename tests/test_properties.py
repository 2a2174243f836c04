# SPDX-License-Identifier: Apache-2.0
"""Properties of the rewriter over generated input.

The generator of C++-like text is the independent reader: it puts every annotation into the text itself, so it knows
which of them stand in code without looking for them.  Profiles: `ci` (small, the same every time) and `slow`
(HYPOTHESIS_PROFILE=slow).
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from texts import behind_line
from token_texts import tilelang_token
from toolbox import FIXTURES

from iket_rewrite import EventToken, IketError, MetadataError, abi, decode_event, encode_event, rewrite, strip
from iket_rewrite.abi import Method
from iket_rewrite.rewriting.payloads import Effects, judge
from iket_rewrite.rewriting.readback import read_events
from iket_rewrite.source import Edit, Source, splice

_LENIENT = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("ci", max_examples=60, derandomize=True, database=None, **_LENIENT)
settings.register_profile("slow", max_examples=5000, **_LENIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# --- Text that knows its annotations --------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Some text; with an event where it is an annotation in code."""

    text: str
    event: tuple[str, str] | None = None
    is_annotation: bool = False
    splices: bool = True


def code(*texts):
    return st.sampled_from([(Piece(text),) for text in texts])


#: (kind, name, how it is written); the payload goes with the name.
ANNOTATIONS = [
    ("mark", "m", 'IKET_MARK("m")'),
    ("mark", "m", 'IKETR_MARK ( "m" )'),
    ("mark", "m", f'TL_IKET_EVENT(1, "{tilelang_token("m", "mark", None)}")'),
    ("mark", "p", 'IKET_MARK("p", IKET_I32(f(a, "x)", \')\')))'),
    ("mark", "p", 'IKET_MARK("p" /* ( */, // )\n 3)'),
    ("mark", 'q " // \\', 'IKET_MARK("q \\" // \\\\")'),
    ("range", "r", 'IKET_RANGE_PUSH("r", IKET_U64(f<1, 2>([] { }, n)[3]))'),
    ("range", "s", 'IKET_RANGE_PUSH("s", IKET_COLOR(0xFF))'),
    ("range", "s", f'IKET_EVENT("{encode_event("range_push", "s", color=0xFF)}")'),
    ("token_range", "t", 'IKET_RANGE_START("t")'),
    ("token_range", "t", 'IKETR_RANGE_END(\n"t"\n)'),
    (None, None, "IKET_RANGE_POP()"),
    (None, None, "TL_IKET_EVENT(31)"),
]
annotations = st.sampled_from(
    [(Piece(text, (kind, name) if kind else None, True), Piece(";")) for kind, name, text in ANNOTATIONS]
    + [(Piece('IKET_MARK(R"x(\nq)" " // \n)x")', ("mark", '\nq)" " // \n'), True, splices=False), Piece(";"))]
)
fillers = code(
    "int a = 1'000'000 + 0x1'F;",
    "f(\"text\", 'c', '\\'', \"\\\"\");",
    "x = a / b; y = a /= c;",
    "MY_IKET_MARK(1); IKET_MARKER(2); IKET_API; xIKET_MARK;",
    "\n",
    "\t \f",
    'é = "é";',
    '\n#include <IKET_MARK("no")>\n',
    '\n#pragma unroll IKET_MARK("no")\n',
    '\n#error don\'t IKET_MARK("no")\n',
    "\n # define FOO(x) x ## 1\n",
    "\n#undef IKET_MARK\n",
    "u8'x'; L'\"'; 1'0;",
)
mentions = st.sampled_from(
    [
        'IKET_MARK("no")',
        "IKET_MARK(",
        "TL_IKET_EVENT",
        "IKET_RANGE_POP())",
        "don't \"",
        "'\"",
        "\\",
        "{ }",
        "#",
        "/*",
        "x",
    ]
)
prose = st.lists(mentions, max_size=4).map(" ".join)


@st.composite
def silent(draw):
    """Draw text in which no annotation counts."""
    text = draw(prose)
    form = draw(st.sampled_from(["block", "line", "string", "raw", "dead", "dead else"]))
    if form == "block":
        return (Piece(f"/* {text.replace('*/', '')}\n {text} */"),)
    if form == "line":
        return (Piece(f"// {text}."), Piece("\n"))
    if form == "string":
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return (Piece(f'f("{escaped}");'),)
    if form == "raw":
        return (Piece(f'f({draw(st.sampled_from(["R", "u8R", "LR"]))}"x({text}\n)" {text})x");', splices=False),)
    # In what is not compiled a comment must still end, and a quote without a partner ends with its line.
    dead = text.replace("/*", "").replace("#", "") + "."
    if form == "dead":
        return (Piece(f"\n#if 0\n{dead}\n#if X\n{dead}\n#else\n{dead}\n#endif\n/*\n#endif\n*/\n{dead}\n#endif\n"),)
    return (Piece(f"\n# if 0 // c\n{dead}\n#else\n"), *draw(annotations), Piece("\n#endif\n"))


def nested(inner):
    blocks = inner.map(lambda pieces: (Piece("{ "), *pieces, Piece(" }")))
    branches = st.tuples(inner, inner).map(
        lambda both: (
            Piece("\n#ifdef X\nif (x) {\n"),
            *both[0],
            Piece("\n#else\n{\n"),
            *both[1],
            Piece("\n#endif\n}\n"),
        )
    )
    kernels = inner.map(lambda pieces: (Piece("\n__global__ void k(int n) {\n"), *pieces, Piece("\n}\n")))
    macros = annotations.map(lambda pieces: (Piece("\n#define M(x) { '{'; "), *single_line(pieces), Piece(" }\n")))
    several = st.lists(inner, min_size=1, max_size=4).map(
        lambda groups: tuple(piece for group in groups for piece in group)
    )
    return st.one_of(blocks, branches, kernels, macros, several)


def single_line(pieces):
    """Return the pieces for the body of a macro, which ends with its line."""
    return tuple(Piece("", None) if "\n" in piece.text else piece for piece in pieces)


texts = st.recursive(st.one_of(annotations, fillers, silent()), nested, max_leaves=20)


@st.composite
def spliced(draw, pieces):
    """Draw the text of pieces with line splices anywhere but in raw strings, where they would stay."""
    out = []
    for piece in pieces:
        text = piece.text
        if piece.splices and text and draw(st.integers(0, 3)) == 0:
            at = draw(st.integers(0, len(text) - 1))
            text = text[:at] + draw(st.sampled_from(["\\\n", "\\ \t\n", "\\\n\\\n"])) + text[at:]
        out.append(text)
    return out


def events_of(pieces):
    return list(dict.fromkeys(piece.event for piece in pieces if piece.event))


@given(st.data(), texts, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.booleans())
def test_annotations_in_code_count_and_no_others(data, pieces, newline, as_bytes, with_mark):
    parts = data.draw(spliced(pieces))
    text = ("\ufeff" if with_mark else "") + "".join(parts).replace("\n", newline)
    result = rewrite(text.encode() if as_bytes else text)
    plan = result.plan
    wanted = [(kind, name) for kind, name in events_of(pieces)]
    assert [(event.kind.value, event.name) for event in plan.events] == wanted
    assert len(plan.sites) == sum(piece.is_annotation for piece in pieces)
    assert result.changed is any(piece.is_annotation for piece in pieces)
    if result.changed:
        behind = definitions_cut(result.text)
        assert len(lines(behind)) == len(lines(text))
        check_outside(pieces, parts, Source(behind).logical, newline)
    else:
        assert result.text == (text.encode() if as_bytes else text)
    stripped = strip(text).text
    assert rewrite(stripped).plan.sites == ()
    assert len(lines(stripped)) == len(lines(text))


def definitions_cut(text):
    text = text if isinstance(text, str) else text.decode()
    return re.split(r"(?:^|[\r\n])#line 1(?:\r\n|\n|\r)", text, maxsplit=1)[1]


def check_outside(pieces, parts, behind, newline):
    """Check that all text between the annotations is there, and that these keep their line breaks."""
    position = 0
    for piece, part in zip(pieces, parts, strict=True):
        logical = Source(part.replace("\n", newline)).logical
        if piece.is_annotation:
            end = behind.index(";", position)
            assert behind.startswith("IKET_EMIT", position)
            assert behind.count("\n", position, end) == logical.count("\n")
            position = end
        else:
            assert behind.startswith(logical, position)
            position += len(logical)
    assert position == len(behind)


@given(st.lists(st.one_of(fillers, silent()), max_size=8))
def test_text_without_annotations_is_returned_as_it_is(groups):
    pieces = [piece for group in groups for piece in group if not piece.is_annotation]
    text = "".join(piece.text for piece in pieces)
    assert rewrite(text).text is text
    data = text.encode()
    assert rewrite(data).text is data


@given(st.text() | st.binary())
def test_any_text_without_the_letters_of_a_callee_is_returned_as_it_is(source):
    assume((b"IKET" if isinstance(source, bytes) else "IKET") not in source)
    result = rewrite(source)
    assert (result.text, result.changed) == (source, False)


# --- Ids ------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.sampled_from(["MARK", "RANGE_PUSH"]), st.integers(0, 99)), min_size=1, max_size=200))
def test_ids_are_dense_and_in_range(uses):
    text = "".join(f'IKET_{kind}("n{number}");\n' for kind, number in uses)
    plan = rewrite(text).plan
    distinct = list(dict.fromkeys(uses))
    assert plan.method is (Method.NATIVE if len(distinct) <= 30 else Method.EXTENDED)
    first = 1 if len(distinct) <= 30 else 64
    assert [event.id for event in plan.events] == list(range(first, first + len(distinct)))
    assert [event.name for event in plan.events] == [f"n{number}" for _, number in distinct]
    assert [site.event.id for site in plan.sites] == [first + distinct.index(use) for use in uses]
    assert rewrite(text) == rewrite(text)


# --- Tokens ---------------------------------------------------------------------------------------------------

names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60)
positions = st.one_of(
    st.just({}),
    st.fixed_dictionaries(
        {"file": names, "line": st.integers(1, 2**31 - 1)}, optional={"column": st.integers(1, 2**31 - 1)}
    ),
)
events = st.fixed_dictionaries(
    {"kind": st.sampled_from(["mark", "range_push", "range_start", "range_end"]), "name": names},
    optional={"payload": st.sampled_from(sorted(abi.PAYLOADS)), "color": st.integers(0, 0xFFFFFF)},
)


@given(events, positions)
def test_encoding_and_decoding_are_inverses(event, position):
    token = encode_event(**event, **position)
    assert decode_event(token) == EventToken(**event, **position)
    assert re.fullmatch(r"__iket_v1_[A-Za-z0-9_-]+", token)


@given(st.text(max_size=20) | st.binary(max_size=30).map(lambda data: data.decode("latin-1")))
def test_no_other_text_decodes(body):
    for text in (body, "__iket_v1_" + body):
        with pytest.raises(IketError):
            decode_event(text)


# --- Names ----------------------------------------------------------------------------------------------------


@st.composite
def literals(draw, name):
    """Draw one of the many ways to spell a name as string literals."""
    pieces, rest = [], name
    while rest or not pieces:
        size = draw(st.integers(1, max(1, len(rest))))
        part, rest = rest[:size], rest[size:]
        form = draw(st.sampled_from(["plain", "u8", "hex", "universal", "raw"]))
        if form == "raw" and "\r" not in part and ')x"' not in part + ')x"'[:-1]:
            pieces.append(f'R"x({part})x"')
        elif form == "hex":
            pieces.append(
                '"' + "".join(f"\\x{byte:02x}" if byte > 32 else f"\\{byte:03o}" for byte in part.encode()) + '"'
            )
        elif form == "universal":
            pieces.append('"' + "".join(f"\\U{ord(char):08x}" for char in part) + '"')
        else:
            escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"}
            pieces.append(
                ("u8" if form == "u8" else "") + '"' + "".join(escapes.get(char, char) for char in part) + '"'
            )
    return draw(st.sampled_from([" ", "\n", ' /* " */ '])).join(pieces)


@given(st.data(), names)
def test_a_name_is_read_however_it_is_spelled(data, name):
    spelled = data.draw(literals(name))
    (event,) = rewrite(f"IKET_MARK({spelled});").plan.events
    assert event.name == name


# --- Payloads -------------------------------------------------------------------------------------------------

leaves = st.sampled_from(
    [
        ("1", 0),
        ("2.5f", 0),
        ("'c'", 0),
        ("n", 1),
        ("blockIdx.x", 1),
        ("threadIdx.x", 2),
        ("i", 2),
        ("p[n]", 2),
        ("f(n)", 3),
        ("i++", 4),
    ]
)
expressions = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "<", "==", "&&", "<<"]), inner).map(
            lambda t: (f"({t[0][0]} {t[1]} {t[2][0]})", max(t[0][1], t[2][1]))
        ),
        inner.map(lambda t: (f"(-{t[0]})", t[1])),
        inner.map(lambda t: (f"((unsigned)({t[0]}))", t[1])),
        inner.map(lambda t: (f"static_cast<long long>({t[0]})", t[1])),
        st.tuples(inner, inner).map(lambda t: (f"min({t[0][0]}, {t[1][0]})", max(t[0][1], t[1][1]))),
    ),
    max_leaves=8,
)


@given(expressions)
def test_a_payload_is_judged_by_its_worst_leaf(expression):
    text, worst = expression
    verdict = judge(text, lambda name: name == "n")
    assert verdict.constant is (worst == 0)
    assert verdict.uniform is (worst <= 1)
    assert (verdict.effects is Effects.NONE) is (worst <= 2)
    assert (verdict.effects is Effects.CERTAIN) is (worst == 4)


# --- Nothing but our errors -----------------------------------------------------------------------------------

FRAGMENTS = [
    *(
        "IKET_MARK",
        "IKET_RANGE",
        "IKETR_RANGE_PUSH",
        "IKET_EVENT",
        "TL_IKET_EVENT",
        "TL_IKET_EVENT_PAYLOAD_U32",
        "IKET_I32",
    ),
    *("IKET_COLOR", "IKETR_ONLY", "__global__ void k", "__iket_meta_info", "unsigned char __iket_meta_info[3] = {1}"),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        ",",
        ";",
        "=",
        "&",
        "*",
        "+",
        "-",
        ".",
        ":",
        "?",
        "!",
        "~",
        "|",
        "^",
        "%",
    ),
    *(
        '"',
        "'",
        'R"',
        'R"(',
        ')"',
        "u8",
        "L",
        "\\",
        "\\\n",
        "\\x",
        "\\u00e9",
        "\\400",
        "//",
        "/*",
        "*/",
        "#",
        "##",
        "??/",
    ),
    *("#if 0", "#if", "#else", "#elif", "#endif", "#define M(n) ", "#define W ", "#include ", "#line 3", "switch (n)"),
    *(
        "case 0:",
        "default:",
        "constexpr int f()",
        "n",
        "M(",
        "W(",
        "a",
        "31",
        "1",
        "0x",
        "1'0",
        "1.5f",
        "²",
        "9" * 30,
        "e30",
    ),
    *(" ", "\n", "\r\n", "\r", "\t", "\f", "\0", "\ufeff", "é", "\ud800", "\udcff", "中", "\u2028", "\u00a0", "\x85"),
    *('"a"', '"', '("a")', '("a", IKET_I32(n))', '("a", 1);', f'"{encode_event("mark", "a")}"', '"__iket_v1_"'),
    *(f'"{tilelang_token("a", "mark", "i32")}"', "int x = n;", "++", "n++", "static_cast<", "auto& r = "),
]
soup = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=40).map("".join)


def survive(source, **options):
    """Rewrite, strip and read back; anything that is not ours to raise comes out."""
    for work in (rewrite, strip):
        try:
            result = work(source, **(options if work is rewrite else {}))
        except IketError as error:
            str(error)
            continue
        assert type(result.text) is type(source)
        assert result.changed is (result.text != source)
    with contextlib.suppress(MetadataError):
        read_events(Source(source, "k.cu"))


@given(soup, st.sampled_from([None, True, False]))
def test_nothing_but_our_errors_leaves_the_core_on_any_text(text, runtime_payloads):
    survive(text, runtime_payloads=runtime_payloads)


@given(
    st.lists(
        st.sampled_from(FRAGMENTS).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=3)
    ).map(b"".join)
)
def test_nothing_but_our_errors_leaves_the_core_on_any_bytes(data):
    survive(data)


SEEDS = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*/*.cu"))]


@st.composite
def mutants(draw):
    """Draw a fixture with pieces of it cut out, doubled, swapped for fragments."""
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        text = (
            text[:start]
            + draw(st.sampled_from(["", text[start:end] * 2, draw(st.sampled_from(FRAGMENTS))]))
            + text[end:]
        )
    return text


@given(mutants())
def test_nothing_but_our_errors_leaves_the_core_on_a_mutated_fixture(text):
    survive(text, runtime_payloads=True)


@given(mutants())
def test_a_mutated_fixture_keeps_its_lines(text):
    try:
        result = rewrite(text)
    except IketError:
        return
    if result.changed:
        assert len(lines(behind_line(result.text))) == len(lines(text))


def lines(text):
    return re.split(r"\r\n|\n|\r", text)


# --- Edits ----------------------------------------------------------------------------------------------------


@given(
    st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5), st.text(max_size=3)), max_size=5)
)
def test_edits_do_what_slices_do(text, raw):
    edits, free = [], 0
    for start, size, new in sorted(raw):
        if free <= start <= len(text):
            free = min(len(text), start + size)
            edits.append(Edit(start, free, new))
            free = max(free, start + 1)
    model = text
    for edit in reversed(edits):
        model = model[: edit.start] + edit.text + model[edit.end :]
    assert splice(text, edits) == model


@given(st.text("ab\\ \t\r\n", max_size=30))
def test_physical_and_logical_offsets_are_inverses(text):
    source = Source(text)
    assert all(source.to_logical(source.physical(offset)) == offset for offset in range(len(source.logical)))
    rebuilt = "".join(text[source.physical(offset)] for offset in range(len(source.logical)))
    assert re.sub(r"\r(?!\n)", "\n", rebuilt) == source.logical
