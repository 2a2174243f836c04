# SPDX-License-Identifier: Apache-2.0
"""Lexical facts: where literals end, what they say, how a call's arguments lie."""

from __future__ import annotations

import pytest

from iket_rewrite import AnnotationError
from iket_rewrite.rewriting.tokens import arguments, literal_at, skip_literal, starts_line, without_comments
from iket_rewrite.source import Source


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ('"a" b', '"a"'),
        ('"a\\" b" c', '"a\\" b"'),
        ('"" b', '""'),
        ("'\"' b", "'\"'"),
        ("'\\'' b", "'\\''"),
        ("'ab' b", "'ab'"),
        ('"a\\\nb" c', '"a\\\nb"'),
    ],
)
def test_a_literal_ends_at_its_quote(text, literal):
    source = Source(text)
    assert text[: source.physical_end(skip_literal(source, 0))] == literal


@pytest.mark.parametrize("prefix", ["", "u8", "u", "U", "L"])
@pytest.mark.parametrize(
    "raw",
    ['R"(a"b)"', 'R"x(a)"b)x"', 'R"x(a\\)x"', 'R"(\n#\n)"', 'R"(a\\\nb)"', 'R"x(a)x\\\n" )x"', 'R""(x)""', 'R"(//)"'],
)
def test_a_raw_string_ends_at_its_delimiter(prefix, raw):
    text = f"{prefix}{raw} behind"
    source = Source(text)
    assert text[source.physical_end(skip_literal(source, text.index('"'))) :] == " behind"


@pytest.mark.parametrize("text", ['FOOR"(a" b)"', 'xu8R"(a" b)"', '_R"(a" b)"', '\'x\'R"(a" b)"'])
def test_a_word_or_suffix_that_ends_in_r_makes_no_raw_string(text):
    assert text[skip_literal(Source(text), text.index('"')) :] == ' b)"'


@pytest.mark.parametrize("text", ["1'000", "0x1'F", "1'0'0", "0b1'0", ".5'0", "1e5'0", "x+1'0"])
def test_a_digit_separator_is_skipped_alone(text):
    at = text.rindex("'")
    assert skip_literal(Source(text), at) == at + 1


@pytest.mark.parametrize("text", ["'0'c'x' b", "_1'0'c'x' b", "'1''0'c'x' b"])
def test_a_digit_in_a_literal_begins_no_number(text):
    at = text.rindex("'", 0, text.rindex("'"))
    assert text[skip_literal(Source(text), at) :] == " b"


def test_what_a_literal_holds_begins_no_number():
    source = Source("'* 0x1'F'c' b")
    end = skip_literal(source, 0)
    assert source.text[end:] == "F'c' b"
    assert source.text[skip_literal(source, end + 1) :] == " b"


def test_a_number_behind_a_word_and_a_dot_has_separators():
    assert skip_literal(Source("x.0x1'F"), 5) == 6


@pytest.mark.parametrize("text", ["u8'x' b", "L'x' b", "x1'x' b", "return'x' b", "1'\"' b"])
def test_a_quote_behind_a_word_opens_a_character(text):
    assert text[skip_literal(Source(text), text.index("'")) :] == " b"


@pytest.mark.parametrize("text", ['don\'t "open" /* this\nx', 'say "no // a\nx', "'\nx", '"a\\"\nx', "'"])
def test_a_quote_without_a_partner_takes_the_rest_of_its_line(text):
    source = Source(text)
    at = min(index for index in (text.find("'"), text.find('"')) if index >= 0)
    assert text[skip_literal(source, at) :] in ("\nx", "")


def test_a_raw_string_without_an_end_takes_the_rest_of_the_text():
    assert skip_literal(Source('R"(a\nb)x"'), 1) == 9


@pytest.mark.parametrize(
    ("literal", "data"),
    [
        ('"a"', b"a"),
        ('""', b""),
        ('"é"', "é".encode()),
        ('u8"é"', "é".encode()),
        (r'"\n\t\r\a\b\f\v\e\\\"\'\?"', b"\n\t\r\a\b\f\v\x1b\\\"'?"),
        (r'"\x41\x7e\x7E"', b"A~~"),
        (r'"\xC3\xA9"', "é".encode()),
        (r'"\101\7\0101"', b"A\x07\x081"),
        (r'"\0"', b"\0"),
        (r'"\u00e9\U0001F680"', "é🚀".encode()),
        ('"a\\\nb"', b"ab"),
        ('R"(a\\n")"', b'a\\n"'),
        ('R"x()")x"', b')"'),
        ('u8R"(é)"', "é".encode()),
        ('R"(a\\\nb)"', b"a\\\nb"),
        ('R"(a\r\nb\rc)"', b"a\nb\nc"),
        ('"??/"', b"??/"),
    ],
)
def test_a_literal_has_the_bytes_that_cpp_gives_it(literal, data):
    assert literal_at(Source(literal), 0) == (data, len(Source(literal).logical))


