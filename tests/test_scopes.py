# SPDX-License-Identifier: Apache-2.0
"""Places where a scoped range can not stand."""

from __future__ import annotations

import pytest
from texts import failure, kernel, place_and_caret, plan_of

from iket_rewrite import AnnotationError

WRAPPER = "#define W(n) IKET_RANGE(n)\n"


@pytest.mark.parametrize(
    "body",
    [
        'switch (n) { case 0: IKET_RANGE("a"); f(); break; case 1: g(); }',
        'switch (n) { case 0: IKET_RANGE("a"); default: g(); }',
        'switch (n) { case 0: f(); IKET_RANGE("a"); if (x) { } case 1: g(); }',
        'switch (f({1, 2})) { case 0: IKET_RANGE("a"); case 1: g(); }',
        'switch (int i = n; i) { case 0: IKET_RANGE("a"); case 1: g(); }',
        'switch (n) /* ; */ { case 0: IKET_RANGE("a"); case 1: g(); }',
        'switch ("{;}"[n]) { case 0: IKET_RANGE("a"); case 1: g(); }',
        'x = 1; // a) first\nswitch (n) { case 0: IKET_RANGE("a"); case 1: g(); }',
        'for (;;) switch (n) { case 0: IKETR_RANGE("a"); case 1: g(); }',
        'switch (n) { case 0: W("a"); case 1: g(); }',
    ],
)
def test_a_scoped_range_among_the_labels_of_a_switch_is_an_error(body):
    found = failure(WRAPPER + kernel(body), AnnotationError)
    assert "a scoped range stands among the labels of a switch" in found
    assert place_and_caret(found)[1] in ("IKET_RANGE", "IKETR_RANGE", "W")
    assert ": the next label" in found
    assert "fix: put braces around what the range covers, or use IKET_RANGE_PUSH and IKET_RANGE_POP" in found


@pytest.mark.parametrize(
    "body",
    [
        'switch (n) { case 0: { IKET_RANGE("a"); f(); break; } case 1: g(); }',
        'switch (n) { case 0: f(); break; case 1: IKET_RANGE("a"); g(); }',
        'switch (n) { case 0: if (x) { IKET_RANGE("a"); } case 1: g(); }',
        'switch (n) { case 0: IKET_RANGE_PUSH("a"); f(); IKET_RANGE_POP(); case 1: g(); }',
        'switch (n) { case 0: IKET_MARK("a"); case 1: g(); }',
        'switch (n) { case 0: IKET_RANGE("a"); /* case 1: */ "case 2:"; }',
        'switch (n) { case 0: IKET_RANGE("a"); switch (m) { case 1: g(); } }',
        'switch (n) { case 0: f(); } { IKET_RANGE("a"); } case_1: default_2: g();',
        'if (n) { IKET_RANGE("a"); switch (n) { case 0: g(); } }',
        'for (int i = 0; i < n; ++i) { IKET_RANGE("a"); }',
    ],
)
def test_elsewhere_near_a_switch_it_is_fine(body):
    assert plan_of(kernel(body)).events


@pytest.mark.parametrize(
    "text",
    [
        'constexpr int f(int n) { IKET_RANGE("a"); return n; }',
        '__host__ __device__ constexpr int f(int n = {}) {\n if (n) { for (;;) { IKET_RANGE("a"); } } }',
        'constexpr __device__ auto f(int n) -> int { IKET_RANGE("a"); }',
        'consteval int f() { IKET_RANGE("a"); }',
        'constexpr bool operator==(T a, T b) { IKET_RANGE("a"); }',
        'struct S { constexpr S& operator=(S const&) { IKET_RANGE("a"); } };',
        'auto f = [](int n) constexpr { IKET_RANGE("a"); };',
        '// ; a)\nconstexpr int f() { W("a"); }',
    ],
)
def test_a_scoped_range_in_a_constexpr_function_is_an_error(text):
    found = failure(WRAPPER + text, AnnotationError)
    assert "a scoped range can not stand in a constexpr function" in found
    assert ": declared constexpr here" in found
    assert "fix: use IKET_RANGE_PUSH and IKET_RANGE_POP" in found


@pytest.mark.parametrize(
    "text",
    [
        'constexpr int f(int n) { IKET_MARK("a"); IKET_RANGE_PUSH("b"); IKET_RANGE_POP(); return n; }',
        'constexpr int x = 3; __device__ void f() { IKET_RANGE("a"); }',
        'constexpr int f() { return 1; } __device__ void g() { IKET_RANGE("a"); }',
        '__device__ void f() { if constexpr (sizeof(int) == 4) { IKET_RANGE("a"); } }',
        '__device__ void f() { constexpr auto g = [](int n) { IKET_RANGE("a"); }; }',
        '/* constexpr */ __device__ void f() { IKET_RANGE("a"); }',
        '__device__ void not_constexpr(int x) { IKET_RANGE("a"); }',
    ],
)
def test_elsewhere_near_constexpr_it_is_fine(text):
    assert plan_of(text).events


def test_a_wrappers_two_scopes_on_one_line_are_an_error():
    found = failure(WRAPPER + kernel('W("a"); W("b");'), AnnotationError)
    assert "W opens two scoped ranges on one line of one block" in found
    assert place_and_caret(found) == ("3:9", "W")
    assert "fix: write them on two lines" in found


@pytest.mark.parametrize(
    "text",
    [
        WRAPPER + kernel('W("a");\nW("b");'),
        WRAPPER + kernel('{ W("a"); } { W("b"); }'),
        kernel('IKET_RANGE("a"); IKET_RANGE("b");'),
        "#define W(n) IKET_RANGE_PUSH(n)\n" + kernel('W("a"); W("b");'),
    ],
)
def test_scopes_with_names_of_their_own_are_fine(text):
    assert len(plan_of(text).sites) == 2


@pytest.mark.parametrize(
    "text",
    [
        "void f() { switch (n) { case 0: " + 'IKET_RANGE("a"); ' * 3000 + "} }",
        '{ IKET_RANGE("a"); ' * 1500 + "}" * 1500,
    ],
    ids=["in one switch", "in each other"],
)
def test_thousands_of_scoped_ranges_are_checked_in_no_time_to_speak_of(text):
    assert len(plan_of(text).sites) >= 1500
