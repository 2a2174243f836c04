# SPDX-License-Identifier: Apache-2.0
"""Whatever text comes in, the linter answers with findings or with an error that is documented."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from toolbox import FIXTURES

import iket_rewrite
from iket_rewrite.linting import parsing

TEXTS = [path.read_bytes() for path in sorted((FIXTURES / "lint").rglob("*.cu"))]
ROOMS = ("cuda", "macros", "tilelang", "tirx")
TEXTS += [path.read_bytes() for room in ROOMS for path in sorted((FIXTURES / room).glob("*.cu"))]
KERNEL = '__global__ void k(float* o, int n) {{ IKET_RANGE_PUSH("a"); {} IKET_RANGE_POP(); }}\n'
WORDS = [
    b"{",
    b"}",
    b";",
    b"(",
    b"#if X\n",
    b"\n#else\n",
    b"\n#endif\n",
    b"goto x;",
    b"return;",
    b"break;",
    b"/*",
    b'"',
]
WORDS += [b"\\\n", b"IKET_RANGE_POP();", b"switch (", b"else", b"case 1:", b"\xff\x00", b"asm(", b"#define IKET_MARK\n"]


def lint(text: str | bytes) -> list[str]:
    try:
        return [one.id for one in iket_rewrite.lint(text, pedantic=True)]
    except iket_rewrite.IketError as error:
        return [error.slug]


@pytest.mark.parametrize("seed", range(8))
def test_damaged_text_never_breaks_it(seed):
    chance = random.Random(seed)
    for _ in range(60):
        text = chance.choice(TEXTS)
        first, second = sorted(chance.randrange(len(text)) for _ in range(2))
        kind = chance.randrange(3)
        if kind == 0:
            text = text[:first]
        elif kind == 1:
            text = text[:first] + text[second:]
        else:
            text = text[:first] + chance.choice(WORDS) + text[first:]
        lint(text)


@pytest.mark.parametrize("text", ["", b"", " \n", "int x;", b"\xff\xfe\x00", "\0", "#if\n", "/*", '"', "}}}}", "IKET"])
def test_text_without_annotations_has_no_findings(text):
    assert lint(text) == []


def test_bytes_that_are_not_utf8_are_read():
    text = KERNEL.format("o[0] = 1; /* \xe4 */").encode("latin-1") + b"// \xff\n"
    assert iket_rewrite.lint(text) == ()
    wrong = text.replace(b"IKET_RANGE_POP();", b"/* \xf6 */")
    (finding,) = iket_rewrite.lint(wrong, path="k.cu")
    assert (finding.id, finding.place.column) == ("push-without-pop", 38)


def test_characters_beyond_ascii_move_no_place():
    text = '__global__ void k(int* o) {\n  /* größe ✓ */ IKET_RANGE_PUSH("größe ✓ 🙂"); o[0] = 1; }\n'
    (finding,) = iket_rewrite.lint(text)
    assert (finding.place.line, finding.place.column) == (2, 17)
    assert '"größe ✓ 🙂"' in finding.message


def test_a_line_is_silenced_whatever_ends_the_lines_before_it():
    text = "// \x0c \u2028 \x1d\r// \r\n__global__ void k() {\nIKET_RANGE_POP();  // iket-lint: off\n}\n"
    assert iket_rewrite.lint(text) == ()
    assert len(iket_rewrite.lint(text.replace("off", "on"))) == 1


def test_splices_and_carriage_returns_move_no_place():
    text = '__global__ void k(int* o) {\r\n  o[0] \\\r\n = 1;\r\n IKET_RANGE_PU\\\r\nSH("a"); o[0] = 1; }\r\n'
    (finding,) = iket_rewrite.lint(text)
    assert (finding.place.line, finding.place.column) == (4, 2)


@pytest.mark.parametrize(
    "inner",
    [
        "if (n) {" * 3000 + "return;" + "}" * 3000,
        "o[0] = " + "(" * 3000 + "1" + ")" * 3000 + ";",
        "o[0] = " + "+".join(["n"] * 20000) + ";",
        " else ".join(f"if (n == {i}) {{ return; }}" for i in range(500)),
        "if (" + "!" * 500 + "n) return;",
        "".join(f'if (o[{i}]) {{ IKET_RANGE_PUSH("b"); }}' for i in range(60)),
        "o[1] = 2 * o[3];" * 20000,
    ],
    ids=["nested", "parentheses", "sum", "else-if", "not", "branches", "long"],
)
def test_deep_and_long_code_is_answered(inner):
    assert set(lint(KERNEL.format(inner))) <= {"not-decided", "push-without-pop"}


def test_code_that_can_not_be_parsed_is_not_judged():
    assert lint(KERNEL.format("UNLESS(n) o[0] = 1; return;")) == ["not-decided"]
    assert lint(KERNEL.format("o[0] = 1 +;  if (n] return;")) == ["not-decided"]


def test_a_parse_that_takes_too_long_is_given_up(monkeypatch):
    monkeypatch.setattr(parsing, "_PATIENCE_S", -1.0)
    assert lint(KERNEL.format("o[0] = 1;" * 20000)) == ["not-decided"]
    monkeypatch.undo()
    assert lint(KERNEL.format("o[0] = 1;")) == []


def test_a_file_that_is_too_long_is_not_parsed():
    assert lint(KERNEL.format("o[0] = 1;") + "//" + " " * 4_000_000) == ["not-decided"]


@pytest.mark.parametrize("source", [None, 3, bytearray(b"x")])
def test_what_is_no_text_is_an_option_error(source):
    with pytest.raises(iket_rewrite.OptionError, match="not str or bytes"):
        iket_rewrite.lint(source)


def test_an_annotation_that_is_wrong_stays_an_error():
    with pytest.raises(iket_rewrite.AnnotationError, match="has no name"):
        iket_rewrite.lint("__global__ void k() { IKET_MARK(); }")


def test_text_that_is_instrumented_already_has_no_findings():
    assert iket_rewrite.lint(iket_rewrite.rewrite(KERNEL.format("")).text) == ()


@pytest.mark.parametrize("package", ["tree_sitter", "tree_sitter_cuda"])
def test_a_missing_extra_is_named(package, tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(KERNEL.format("o[0] = 1;"), encoding="utf-8")
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        f"from iket_rewrite.cli.rewrite_command import main; sys.exit(main(['--lint', {str(path)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"iket-rewrite: linting needs the package {package}",
        "  fix: pip install 'iket-rewrite[lint]'",
    ]
