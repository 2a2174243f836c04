# SPDX-License-Identifier: Apache-2.0
"""Source: lines, splices, places, edits."""

from __future__ import annotations

import pytest

from iket_rewrite.errors import Place
from iket_rewrite.source import Edit, Source, splice

SPLICED = 'int a\\\n b;\\\r\nx\\ \t\ny\r\n"\\n" \\q\\'


def place(text, needle, **options):
    source = Source(text, **options)
    start = source.logical.index(needle)
    return source.place(start, start + len(needle))


@pytest.mark.parametrize(
    ("text", "logical"),
    [
        ("a\\\nb", "ab"),
        ("a\\\r\nb", "ab"),
        ("a\\\rb", "ab"),
        ("a\\ \t\nb", "ab"),
        ("\\\n\\\nab\\\n", "ab"),
        ("a\\b\n", "a\\b\n"),
        ("a\\", "a\\"),
        ("a\r\nb\rc\n", "a\r\nb\nc\n"),
    ],
)
def test_the_logical_text_has_no_splices_and_no_lone_returns(text, logical):
    assert Source(text).logical == logical


@pytest.mark.parametrize("text", [SPLICED, "\\\n\\\nab\\\n\\\nc", "plain", ""])
def test_every_logical_character_is_found_in_the_physical_text_and_back(text):
    source = Source(text)
    for offset, char in enumerate(source.logical):
        assert text[source.physical(offset)] == char
        assert source.to_logical(source.physical(offset)) == offset
        assert source.physical_end(offset + 1) == source.physical(offset) + 1
    assert source.physical_end(0) == 0


@pytest.mark.parametrize(
    ("text", "line", "column", "shown"),
    [
        ("x", 1, 1, "x"),
        ("a\nb x", 2, 3, "b x"),
        ("a\r\nb x\r\n", 2, 3, "b x"),
        ("a\rb x\rc", 2, 3, "b x"),
        ("\ufeffx", 1, 1, "x"),
        ("\ufeffa\nx", 2, 1, "x"),
        ("é中x", 1, 3, "é中x"),
        ("a\\\nx", 2, 1, "x"),
        ("a \\\n\\\n  x", 3, 3, "  x"),
        ("\tx", 1, 2, "\tx"),
        ("\x00\x1bx", 1, 3, "\ufffd\ufffdx"),
        ("a\fx", 1, 3, "a\ufffdx"),
    ],
)
def test_a_place_gives_the_physical_line_and_column(text, line, column, shown):
    found = place(text, "x", path="dir/k.cu")
    assert (found.line, found.column, found.text) == (line, column, shown)
    assert str(found) == f"dir/k.cu:{line}:{column}"


def test_bytes_that_are_not_utf8_take_one_column_each():
    found = place(b"\xff\xfe x", "x")
    assert (found.column, found.text) == (4, "\ufffd\ufffd x")


def test_a_place_behind_the_text_is_the_end_of_its_last_line():
    source = Source("a\nbc")
    assert str(source.place(len(source.text))) == "<source>:2:3"
    assert source.place(99).excerpt().endswith("  bc\n    ^")


@pytest.mark.parametrize(
    ("text", "needle", "excerpt"),
    [
        ("int name;", "name", "  int name;\n      ^^^^"),
        ("\t a(\tb)", "b", "  \t a(\tb)\n  \t   \t^"),
        ("ab\\\ncd", "bcd", "  ab\\\n   ^^"),
        ("a(\nb", "a(\nb", "  a(\n  ^^"),
    ],
)
def test_a_caret_underlines_what_is_meant_on_its_line(text, needle, excerpt):
    assert place(text, needle).excerpt() == excerpt


def test_of_a_line_of_megabytes_only_a_part_is_shown():
    text = "a" * 3_000_000 + " wrong " + "b" * 3_000_000
    found = place(text, "wrong")
    shown, caret = found.excerpt().split("\n")
    assert len(shown) < 130
    assert shown[caret.index("^") :][:5] == "wrong"
    assert found.column == 3_000_002


def test_a_long_lines_first_and_last_characters_are_shown():
    text = "first" + "-" * 500 + "last"
    assert place(text, "first").excerpt().startswith("  first--")
    assert place(text, "last").excerpt().split("\n")[0].endswith("--last")


def test_a_place_prints_without_a_line():
    assert Place("k.cu", 3, 4).excerpt() == "  \n  ^"


@pytest.mark.parametrize(("text", "newline"), [("a", "\n"), ("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("a\rb", "\r")])
def test_the_newline_is_the_first_of_the_text(text, newline):
    assert Source(text).newline == newline


@pytest.mark.parametrize("data", [b"\xff\x00\xc3\xa9\xe9", "é\ud800\udcff", b"", "\ufeffa\r"])
def test_text_comes_out_as_it_came_in(data):
    source = Source(data)
    out = source.encode(source.text)
    assert out == data
    assert type(out) is type(data)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("f(a);", "f(a)", "X;"),
        ("f(\na,\r\nb);", "f(\na,\r\nb)", "X\n\r\n;"),
        ("f(\\\na);", "f(a)", "X\\\n;"),
        ("f\\\n(\n\\ \r\na)\\\n;", "f(\na)", "X\\\n\n\\ \r\n\\\n;"),
    ],
)
def test_an_edit_keeps_the_line_breaks_of_what_it_replaces(text, old, new):
    source = Source(text)
    start = source.logical.index(old)
    assert splice(text, [source.edit(start, start + len(old), "X")]) == new


def test_edits_apply_in_the_order_of_the_text():
    assert splice("abcd", [Edit(3, 4, "Y"), Edit(0, 1, "X"), Edit(2, 2, "-")]) == "Xb-cY"


def test_overlapping_edits_are_refused():
    with pytest.raises(ValueError, match="overlap at offset 1"):
        splice("abcd", [Edit(0, 2, "X"), Edit(1, 3, "Y")])
