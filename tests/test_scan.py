# SPDX-License-Identifier: Apache-2.0
"""The scan: which names are calls, and what surrounds each of them."""

from __future__ import annotations

import pytest

from iket_rewrite import AnnotationError
from iket_rewrite.rewriting import scan as scanning
from iket_rewrite.rewriting.scan import defines, find_uses, holds_metadata, scan
from iket_rewrite.source import Source

CALLEES = ("MARK", "MARK_MORE", "XMARK_OTHER")


def calls(text):
    return scan(Source(text), CALLEES).calls


def kernels(text):
    return [call.kernel.name if call.kernel else None for call in calls(text)]


@pytest.mark.parametrize(
    "text",
    [
        "MARK(a)",
        "x;MARK(a);",
        "MARK\n(a)",
        "MARK /* c */ (a)",
        "M\\\nARK(a)",
        "{MARK(a)}",
        "}MARK(a)",
        '"x" MARK(a)',
        "1'000; MARK(a)",
        "c = 'x'; MARK(a)",
        "#if X\nMARK(a)\n#endif",
        "#if 1\nMARK(a)\n#endif",
        "#if 0\n#else\nMARK(a)\n#endif",
        "#if 0\n#elif X\nMARK(a)\n#endif",
        "#if 0\n#if 1\n#else\n#endif\n#endif\nMARK(a)",
        "#ifdef MARK\nMARK(a)\n#endif",
        "#define M MARK(a)",
        "#define M \\\n  MARK(a)",
        "#define M /* c\n */ MARK(a)",
        "#  define M(a) MARK(a)",
        "/* a */ # /* b */ define /* c */ M MARK(a)",
        "\f#\vdefine M MARK(a)",
        "// c ??/\nMARK(a)",
        "// c\rMARK(a)",
        "#pragma unroll\nMARK(a)",
        "#pragma x\rMARK(a)",
        '#include "x"\nMARK(a)',
        "#error don't /* stop\nMARK(a)",
        "a # b\nMARK(a)",
        "a #if 0\nMARK(a)",
        "std::MARK(a)",
        "\0MARK(a)\0",
    ],
)
def test_a_call_in_code_is_found(text):
    assert [call.callee for call in calls(text)] == ["MARK"]


@pytest.mark.parametrize(
    "text",
    [
        "// MARK(a)",
        "// c \\\nMARK(a)",
        "/* MARK(a) */",
        "/* \n * MARK(a)\n */",
        "/* MARK(a)",
        '"MARK(a)"',
        '"\\"MARK(a)"',
        'R"(" MARK(a) ")"',
        'u8R"x()"MARK(a))x"',
        'R"(MARK(a)',
        "'MARK(a)'",
        "XMARK(a)",
        "MARKS(a)",
        "MARK_(a)",
        "MARK1(a)",
        "$MARK(a)",
        "éMARK(a)",
        "MARKé(a)",
        "#include <MARK(a)>",
        '#include "MARK(a)"',
        "#include MARK(a)",
        "#include <x> /* c\n MARK(a) */",
        "#error MARK(a)",
        "#pragma MARK(a)",
        "#ifdef MARK",
        "#if defined(MARK)",
        "#if X /* c\n MARK(a) */\n#endif",
        "#undef MARK",
        "#define MARK(a)",
        "#define MARK",
        "#define MARK_MORE(...) MARK(__VA_ARGS__)",
        "#define M(MARK) x",
        "#if 0\nMARK(a)\n#endif",
        "#if false\nMARK(a)\n#endif",
        "# if (0) // c\nMARK(a)\n#else\n#endif",
        "#if 0 /* c\n*/\nMARK(a)\n#endif",
        "#if 0\nMARK",
        "#if 0\nMARK(a",
        "#if 0\n#if 1\nMARK(a)\n#else\nMARK(a)\n#endif\n#endif",
        "#if 0\n/*\n#endif\n*/\nMARK(a)\n#endif",
        '#if 0\nR"(\n#endif\n)"\nMARK(a)\n#endif',
        "#if 0\n x #endif\nMARK(a)\n#endif",
        "#if 0\n don't /* say\n#endif",
        "#if X\ndon't MARK(a)\n#endif",
    ],
)
def test_a_name_in_text_that_holds_no_code_is_no_call(text):
    assert calls(text) == []


