# SPDX-License-Identifier: Apache-2.0
"""Annotations that would be lost without a word: each is found, refused, or warned of at its place."""

from __future__ import annotations

import pytest

from iket_rewrite import AnnotationError, encode_event, rewrite

HEADER = "#include <iket_rewrite/iket.cuh>\n"


def kernel(body: str) -> str:
    return f"{HEADER}__global__ void k(int* p, int n) {{ {body} }}\n"


def messages(text: str | bytes) -> str:
    return "\n".join(str(warning) for warning in rewrite(text).warnings)


def test_a_wrapper_used_in_the_body_of_another_wrapper_is_a_site():
    text = '#define A(n) IKET_MARK(n)\n#define D(name) { { A("c1"); } IKET_MARK(#name); }\n'
    text += "__global__ void k() { D(x) D(y) }"
    plan = rewrite(HEADER + text).plan
    assert [event.name for event in plan.events] == ["c1", "x", "y"]


@pytest.mark.parametrize("alias", ["#define B A\n", "#define LIST(X) X(1)\n#define L LIST(A)\n"])
def test_a_wrapper_that_is_passed_on_by_its_name_is_warned_of(alias):
    said = messages(HEADER + "#define A(n) IKET_MARK(n)\n" + alias + "__global__ void k() { }")
    assert "A holds an annotation; where it is passed on by its name, its events are lost" in said


def test_a_wrapper_that_is_not_used_is_warned_of():
    said = messages(HEADER + "#define TRACE(n) IKET_RANGE(n)\n")
    assert ": warning: TRACE holds an annotation and is not used in this file" in said


def test_marks_added_to_instrumented_text_are_warned_of():
    text = rewrite(kernel('IKET_MARK("a");')).text + '__global__ void q() { IKET_MARK("new"); }\n'
    result = rewrite(text)
    assert not result.changed
    assert "1 annotations in it are not instrumented" in str(result.warnings[1])


def test_a_pop_without_any_push_is_warned_of():
    assert "a range is popped here, and none is pushed in this text" in messages(kernel("IKET_RANGE_POP();"))


def test_wide_encodings_come_back_as_they_are_with_a_warning():
    data = kernel('IKET_MARK("a");').encode("utf-16")
    assert rewrite(data).text == data
    assert "UTF-16" in messages(data)


@pytest.mark.parametrize(
    "statement",
    [
        'n ? IKET_RANGE("r") : IKET_MARK("x");',
        'return IKET_RANGE("r");',
        '(void)IKET_RANGE("r");',
        '(IKET_RANGE("r"));',
    ],
)
def test_a_scoped_range_in_an_expression_is_refused(statement):
    with pytest.raises(AnnotationError, match="declares a variable and can not be part of an expression"):
        rewrite(kernel(statement))


@pytest.mark.parametrize(
    "statement",
    [
        'if (n) IKET_RANGE("r");',
        'if (n) ; else IKET_RANGE("r");',
        'for (IKET_RANGE("r"); n; ) {}',
        'label: IKET_RANGE("r");',
        '/* a note */ IKET_RANGE("r");',
        'WRAP(IKET_RANGE("r"););',
        'switch (n) { case 1: if (p) IKET_RANGE("r"); break; case 2: ; }',
    ],
)
def test_a_scoped_range_that_is_a_statement_is_not(statement):
    assert len(rewrite(kernel(statement)).plan.events) == 1


def test_two_uses_of_a_wrapper_on_one_line_are_fine_where_each_opens_a_block():
    define = "#define A(n) do { IKET_RANGE(n); p[0] += 1; } while (0)\n"
    assert len(rewrite(define + kernel('A("x"); A("y");')).plan.events) == 2
    with pytest.raises(AnnotationError, match="two scoped ranges on one line"):
        rewrite("#define A(n) IKET_RANGE(n)\n" + kernel('A("x"); A("y");'))


def test_an_argument_too_many_of_a_token_is_refused_and_template_commas_are_not():
    token = encode_event("mark", "x", payload="i32")
    with pytest.raises(AnnotationError, match="an argument too many"):
        rewrite(kernel(f'IKET_EVENT("{token}", n, 3);'))
    assert rewrite(kernel(f'IKET_EVENT("{token}", f<1, 2>(n));')).changed


def test_a_line_end_in_the_files_name_stays_inside_the_directive():
    text = rewrite(kernel('IKET_MARK("a");'), path="new\nline.cu").text
    assert '#line 1 "new\\nline.cu"\n' in text


def test_tokens_have_a_second_name_too():
    token = encode_event("mark", "x")
    plan = rewrite(
        f'#define IKETR_ONLY\n__global__ void k() {{ IKETR_EVENT("{token}"); IKET_EVENT("of somebody else"); }}'
    ).plan
    assert [event.name for event in plan.events] == ["x"]
