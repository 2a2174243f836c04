# SPDX-License-Identifier: Apache-2.0
"""The rewriter as a whole: what it leaves alone, and what it promises of what it changes."""

from __future__ import annotations

import pytest
from texts import ANNOTATED, behind_line, kernel, only_edited
from token_texts import tilelang_token
from toolbox import FIXTURES

from iket_rewrite import OptionError, Rewrite, TargetError, rewrite, strip

SOURCES = sorted(path for path in FIXTURES.glob("*/*.cu"))
NO_ANNOTATIONS = [
    "",
    "\n",
    "int a;",
    "int a;\r\nint b;\r\n",
    "a\rb\r",
    "\ufeffint a;\n",
    "int a; \\\n int b;",
    "\0\f\v\x1a",
    '// IKET_MARK("a");\n',
    '"IKET_MARK(x)" R"(TL_IKET_EVENT(1))" \'IKET_RANGE\'',
    "#if 0\nIKET_MARK(x\n#endif\n",
    "MY_IKET_MARK(1); IKET_MARKER(2); IKET_API void f();",
    'int x = "unclosed\n',
    "é\ud800\udcff",
]


def data_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("text", NO_ANNOTATIONS, ids=ascii)
def test_text_without_annotations_comes_back_as_it_is(text):
    result = rewrite(text)
    assert (result.text, result.changed, result.plan.events, result.warnings) == (text, False, (), ())
    assert rewrite(data_of(text)).text == data_of(text)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00I", b"\xe9 // IKET_\n", b"\xef\xbb\xbfint a;\r\n", bytes(range(256))])
def test_bytes_without_annotations_come_back_as_they_are(data):
    assert rewrite(data).text == data


def test_text_gives_text_and_bytes_give_bytes():
    text = rewrite(ANNOTATED).text
    data = rewrite(ANNOTATED.encode()).text
    assert type(text) is str
    assert type(data) is bytes
    assert data == text.encode()
    assert type(strip(ANNOTATED.encode()).text) is bytes


@pytest.mark.parametrize("source", [None, 3, bytearray(b"a"), ["a"]])
def test_anything_else_is_refused(source):
    with pytest.raises(OptionError, match="not str or bytes"):
        rewrite(source)


@pytest.mark.parametrize("path", ["k.cu", b"k.cu", FIXTURES / "k.cu"])
def test_a_path_is_any_name_of_a_file(path):
    assert "k.cu:2:3" in str(rewrite(ANNOTATED, path=path).plan.sites[0].place)


def test_a_path_is_no_number():
    with pytest.raises(OptionError, match="the path is int"):
        rewrite(ANNOTATED, path=3)


BODY = """\
  int i = n; /* IKET_MARK("no") */ IKET_MARK("a", IKET_I32(i)); i++; // IKET_MARK("no")
\tIKET_RANGE_PUSH("b"); f("IKET_MARK(1)"); IKET_RANGE_POP();
  { IKET_RANGE("c"); }   \x0c
  IKET_RANGE_START("d"); x = y IKET_RANGE_END("d");;
"""
ANNOTATIONS = (
    'IKET_MARK("a", IKET_I32(i))',
    'IKET_RANGE_PUSH("b")',
    "IKET_RANGE_POP()",
    'IKET_RANGE("c")',
    'IKET_RANGE_START("d")',
    'IKET_RANGE_END("d")',
)


def test_text_outside_the_annotations_is_untouched():
    text = kernel(BODY)
    assert only_edited(text, rewrite(text).text, *ANNOTATIONS)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_are_those_of_the_input(newline):
    text = kernel(BODY).replace("\n", newline)
    result = rewrite(text).text
    assert only_edited(text, result, *ANNOTATIONS)
    assert result.count("\n") == result.count(newline)


def test_lone_returns_are_line_ends_too():
    text = kernel(BODY).replace("\n", "\r")
    result = rewrite(text).text
    assert "\n" not in result
    assert [site.place.line for site in rewrite(text).plan.sites] == [2, 3, 3, 4, 5, 5]


def test_a_byte_order_mark_stays_first():
    result = rewrite(("\ufeff" + ANNOTATED).encode()).text
    assert result.startswith(b"\xef\xbb\xbf//")
    assert result.count(b"\xef\xbb\xbf") == 1
    assert behind_line(result) == behind_line(rewrite(ANNOTATED).text)


