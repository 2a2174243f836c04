# SPDX-License-Identifier: Apache-2.0
"""How often an unrolled loop repeats an event: what of the loop and of the constants around it is understood."""

from __future__ import annotations

import time

import pytest

import iket_rewrite

BODY = '{ IKET_MARK("a"); o[i] = 1; }'
LOOP = "for (int i = 0; i < N; ++i)"


def ids(text: str) -> list[str]:
    return [one.id for one in iket_rewrite.lint(text)]


def kernel(body: str, before: str = "", parameters: str = "int* o, int n") -> str:
    return f"{before}\n__global__ void kernel({parameters})\n{{\n{body}\n}}\n"


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 0; i < (1 << 6); i++)",
        "for (int i = 63; i >= 0; --i)",
        "for (int i{0}; i < 64; ++i)",
        "for (unsigned i = 0u; 64u > i; i += 2u)",
        "for (int i = 0; i < 64; i = i + 1)",
        "for (int i = 0, j = 1; i < 64; ++i, ++j)",
        "for (int i = 0; i != 64; ++i)",
        "// all of them\n  for (int i = 0; i < 64 /* all */; ++i)",
    ],
)
def test_a_loop_that_repeats_often_is_told_of(loop):
    assert ids(kernel(f"#pragma unroll  // all\n{loop} {BODY}")) == ["unrolled-event"]


@pytest.mark.parametrize(
    "loop",
    [
        "for (int i = 64; i > 0; i >>= 1)",
        "for (int i = 1; i < 1024; i *= 2)",
        "for (int i = 0; i < 31; ++i)",
        "for (int i = 0; i < 64; i += 0)",
        "for (int i = 0; i < n; ++i)",
        "for (; n < 64; ++n)",
        "for (int i = 0; i < 64 && o[i]; ++i)",
        "while (n--)",
    ],
)
def test_a_loop_that_does_not_or_of_which_that_is_not_known_is_not(loop):
    assert ids(kernel(f"int i = 0;\n#pragma unroll\n{loop} {BODY}")) == []


@pytest.mark.parametrize(
    "constant",
    [
        "constexpr int N{64};",
        "constexpr int N = 64;",
        "const int N = 64;",
        "static constexpr unsigned N = 2 * 32u;",
        "enum { M = 1, N = 64 };",
        "enum Sizes : int { N = 64, Many = 65 };",
        "#define N (4 * 16)  // rows\n",
        "#define M 4\n#define N M * 16\n",
    ],
)
def test_a_constant_is_seen_wherever_it_is_defined(constant):
    assert ids(kernel(f"#pragma unroll\n{LOOP} {BODY}", before=constant)) == ["unrolled-event"]
    if not constant.startswith("#"):
        assert ids(kernel(f"{constant}\n#pragma unroll\n{LOOP} {BODY}")) == ["unrolled-event"]
        qualified = LOOP.replace("N", "Shape::N")
        assert ids(kernel(f"#pragma unroll\n{qualified} {BODY}", f"struct Shape {{ {constant} }};")) == [
            "unrolled-event"
        ]


def test_a_constant_is_that_of_the_block_around():
    texts = [
        kernel(f"constexpr int N = {n};\n#pragma unroll\n{LOOP} {BODY.replace('a', name, 1)}").replace("kernel", name)
        for n, name in ((64, "a"), (4, "b"))
    ]
    assert ids("".join(texts)) == ids("".join(reversed(texts))) == ["unrolled-event"]


@pytest.mark.parametrize(
    "text",
    [
        kernel(f"#pragma unroll\n{LOOP} {BODY}", "constexpr int N = 64;\ntemplate <int N>"),
        kernel(f"#pragma unroll\n{LOOP} {BODY}", "constexpr int N = 64;", "int* o, int N"),
        kernel(f"auto f = [&](int N) {{\n#pragma unroll\n{LOOP} {BODY}\n}}; f(3);", "constexpr int N = 64;"),
        kernel(
            f"#pragma unroll\n{LOOP.replace('N', 'P::N')} {BODY}",
            "struct A { enum { N = 64 }; }; struct B { enum { N = 2 }; };",
        ),
    ],
    ids=["template", "parameter", "lambda", "several classes"],
)
def test_a_parameter_is_not_the_constant_of_its_name(text):
    assert ids(text) == []


@pytest.mark.parametrize(
    ("pragma", "expected"),
    [
        ('_Pragma("unroll")', True),
        ('_Pragma("unroll 4")', False),
        ("UNROLL", True),
        ("UNROLL_2", False),
        ("CUTLASS_PRAGMA_UNROLL", True),
        ("CUTLASS_PRAGMA_NO_UNROLL", False),
        ("#pragma unroll 64\n", True),
        ("#pragma unroll K\n", True),
        ("#pragma unroll(64)\n", True),
        ("#pragma unroll 1\n", False),
        ("#pragma unroll n\n", False),
    ],
)
def test_every_way_to_unroll_is_known(pragma, expected):
    before = '#define UNROLL _Pragma("unroll")\n#define UNROLL_2 _Pragma("unroll 2")\nconstexpr int K = 32;'
    assert ids(kernel(f"{pragma} for (int i = 0; i < 64; ++i) {BODY}", before)) == ["unrolled-event"] * expected


@pytest.mark.filterwarnings("error")
def test_a_number_that_letters_follow_is_not_read():
    assert ids(kernel(f"#pragma unroll\n{LOOP} {BODY}", "#define N 64if x\n")) == []
    assert ids(kernel(f"#pragma unroll\n{LOOP} {BODY}", "#define N 1'024u\n")) == ["unrolled-event"]


def test_a_count_that_is_asked_for_holds_where_the_end_is_not_known():
    assert ids(kernel(f"#pragma unroll 64\nfor (int i = 0; i < n; ++i) {BODY}")) == ["unrolled-event"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("i == 0", False),
        ("i % 32 == 0", False),
        ("i % 8 == 0 && n", False),
        ("i > 0", True),
        ("o[i]", True),
        ("i == n", True),
        ("!(i % 32)", False),
    ],
)
def test_a_condition_on_the_loop_s_variable_counts(condition, expected):
    body = f'#pragma unroll\nfor (int i = 0; i < 64; ++i) {{ if ({condition}) {{ IKET_MARK("a"); }} o[i] = 1; }}'
    assert ids(kernel(body)) == ["unrolled-event"] * expected


def test_a_lambda_is_repeated_with_the_loop_that_it_stands_in():
    assert ids(kernel(f"#pragma unroll\nfor (int i = 0; i < 64; ++i) {{ [&] {BODY}(); }}")) == ["unrolled-event"]


def test_many_loops_take_no_longer_than_their_number():
    body = f"#pragma unroll\n{LOOP} {BODY}\n" + "{ o[0] = 1; }" * 100
    text = "constexpr int N = 64;\n" + "".join(kernel(body).replace("kernel", f"k{i}") for i in range(300))
    before = time.monotonic()
    assert len(ids(text)) == 300
    assert time.monotonic() - before < 20
