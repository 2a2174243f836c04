# SPDX-License-Identifier: Apache-2.0
"""Wrapper macros: names that reach an annotation through a macro's parameter."""

from __future__ import annotations

import pytest
from texts import behind_line, failure, kernel, only_edited, place_and_caret, plan_of

from iket_rewrite import AnnotationError, rewrite


def names(text):
    return [event.name for event in plan_of(text).events]


@pytest.mark.parametrize(
    ("define", "uses", "expected"),
    [
        ("#define W(n) IKET_MARK(n)", 'W("b"); W("a"); W("b");', ["b", "a"]),
        ("#define W(n, v) IKET_MARK(n, IKET_I32(v))", 'W("a", f(1, 2)); W("b", (3, 4));', ["a", "b"]),
        ("#define W(v, n) IKET_MARK(n, IKET_I32(v))", 'W(1, "a");', ["a"]),
        ('#define W(n) IKET_MARK("x/" n "/y")', 'W("a"); W("b" "c");', ["x/a/y", "x/bc/y"]),
        ("#define W(n, m) IKET_MARK(n m n)", 'W("a", "b");', ["aba"]),
        ("#define W(v) IKET_MARK(#v, IKET_F32(v))", "W(x * 2);", ["x * 2"]),
        ('#define W(v) IKET_MARK("v=" #v)', "W(x); W( y );", ["v=x", "v=y"]),
        ("#define W(n) if (on) { IKET_MARK(n); IKET_RANGE_PUSH(n); }", 'W("a");', ["a", "a"]),
        ("#define W(n) \\\n  IKET_MARK(n)", 'W(\n"a"\n);', ["a"]),
        ("#define W(n, ...) IKET_MARK(n)", 'W("a", 1, 2);', ["a"]),
        ('#define W(n) IKET_MARK(n)\n#define V() W("a")', "V();", ["a"]),
        ("#define W(n) IKET_MARK(n)", 'W(R"x(a)b)x"); W(u8"é");', ["a)b", "é"]),
        ("#define W(n) IKET_MARK(n)", 'W("a"); // W("c")\n"W(1)"; W; int W2; /* W(x) */', ["a"]),
        ('#define W() IKET_MARK("a")', "W(); W();", ["a"]),
        ('#define W IKET_MARK("a")', "W;", ["a"]),
        ("#if X\n#define W(n) IKET_MARK(n)\n#else\n#define W(n)\n#endif", 'W("a");', ["a"]),
        ("#if 0\n#define W(n) IKET_MARK(n)\n#endif", "W(anything);", []),
        ("#define W(n) IKET_MARK(n)\n#if 0\nW(x)\n#endif", 'W("a");', ["a"]),
        ("#define W(n) IKET_MARK(n)", "", []),
        ("#define W(n) IKETR_RANGE(n)", 'W("a");', ["a"]),
    ],
)
def test_names_are_the_literals_at_the_uses(define, uses, expected):
    assert names(define + "\n" + kernel(uses)) == expected


def test_each_use_is_a_site_in_its_kernel():
    text = '#define W(n) IKET_MARK(n)\n__global__ void k() {\n  W("a"); }\n__global__ void l() {\n  W("a"); }\n'
    assert [(site.place.line, site.place.column, site.kernel) for site in plan_of(text).sites] == [
        (3, 3, "k"),
        (5, 3, "l"),
    ]


def test_the_macro_is_rewritten_once_and_its_uses_stay():
    text = '#define W(n) IKET_MARK("x/" n)\n' + kernel('W("a"); W("b");')
    result = rewrite(text).text
    assert only_edited(text, result, 'IKET_MARK("x/" n)')
    assert '"x/" n' in behind_line(result).split("\n")[0]