def test_bytes_that_are_not_utf8_are_the_literals_bytes():
    assert literal_at(Source(b'"\xff\xc3"'), 0) == (b"\xff\xc3", 4)


@pytest.mark.parametrize("text", ["a", "'a'", "u8", "R", 'R"', '"a', '"a\n"', "", "u8'a'"])
def test_other_text_is_no_literal(text):
    assert literal_at(Source(text), 0) is None


@pytest.mark.parametrize(
    ("literal", "at"),
    [
        (r'"a\q"', 3),
        (r'"\x"', 2),
        (r'"\x100"', 2),
        (r'"\400"', 2),
        (r'"\ud800"', 2),
        (r'"\U00110000"', 2),
        (r'"\u12"', 2),
        (r'"a\8"', 3),
        ('L"a"', 1),
        ('u"a"', 1),
        ('UR"(a)"', 1),
    ],
)
def test_a_literal_that_is_no_text_of_bytes_is_an_error_at_its_place(literal, at):
    with pytest.raises(AnnotationError) as caught:
        literal_at(Source(literal), 0)
    assert caught.value.place.column == at


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("f()", []),
        ("f( /* no */ )", []),
        ("f(a)", ["a"]),
        ("f ( a , b )", ["a", "b"]),
        ("f /* c */ // c\n (a)", ["a"]),
        ("f(a(b, c), [d, e], {f, g})", ["a(b, c)", "[d, e]", "{f, g}"]),
        ("f(a<b, c>(d))", ["a<b", "c>(d)"]),
        ('f(",)", \',\', R"(,")")', ['",)"', "','", 'R"(,")"']),
        ("f(/* , */ a // ) ,\n , b /* ( */ )", ["a", "b"]),
        ('f(a /* 1 */ /* 2 */ , "b // c" // d\n)', ["a", '"b // c"']),
        ('f(R"(a " // b)", R"(/* c */)")', ['R"(a " // b)"', 'R"(/* c */)"']),
        ("f(,)", ["", ""]),
        ("f([&]{ return a, b; }(), c)", ["[&]{ return a, b; }()", "c"]),
        ("f(1'000, 2)", ["1'000", "2"]),
        ("f(a # b)", ["a # b"]),
        ('f(R"(\n#if\n)")', ['R"(\n#if\n)"']),
    ],
)
def test_arguments_are_split_at_their_own_commas_and_trimmed(text, texts):
    source = Source(text)
    found = arguments(source, (0, 1), len(source.logical))
    assert [source.logical[slice(*span)] for span in found.spans] == texts
    assert found.end == len(source.logical)


@pytest.mark.parametrize("text", ["f", "f;", "f a (b)", "f /* (a) */"])
def test_a_name_without_brackets_has_no_arguments(text):
    assert arguments(Source(text), (0, 1), len(text)) is None


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("f(a", 1, "the call of f is not closed"),
        ("f(a]", 4, "'(' is closed by ']'"),
        ("f([a)", 5, "'[' is closed by ')'"),
        ("f(a /* )", 5, "the comment is not closed"),
        ('f("a)', 3, 'the quote " has no partner'),
        ("f(don't)", 6, "the quote ' has no partner"),
        ('f(R"(a)', 1, "the call of f is not closed"),
    ],
)
def test_a_call_that_does_not_end_is_an_error(text, column, message):
    with pytest.raises(
        AnnotationError, match=message.replace("(", r"\(").replace(")", r"\)").replace("[", r"\[")
    ) as caught:
        arguments(Source(text), (0, 1), len(text))
    assert caught.value.place.column == column
    assert caught.value.remedy


def test_a_call_ends_before_its_limit():
    with pytest.raises(AnnotationError, match="not closed"):
        arguments(Source("f(a\n)"), (0, 1), 3, directive=True)


@pytest.mark.parametrize(("text", "is_start"), [("  #", True), ("a\n\t #", True), ("a #", False), ("\f\v#", True)])
def test_a_line_starts_behind_blanks(text, is_start):
    assert starts_line(text, len(text) - 1) is is_start


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a /* b */ + c // d", "a   + c  "),
        ('"/*" /**/', '"/*"  '),
        ("'/' / 2", "'/' / 2"),
        ("0x1p-1f/*5.0e-01*/", "0x1p-1f "),
    ],
)
def test_comments_become_blanks(text, plain):
    assert without_comments(text) == plain