def test_bytes_that_are_not_utf8_survive_beside_annotations():
    data = b'// \xff\xe9\n__global__ void k() { f("\xff"); IKET_MARK("a"); /* \xc3 */ }'
    before, _, after = data.partition(b'IKET_MARK("a")')
    result = rewrite(data).text
    assert before in result
    assert result.endswith(after)


@pytest.mark.parametrize(
    "call",
    [
        'IKET_MARK(\n"a"\n)',
        'IKET_MARK(\n  "a",\n  IKET_I32(\n    n\n    + 1)\n)',
        'IKET_MARK("a"\n"b"\n, // c\n1,\nIKET_COLOR(\n1))',
        'IKET_\\\nMARK(\\\n"a")',
        'IKET_MARK(R"(a\nb)")',
        'IKET_MARK("a", IKET_I32([&] {\n  return n;\n}()))',
        "IKET_RANGE_POP(\n/* c\n */\n)",
        'IKET_MARK /* a\n*/ ("a")',
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_call_over_several_lines_keeps_its_line_breaks(call, newline):
    text = kernel(f"before();\n{call};\nafter();").replace("\n", newline)
    behind = behind_line(rewrite(text).text)
    assert behind.count(newline) == text.count(newline)
    assert behind.split(newline).index("after();") == text.split(newline).index("after();")
    stripped = strip(text).text
    assert stripped.split(newline).index("after();") == text.split(newline).index("after();")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_fixture_keeps_its_lines(path):
    data = path.read_bytes()
    result = rewrite(data, path=str(path))
    if not result.changed:
        assert result.text == data
        return
    before = data.decode().split("\n")
    # Stripping touches exactly the lines on which annotations stand.
    annotated = changed_lines(before, strip(data).text.decode().split("\n"))
    assert changed_lines(before, behind_line(result.text).split("\n")) <= annotated


def changed_lines(before: list[str], after: list[str]) -> set[int]:
    return {line for line, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]}


@pytest.mark.parametrize(
    ("path", "line"),
    [(None, "#line 1\n"), ("dir/k.cu", '#line 1 "dir/k.cu"\n'), ('a"b\\c.cu', '#line 1 "a\\"b\\\\c.cu"\n')],
)
def test_the_users_text_keeps_its_line_numbers(path, line):
    text = rewrite(ANNOTATED, path=path).text
    assert text.count("\n#line") == 1
    assert text.partition("\n#line")[2].startswith(line[len("#line") :] + "__global__")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_same_input_gives_the_same_output_and_its_own_output_is_left_alone(path):
    data = path.read_bytes()
    first = rewrite(data, path="k.cu", runtime_payloads=True)
    assert rewrite(data, path="k.cu", runtime_payloads=True) == first
    again = rewrite(first.text, path="k.cu")
    assert (again.text, again.changed, again.instrumented) == (first.text, False, True)
    assert "k.cu is instrumented already and stays as it is" in str(again.warnings[0])


@pytest.mark.parametrize("target", [None, "sm_80", "sm_90a", "sm_100a", "compute_120f", "sm_110", "90"])
def test_a_target_never_changes_the_text(target):
    assert rewrite(ANNOTATED, target=target).text == rewrite(ANNOTATED).text


@pytest.mark.parametrize(
    ("target", "pre_hopper", "message"),
    [
        ("sm_90a", "off", None),
        ("sm_100a", "off", None),
        ("compute_103", "off", None),
        ("120", "off", None),
        ("sm_110a", "off", "nobody has seen them on hardware"),
        ("sm_121", "off", "nobody has seen them on hardware"),
        ("sm_101a", "off", "is not known, so its events are left out"),
        ("sm_130", "off", "is not known, so its events are left out"),
        ("sm_80", "off", "below, events are nothing"),
        ("sm_89", "off", "below, events are nothing"),
        ("sm_80", "rank0", "overwrites the user's shared memory at offset 0x20"),
    ],
)
def test_a_target_warns(target, pre_hopper, message):
    warnings = [str(warning) for warning in rewrite(ANNOTATED, target=target, pre_hopper=pre_hopper).warnings]
    assert [message in warning and target in warning for warning in warnings] == ([] if message is None else [True])


@pytest.mark.parametrize("target", ["", "sm_", "sm_9", "sm_1000", "sm_90b", "hopper", "sm_90a x", 90])
def test_a_target_that_names_no_architecture_is_refused(target):
    with pytest.raises(TargetError, match="unknown target"):
        rewrite("int a;", target=target)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('#define IKETR_ONLY\nIKET_MARK(anything);\nIKETR_MARK("a");', ["a"]),
        ('#define IKETR_ONLY\nIKET_EVENT(anything, IKET_MARK);\nIKETR_RANGE("a", IKETR_I32(1));', ["a"]),
        ("#define IKETR_ONLY\n" + f'TL_IKET_EVENT(1, "{tilelang_token("t", "mark", None)}");', ["t"]),
        ('// #define IKETR_ONLY\nIKET_MARK("a");', ["a"]),
        ('/*\n#define IKETR_ONLY\n*/\nIKET_MARK("a");', ["a"]),
        ('#if 0\n#define IKETR_ONLY\n#endif\nIKET_MARK("a");', ["a"]),
        ('#ifdef IKETR_ONLY\n#endif\nIKET_MARK("a");', ["a"]),
    ],
)
def test_iketr_only_leaves_the_first_names_to_somebody_else(text, names):
    assert [event.name for event in rewrite(text).plan.events] == names