def test_a_wrapper_without_uses_stays_as_it_is():
    text = "#define W(n) IKET_MARK(n)\n" + kernel('IKET_MARK("a");')
    assert only_edited(text, rewrite(text).text, 'IKET_MARK("a")')


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("a+b", "a+b"),
        ("a  +\tb", "a + b"),
        ("a /* c */ + b", "a + b"),
        ("a // c\n + b", "a + b"),
        ('f("a  b")', 'f("a  b")'),
        ("f('\"',  '\\'')", "f('\"', '\\'')"),
        ('"\\n"', '"\\n"'),
        ("x < 1'000", "x < 1'000"),
        ("é", "é"),
        ("a\\\nb", "ab"),
        ('f("/* c */")', 'f("/* c */")'),
    ],
)
def test_the_operator_hash_spells_its_argument(argument, name):
    assert names("#define W(v) IKET_MARK(#v)\n" + kernel(f"W( {argument} );")) == [name]


def test_a_spelling_is_escaped_for_the_table():
    text = rewrite("#define W(v) IKET_MARK(#v)\n" + kernel('W(f("\\n"));')).text
    assert r'same("f(\"\\n\")", name)' in text


BAD = [
    (
        "#define W(n) IKET_MARK(n)",
        "W(name);",
        "3:3",
        "name",
        "the name that W passes on is no string literal",
        "spell the name as a string literal where the macro is used",
    ),
    ("#define W(n) IKET_MARK(n)", "W();", "3:1", "W()", "W is used without its argument n", "give the name"),
    (
        "#define W(v, n) IKET_MARK(n)",
        "W(1);",
        "3:1",
        "W(1)",
        "W is used without its argument n",
        "give the name as a string literal",
    ),
    ("#define W(n) IKET_MARK(n)", 'W("");', "3:1", "W", "the name is empty", "a name is any text"),
    ("#define W(n) IKET_MARK(n)", 'W("a\\0");', "3:1", "W", "the name holds a NUL", "a name is any text"),
    ("#define W(n) IKET_MARK(n)", 'W(L"a");', "3:3", 'L"', "a literal with the prefix L", "write a plain literal"),
    ("#define W(n) IKET_MARK(n)", 'W("a"', "4:1", "}", "unbalanced brackets in the call of W", "balance the brackets"),
    (
        "#define W(n) IKET_MARK(m)",
        'W("a");',
        "1:24",
        "m",
        "the event's name is no string literal",
        "built of string literals and parameters of W",
    ),
    (
        "#define W(...) IKET_MARK(__VA_ARGS__)",
        'W("a");',
        "1:26",
        "__VA_ARGS__",
        "the event's name is no string literal",
        "give W a parameter of its own for the name",
    ),
    (
        "#define W(n) IKET_MARK(n##x)",
        'W("a");',
        "1:24",
        "n##x",
        "the event's name is no string literal",
        "built of string literals",
    ),
    (
        "#define W IKET_MARK(n)",
        "W;",
        "1:21",
        "n",
        "the event's name is no string literal",
        "built of string literals and parameters of W",
    ),
]


@pytest.mark.parametrize(("define", "use", "place", "caret", "message", "remedy"), BAD)
def test_a_name_that_can_not_be_completed_is_an_error(define, use, place, caret, message, remedy):
    found = failure(define + "\n" + kernel(use), AnnotationError)
    assert place_and_caret(found) == (place, caret)
    assert message in found.split("\n")[0]
    assert f"fix: {remedy}" in found or remedy in found.split("fix: ")[1]


def test_a_name_passes_through_one_macro_only():
    found = failure("#define W(n) IKET_RANGE(n)\n#define V(m) W(m)\n" + kernel('V("a");'), AnnotationError)
    assert place_and_caret(found) == ("2:16", "m")
    assert "k.cu:1:25: the annotation that it names" in found
    assert "fix: a name can pass through one macro only: in V, call the annotation itself" in found


def test_uses_that_contradict_each_other_are_an_error_at_the_use():
    text = "#define W(n) IKET_RANGE(n)\n" + kernel('W("a");\nIKET_RANGE_START("a");')
    assert place_and_caret(failure(text))[0] == "4:1"