def test_the_longest_name_counts_once():
    assert [call.callee for call in calls("MARK_MORE(a) MARK(b) XMARK_OTHER(c) XMARK(d)")] == [
        "MARK_MORE",
        "MARK",
        "XMARK_OTHER",
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("__global__ void k() { MARK(a); }", "k"),
        ('extern "C" __global__ void k(int a, int b) {{ MARK(a); }}', "k"),
        ("__global__ void __launch_bounds__(128, 2) k(int a) { MARK(a); }", "k"),
        ("__global__ __launch_bounds__(128) __cluster_dims__(2, 1) void k() { MARK(a); }", "k"),
        ("void __global__ k() { MARK(a); }", "k"),
        ("__global__ void __attribute__((maxnreg(32))) k() { MARK(a); }", "k"),
        ("__global__ void OUR_BOUNDS(128, 2) k(int a) { MARK(a); }", "k"),
        ("template <typename T, int N = (3 > 2)>\n__global__ void k(T const* x) { MARK(a); }", "k"),
        ("template <> __global__ void k<int, f<4>(2)>(int x) { MARK(a); }", "k"),
        ("__global__ std::enable_if_t<(a > b), void> k(int x) { MARK(a); }", "k"),
        ("[[nodiscard]] __global__ void k(int x) { MARK(a); }", "k"),
        ("__global__ void k(int x) noexcept { MARK(a); }", "k"),
        ("__global__ void k(int x) noexcept(true) { MARK(a); }", "k"),
        ("__global__ void k(int x) requires A<int> && (B) { MARK(a); }", "k"),
        ("__global__ auto k(int x) -> void { MARK(a); }", "k"),
        ("__global__ void k(int x /* ) */, char c = ')') // {\n{ MARK(a); }", "k"),
        ("__global__ void k(int x,\n#ifdef X\nint y,\n#endif\nint z) { MARK(a); }", "k"),
        ("__global__ void k();\n__global__ void l() { MARK(a); }", "l"),
        ("__global__ void k() { if (x) { for (;;) { MARK(a); } } }", "k"),
        ("__global__ void k() { auto f = [&] { MARK(a); }; }", "k"),
        ("__global__ void k() {} void f() { MARK(a); }", None),
        ("__global__ void k(); void f() { MARK(a); }", None),
        ("__device__ void f() { MARK(a); }", None),
        ("#define KERNEL __global__ void\nvoid f() { MARK(a); }", None),
        ("__global__ void NAME(k)(int x) { MARK(a); }", None),
        ("__global__ void k(", None),
        ("// __global__ void k() {\n{ MARK(a); }", None),
        ("MARK(a);", None),
    ],
)
def test_the_enclosing_kernel_is_told(text, name):
    assert kernels(text if "MARK" in text else text + ") MARK(a)") == [name]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("MARK(a)", 0),
        ("{ { MARK(a) } }", 2),
        ("{ { } MARK(a) }", 1),
        ("} { MARK(a)", 1),
        ("{ '{' \"{\" /* { */ // {\n MARK(a) }", 1),
        ("#define M {\n{ MARK(a)", 1),
        ("#ifdef X\nif (x) {\n#else\nif (y) {\n#endif\nMARK(a)\n}", 1),
        ("{\n#ifdef X\n{\n#else\nMARK(a)\n#endif\n}", 1),
        ("{\n#if A\n{\n#elif B\n{{\n#else\n#endif\nMARK(a)", 1),
        ("{\n#if 0\n}}}\n#endif\nMARK(a)", 1),
        ("{\n#if 0\n}}}\n#else\n{\n#endif\nMARK(a)", 2),
        ("#endif\n{ MARK(a)", 1),
    ],
)
def test_open_blocks_are_those_of_one_branch(text, blocks):
    assert len(calls(text)[0].blocks) == blocks


def test_a_kernel_ends_at_its_brace():
    text = "__global__ void k() { if (x) { y; } } void f() { }"
    assert scan(Source(text), CALLEES).kernel_ends == {text.index("{"): text.index("} void")}


