# SPDX-License-Identifier: Apache-2.0
"""Functions of the file that leave ranges open or end some: overloads, methods, guards, and who calls them."""

from __future__ import annotations

import time

import pytest

import iket_rewrite

FREE = """
__device__ void begin(int x) { IKET_RANGE_PUSH("a", IKET_I32(x)); }
__device__ void begin(float x) { IKET_RANGE_PUSH("b", IKET_F32(x)); }
__device__ void finish() { IKET_RANGE_POP(); }
__device__ void begin_all(int* o) { begin(1); o[0] = 1; }
__device__ void finish_all(int* o) { o[1] = 1; finish(); }
"""
SPANS = """
struct First { __device__ void begin() { IKET_RANGE_PUSH("a"); } __device__ void end() { IKET_RANGE_POP(); } };
struct Second { __device__ void begin() { IKET_RANGE_PUSH("b"); } __device__ void end() { IKET_RANGE_POP(); } };
"""
POLICY = """
template <bool On> struct Policy {
  __device__ void begin() { IKET_RANGE_PUSH("a"); } __device__ void end() { IKET_RANGE_POP(); } };
template <> struct Policy<false> { __device__ void begin() {} __device__ void end() {} };
"""
CHOOSING = """
struct Guard {
  bool on;
  __device__ Guard(bool b) : on(b) { if (b) IKET_RANGE_PUSH("g"); }
  __device__ ~Guard() { if (on) IKET_RANGE_POP(); }
};
"""
GUARD = 'struct Guard { __device__ Guard(int) { IKET_RANGE_PUSH("g"); } __device__ ~Guard() { IKET_RANGE_POP(); } };\n'
TIMER = 'struct Timer { __device__ Timer() { IKET_RANGE_PUSH("t"); } __device__ void stop() { IKET_RANGE_POP(); } };\n'


def ids(helpers: str, body: str, parameters: str = "int* o, int n") -> list[str]:
    text = f"{helpers}__global__ void kernel({parameters}) {{ {body} }}\n"
    return [one.id for one in iket_rewrite.lint(text)]


@pytest.mark.parametrize(
    ("helpers", "parameters", "body"),
    [
        (FREE, "int* o", "begin(1); o[0] = 1; finish(); begin(2.0f); o[1] = 1; finish();"),
        (FREE, "int* o", "begin_all(o); o[0] = 1; finish_all(o);"),
        (SPANS, "int* o, First a, Second b", "a.begin(); o[0] = 1; a.end(); b.begin(); o[1] = 1; b.end();"),
        (SPANS, "int* o, First a, Rows v", "a.begin(); for (int* i = v.begin(); i != v.end(); ++i) *i = 1; a.end();"),
        (SPANS, "int* o, Rows v", 'IKET_RANGE("x"); for (int* i = v.begin(); i != v.end(); ++i) *i = 1;'),
        (SPANS, "int* o, Rows v", 'IKET_RANGE("x"); std::sort(std::begin(v), std::end(v));'),
        (POLICY, "int* o", "Policy<true> p; p.begin(); o[0] = 1; p.end();"),
        (CHOOSING, "int* o, int n", "Guard g(n > 3); if (n) return; o[0] = 1;"),
        (GUARD, "int* o, int n", "auto g = Guard(3); if (n) return; o[0] = 1;"),
        (TIMER, "int* o", "Timer t; o[0] = 1; t.stop();"),
    ],
    ids=["overloads", "helpers of helpers", "methods", "another class", "only another", "std", "policy", "choosing",
         "made by a call", "constructor and method"],
)  # fmt: skip
def test_helpers_that_belong_together_are_not_told_of(helpers, parameters, body):
    assert ids(helpers, body, parameters) == []


@pytest.mark.parametrize(
    ("helpers", "body"),
    [
        (FREE, "begin(1); if (n) return; o[0] = 1; finish();"),
        (FREE, "begin_all(o); if (n) return; o[0] = 1; finish_all(o);"),
        (SPANS, "First a; a.begin(); if (n) return; o[0] = 1; a.end();"),
        (SPANS, "using Span = First; Span a; a.begin(); if (n) return; o[0] = 1; a.end();"),
        (TIMER, "Timer t; if (n) return; o[0] = 1; t.stop();"),
        ('__device__ void f(int n) { if (n > 3) IKET_RANGE_PUSH("f"); work(); }', "f(n); o[0] = 1;"),
        ('__device__ void f(int n) { IKET_RANGE_PUSH("f"); work(); } __device__ void f(float n) { work(); }', "f(n);"),
    ],
    ids=[
        "overloads",
        "helpers of helpers",
        "method",
        "alias",
        "constructor",
        "nothing ends it",
        "overload and nothing",
    ],
)
def test_a_range_that_a_helper_leaves_open_is_told_of(helpers, body):
    assert ids(helpers, body) == ["push-without-pop"]


@pytest.mark.parametrize(
    ("helpers", "body", "count"),
    [
        (
            '__device__ void f(int n) { UNLESS(n) IKET_RANGE_PUSH("f"); work(); }',
            "f(n); o[0] = 1; IKET_RANGE_POP();",
            2,
        ),
        (
            'struct Span { bool on; __device__ void begin() { if (on) IKET_RANGE_PUSH("g"); }\n'
            "__device__ void end() { if (on) IKET_RANGE_POP(); } };",
            "Span s; s.begin(); o[0] = 1; s.end();",
            2,
        ),
    ],
    ids=["could not be parsed", "choosing methods"],
)
def test_what_only_the_author_can_connect_is_a_note(helpers, body, count):
    assert ids(helpers, body) == ["not-decided"] * count


def test_many_calls_take_no_longer_than_their_number():
    kernels = (
        f"__global__ void k{i}(int* o, First t{i}) {{ t{i}.begin(); o[0] = {i}; t{i}.end(); }}\n" for i in range(1500)
    )
    before = time.monotonic()
    assert iket_rewrite.lint(SPANS + "".join(kernels)) == ()
    assert time.monotonic() - before < 15