@pytest.mark.parametrize(
    "define", ["#define IKET_MARK(...)", "#define IKET_MARK(...) IKETR_MARK(__VA_ARGS__)", "#undef IKET_MARK"]
)
def test_a_definition_of_an_annotation_is_none(define):
    text = f"#ifndef ON\n{define}\n#endif\n{ANNOTATED}"
    result = rewrite(text)
    assert only_edited(text, result.text, 'IKET_MARK("a", IKET_I32(n))')


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        (ANNOTATED, "__global__ void k(int n) {\n  ((void)0);\n}\n"),
        ('f(); IKET_RANGE("a"); // IKET_RANGE("b")', 'f(); ((void)0); // IKET_RANGE("b")'),
        ('#define W(n) IKET_MARK(n)\nW("a");', '#define W(n) ((void)0)\nW("a");'),
        ('IKET_MARK(\n"a",\r\n1);', "((void)0)\n\r\n;"),
        (f'TL_IKET_EVENT(1, "{tilelang_token("a", "mark", None)}"); TL_IKET_EVENT(31);', "((void)0); ((void)0);"),
        ("int a;\r\n", "int a;\r\n"),
    ],
)
def test_stripping_leaves_no_annotation(text, stripped):
    assert strip(text).text == stripped
    assert strip(text.encode()).text == stripped.encode()
    assert strip(text).changed is (text != stripped)
    assert rewrite(stripped).plan.sites == ()


def test_stripping_leaves_instrumented_text_alone():
    text = rewrite(ANNOTATED).text
    assert strip(text) == Rewrite(text, False, strip("").plan, instrumented=True)


@pytest.mark.parametrize(
    ("text", "names", "uniform"),
    [
        ('IKET_MARK(R"(ab)");\nIKET_MARK(R"(a\\\nb)");\n', ["ab", "a\\\nb"], [False, False]),
        ('IKET_MARK(R"(a\\\nb)");\nIKET_MARK(R"(ab)");\n', ["a\\\nb", "ab"], [False, False]),
        ('IKET_MARK("a",\n1);\nIKET_MARK("a",\nIKET_I32(threadIdx.x));', ["a", "a"], [True, False]),
        (
            "__global__ void k(int n) {\nX;\n}\n__global__ void l(int n) { n++;\nX;\n}\nvoid f() {\nX;\n}".replace(
                "X", 'IKET_MARK("a", IKET_I32(n))'
            ),
            ["a", "a", "a"],
            [True, False, False],
        ),
        (
            '#define M IKET_MARK("a", IKET_I32(3));\nvoid f() {\nIKET_MARK("a", IKET_I32(3));\n}',
            ["a", "a"],
            [True, True],
        ),
        ('IKET_MARK("a"); // \\\n c\nIKET_MARK("a"); //  c\n', ["a", "a"], [False, False]),
        ('#if A\nIKET_MARK("a")\n;\n#else\nIKET_MARK("a")\n, f();\n#endif\n', ["a", "a"], [False, False]),
    ],
)
def test_lines_of_the_same_letters_are_told_apart(text, names, uniform):
    sites = rewrite(text).plan.sites
    assert [site.event.name for site in sites] == names
    assert [site.uniform for site in sites] == uniform


def test_a_line_of_megabytes_with_thousands_of_sites_takes_no_time_to_speak_of():
    text = "".join(f'void f{index}() {{ {"int a; " * 60} IKET_MARK("a"); }} ' for index in range(4000))
    assert len(rewrite(text).plan.sites) == 4000