@pytest.mark.parametrize(
    ("text", "name", "parameters"),
    [
        ("#define M MARK(a)", "M", None),
        ("#define M() MARK(a)", "M", ()),
        ("#define M(a, b) MARK(a)", "M", ("a", "b")),
        ("#define M(a /* c */, ...) MARK(a)", "M", ("a", "...")),
        ("#define M (a) MARK(a)", "M", None),
        ("#define M(a) \\\r\n  { MARK(a); }", "M", ("a",)),
        ("\ufeff#define M MARK(a)", "M", None),
        ("/* c\n */ #define M MARK(a)", "M", None),
    ],
)
def test_a_call_in_a_define_knows_its_macro(text, name, parameters):
    (call,) = calls(text)
    assert (call.macro.name, call.macro.parameters) == (name, parameters)


def test_a_macro_ends_with_its_line():
    assert [call.macro and call.macro.name for call in calls("#define M x\nMARK(a)\n#define N MARK(b)\nMARK(c)")] == [
        None,
        "N",
        None,
    ]


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("f = MARK;", 5, "MARK is named here but not called"),
        ("#define M MARK", 11, "MARK is named here but not called"),
        ("#define M MARK\n(a)", 11, "MARK is named here but not called"),
        ("x MARK(a", 3, "the call of MARK is not closed"),
        ("#define M MARK(a\n)", 11, "the call of MARK is not closed"),
        ("MARK(a, MARK_MORE(b))", 9, "MARK_MORE stands inside the call of MARK"),
        ("MARK(a, [&]{ MARK(b); })", 14, "MARK stands inside the call of MARK"),
        ("MARK(a, (b]", 11, "unbalanced brackets in the call of MARK"),
        ("MARK(a,\n#if X\nb)", 1, "a preprocessor directive stands inside the call of MARK"),
        ("MARK(a,\n/* c */ #if X\nb)", 9, "a preprocessor directive stands inside the call of MARK"),
        ("MARK(a,\n/**//*\n*/ #if X\nb)", 4, "a preprocessor directive stands inside the call of MARK"),
        ("MARK(a, /* b", 9, "the comment is not closed"),
        ("#define M MARK(a /* b\n*/)", 18, "a comment in a macro's annotation goes on behind its line"),
    ],
)
def test_a_name_that_is_no_whole_call_is_an_error(text, column, message):
    with pytest.raises(AnnotationError) as caught:
        calls(text)
    assert caught.value.message.startswith(message)
    assert caught.value.place.column == column
    assert caught.value.remedy


def test_a_name_that_the_pass_lost_is_an_error(monkeypatch):
    monkeypatch.setattr(scanning._Scanner, "_mention", lambda *_: None)
    with pytest.raises(AnnotationError, match=r"could not be told from text that holds no code \(2 names, 1 calls"):
        calls("MARK(a); // MARK(b)")


def test_uses_of_a_macro_are_its_calls_only():
    text = "#define M(a) x\nM(1); M; // M(2)\n#define N M(3)\nvoid M2(); f(M(4), M(5));"
    scanned = find_uses(Source(text), ["M"])
    found = scanned.calls
    assert [text[call.start : call.end] for call in found] == ["M(1)", "M(3)", "M(4)", "M(5)"]
    assert [call.macro and call.macro.name for call in found] == [None, "N", None, None]
    assert [text[slice(*span)] for span in scanned.uncalled] == ["M"]


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        ("#define X", True),
        ("#define X 1", True),
        ("#if Y\n# define X\n#endif", True),
        ("#define XY", False),
        ("#define Y X", False),
        ("// #define X", False),
        ("/*\n#define X\n*/", False),
        ('R"(\n#define X\n)"', False),
        ("#if 0\n#define X\n#endif", False),
        ("#ifdef X\n#endif", False),
    ],
)
def test_a_macro_is_defined_by_a_directive_only(text, defined):
    assert defines(Source(text), "X") is defined


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("unsigned char __iket_meta_info[48] = {48};", True),
        ("// __iket_meta_info", False),
        ('"__iket_meta_info"', False),
        ("my__iket_meta_info = 1;", False),
        ("__iket_meta_info2 = 1;", False),
        ("__iket_meta_inf\\\no[1] = {1};", True),
    ],
)
def test_metadata_is_held_by_code_only(text, held):
    assert holds_metadata(Source(text)) is held
