# SPDX-License-Identifier: Apache-2.0
"""Which paths the linter knows: conditions that belong together, constants, loops, jumps, macros, lanes."""

from __future__ import annotations

import pytest

import iket_rewrite

HEAD = """
struct Span { __device__ void begin() { IKET_RANGE_PUSH("b"); } __device__ void end() { IKET_RANGE_POP(); } };
enum class Role { Load, Mma };
#define FOR_EACH(i, n) for (int i = 0; i < (n); ++i)
#define UNROLL _Pragma("unroll")
#define PUSHED(name) do { IKET_RANGE_PUSH(name); } while (0)
"""
PUSH, POP = 'IKET_RANGE_PUSH("x");', "IKET_RANGE_POP();"


def ids(body: str, parameters: str = "int* o, int n, bool c, Role r") -> list[str]:
    text = f"{HEAD}__global__ void kernel({parameters})\n{{\n{body}\n}}\n"
    return [one.id for one in iket_rewrite.lint(text, pedantic=True)]


@pytest.mark.parametrize(
    "body",
    [
        f"if (c) {{ if (n > 3) {PUSH} }} o[0] = 1; if (c && n > 3) {POP}",
        f"if (n > 3) {PUSH} o[0] = 1; if (!(n <= 3)) {POP}",
        f"if (3 < n) {PUSH} o[0] = 1; if ((n > 3)) {POP}",
        f"if (n == 1) {PUSH} o[0] = 1; if (n == 2) return; if (1 == n) {POP}",
        f"if (n < 4) {PUSH} o[0] = 1; if (n >= 4) return; o[1] = 2; {POP}",
        f"bool open = false; if (o[0]) {{ {PUSH} open = true; }} o[1] = 1; if (open) {POP}",
        f"int s = 0; for (int i = 0; i < n; ++i) {{ if (s == 0) {{ {PUSH} s = 1; }} else {{ o[i] = 1; {POP} s = 0; }}"
        f" }} if (s == 1) {POP}",
        f"for (int i = 7; i >= 0; --i) {{ o[i] = i; if (i == 7) {PUSH} }} o[0] = 1; {POP}",
        f"switch (r) {{ case Role::Load: {PUSH} break; case Role::Mma: {PUSH} break; }} o[0] = 1; {POP}",
        f"for (int i = 0; i < 8; ++i) {{ if (i == 0) {PUSH} o[i] = i; }} {POP}",
        f"while (true) {{ {PUSH} o[0] += 1; {POP} if (o[0] > n) break; }}",
        f"for (int i = 0; i < n; IKET_RANGE_POP(), ++i) {{ {PUSH} if (o[i]) continue; o[i] = 1; }}",
        f"do {{ {PUSH} if (!o[0]) {{ {POP} break; }} o[0]--; {POP} }} while (n--);",
        f"again: {PUSH} if (atomicCAS(o, 0, 1)) {{ {POP} goto again; }} o[1] = 1; {POP}",
        f"{PUSH} if (n) {{ if (n > 2) goto out; o[0] = 1; }} o[1] = 1; out: {POP}",
        f"{PUSH} if (n < 0) {{ o[0] = 1; __trap(); }} o[1] = n; {POP}",
        f'{PUSH} if (n < 0) asm volatile("exit;"); o[1] = n; {POP}',
        f"n ? {PUSH[:-1]} : {PUSH[:-1]}; o[0] = 1; {POP}",
        "Span s; s.begin(); if (n) { s.end(); return; } o[0] = 1; s.end();",
        f"FOR_EACH(i, n) {{ {PUSH} if (o[i]) {{ {POP} continue; }} o[i] = i; {POP} }}",
        'UNROLL for (int i = 0; i < 4; ++i) { IKET_RANGE("u"); o[i] = i; }',
        f'PUSHED("a") ; o[0] = 1; {POP} PUSHED("b"); o[1] = 2; {POP}',
        f"if (n > 2) [[likely]] {{ {PUSH} o[0] = 1; {POP} }} else [[unlikely]] o[0] = 2;",
        f"const int lane = threadIdx.x & 31; if (lane == 0) {PUSH} o[0] = 1; if (lane == 0) {POP}",
        f"if (threadIdx.x / 32 == 0) {PUSH} o[0] = 1; if (threadIdx.x / 32 == 0) {POP}",
        f"{PUSH} if (threadIdx.x < 64) {{ o[0] = 1; {POP} }} else {{ o[1] = 1; {POP} }}",
        f"constexpr int kLoaders = 2 * 32; {PUSH} if (threadIdx.x < kLoaders) {POP} else {{ o[1] = 1; {POP} }}",
        f"{PUSH} if (threadIdx.x < Policy::kThreads) {{ o[0] = 1; {POP} }} else {{ o[1] = 1; {POP} }}",
        f"{PUSH} if (threadIdx.x / cutlass::NumThreadsPerWarp) {{ o[0] = 1; {POP} }} else {{ o[1] = 1; {POP} }}",
        f"if (selected(n)) {PUSH} o[0] = 1; if (selected(n)) {POP}",
        f"const int tid = threadIdx.x; {PUSH} if (tid >> 5) {{ o[0] = 1; {POP} }} else {{ o[1] = 1; {POP} }}",
        f"const int lane = threadIdx.x % 32; {PUSH} if (lane != 0) return; o[0] = 1; {POP}",
        f"if (o[0]) {{ {PUSH} o[1] = 1; {POP} return; }}",
        f"{PUSH} if (__shfl_sync(~0u, o[threadIdx.x], 0)) {{ o[0] = 1; {POP} }} else {{ o[1] = 1; {POP} }}",
        'IKET_RANGE_START("a"); o[0] = 1; IKET_RANGE_START("b"); o[1] = 1; IKET_RANGE_END("a"); o[2] = 1; '
        'IKET_RANGE_END("b");',
        'if (c) IKET_RANGE_START("a"); o[0] = 1; if (c) IKET_RANGE_END("a");',
        'IKET_MARK("w", IKET_U32(threadIdx.x / 32)); IKET_MARK("b", IKET_I32(o[blockIdx.x]));',
        # What a loop's end tells of its bound, and its first and last turn.
        f"if (n <= 0) return; for (int i = 0; i < n; ++i) {{ if (i > 0) {POP} {PUSH} o[i] = i; }} {POP}",
        f"for (int i = 0; i < n; ++i) {{ if (i > 0) {POP} {PUSH} o[i] = i; }} if (n > 0) {POP}",
        f"{PUSH} o[1] = 1; for (int i = 0; i < n; ++i) {{ if (i == 0) {POP} o[i] = i; }} if (n <= 0) {POP}",
        f"for (int i = 0; i < n; ++i) {{ if (i == 0) {PUSH} o[i] = 2; if (i == n - 1) {POP} }}",
        f"for (int i = 0; i < n; i += 1) {{ if (i == 0) {PUSH} o[i] = 2; if (i + 1 == n) {{ {POP} }} }}",
        # Members, and what else is assigned to the same structure.
        f"if (p.on) {PUSH} p.out[n] = 1; if (p.on) {POP}",
        f"if (this->on) {PUSH} o[0] = 1; if (on) {POP}",
        f"s.open = false; for (;;) {{ if (s.open) {{ {POP} s.open = false; }} {PUSH} s.open = true; s.count += 1; "
        f"if (o[0]) break; }} if (s.open) {POP}",
        f"p.lane = threadIdx.x; {PUSH} o[0] = 1; if (p.on) {{ {POP} }} else {{ o[1] = 1; {POP} }}",
        # The default of a switch is none of its cases.
        f"switch (n) {{ case 0: {PUSH} break; case 1: o[0] = 1; break; default: o[1] = 1; }} if (n == 0) {POP}",
        f"if (n and not c) {PUSH} o[0] = 1; if (n && !c) {POP}",
        f"{PUSH} while (true) {{ o[0] += 1; }}",
        f"{PUSH} if (n) {{ for (;;) {{ o[1] += 1; }} }} o[0] = 1; {POP}",
        f"{PUSH} if (n) throw 3; o[0] = 1; {POP}",
    ],
)
def test_what_pairs_up_is_not_told_of(body):
    assert ids(body) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"if (n > 3) {PUSH} n = o[0]; if (n > 3) {POP}", ["not-decided"]),
        (f"if (p.on) {PUSH} o[0] = 1; p.on = o[1]; if (p.on) {POP}", ["not-decided"]),
        (f"if (p.on) {PUSH} o[0] = 1; p = q; if (p.on) {POP}", ["not-decided"]),
        (f"for (int i = 0; i < n; ++i) {{ if (i > 0) {POP} {PUSH} o[i] = i; }} {POP}", ["pop-without-push"]),
        (
            f"for (int i = 0; i < n; ++i) {{ if (i == 0) {PUSH} if (o[i]) break; o[i] = 2; if (i == n - 1) {POP} }}",
            ["push-without-pop"],
        ),
        (f"{PUSH} for (int i = 0; i < n; ++i) {{ o[i] = 2; if (i == m - 1) {POP} }}", ["pop-without-push"]),
        (f"{PUSH} while (true) {{ o[0] += 1; if (o[1]) break; }}", ["push-without-pop"]),
        (f"if (n > 3) {PUSH} o[0] = 1; if (c) {POP}", ["not-decided"]),
        (f"{PUSH} o[0] = 1; if (c) {POP}", ["push-without-pop"]),
        (f"if (c) {PUSH} o[0] = 1; {POP}", ["pop-without-push"]),
        (f"if (n == 1) {PUSH} o[0] = 1; if (n == 1) return; o[1] = 1;", ["push-without-pop"]),
        (f"for (int i = 0; i < n; ++i) {{ {PUSH} o[i] = i; }}", ["push-without-pop"]),
        (f"again: {PUSH} o[0] = 1; if (o[1]) goto again; {POP}", ["push-without-pop"]),
        ("Span s; s.begin(); if (n) return; o[0] = 1; s.end();", ["push-without-pop"]),
        (f'PUSHED("a"); o[0] = 1; if (n) return; {POP}', ["push-without-pop"]),
        (f"FOR_EACH(i, n) {{ {PUSH} if (o[i]) continue; o[i] = i; {POP} }}", ["push-without-pop"]),
        (f"auto f = [&](int i) {{ {PUSH} if (i) return; o[i] = 1; {POP} }}; f(1);", ["push-without-pop"]),
        (f"{PUSH} o[0] = 1; if (threadIdx.x % 2) {POP}", ["divergent-end"]),
        ('IKET_RANGE_START("a"); o[0] = 1; if (threadIdx.x == 0) IKET_RANGE_END("a");', ["divergent-end"]),
        (f"{PUSH} o[0] = 1; if (elect_one_sync()) {POP}", ["divergent-end"]),
        (f"{PUSH} o[0] = 1; if (selected(n)) {POP}", ["push-without-pop"]),
        (f"constexpr int k = 48; {PUSH} o[0] = 1; if (threadIdx.x < k) {POP} else {POP}", ["divergent-end"] * 2),
        (f"constexpr int kOdd = 48; {PUSH} o[0] = 1; if (threadIdx.x < kOdd) {POP} else {POP}", ["divergent-end"] * 2),
        (
            f"const int t = threadIdx.x; {PUSH} for (int i = t; i < n; i += 32) {{ o[i] = i; {POP} }}",
            ["divergent-end", "pop-without-push"],
        ),
        (f"{PUSH} cuda::memcpy_async(o, o, 4, o); {POP}", ["issue-time"]),
        (f"{PUSH} cute::SM90_TMA_LOAD_2D::copy(d, b, 0, o, n, n); {POP}", ["issue-time"]),
        (f"{PUSH} SM80_CP_ASYNC_CACHEALWAYS<uint128_t>::copy(o, o); {POP}", ["issue-time"]),
        (f"{PUSH} tma::load_async(o, o, n, b); {POP}", ["issue-time"]),
        (f"{PUSH} cute::SM90_TMA_LOAD_2D::PREFETCH::copy(d, n); SM90_TMA_LOAD_PREFETCH::copy(d, n); {POP}", []),
        (f"{PUSH} cute::copy(d, o); {POP}", []),
        (f"{PUSH} if (c) cuda::memcpy_async(o, o, 4, o); {POP}", ["issue-time"]),
        ('IKET_RANGE_PUSH("issue copy"); cuda::memcpy_async(o, o, 4, o); IKET_RANGE_POP();', []),
        (f"{PUSH} cuda::memcpy_async(o, o, 4, o); barrier.wait(token); {POP}", []),
        ('IKET_MARK("t", IKET_I32(o[threadIdx.x]));', ["lane-payload"]),
    ],
)
def test_what_does_not_pair_up_is_told_of(body, expected):
    assert sorted(ids(body)) == expected


@pytest.mark.parametrize("condition", ["A", "defined(A)", "A > 3", "!A", "A < 3"])
def test_a_directive_has_one_outcome_everywhere(condition):
    body = f"#if {condition}\n{PUSH}\n#endif\no[0] = 1;\n#if {condition}\n{POP}\n#endif"
    assert ids(body) == []
    assert ids(body.replace(f"#if {condition}\n{POP}", f"#if B\n{POP}")) == []
    assert ids(f"#if {condition}\n{PUSH}\n#endif\no[0] = 1;") == ["push-without-pop"]


@pytest.mark.parametrize(
    ("first", "second"),
    [("#ifdef A", "#if defined(A)"), ("#if A >= 4", "#if !(A < 4)"), ("#ifndef A", "#if !defined A")],
)
def test_directives_that_say_the_same_are_one(first, second):
    assert ids(f"{first}\n{PUSH}\n#endif\no[0] = 1;\n{second}\n{POP}\n#endif") == []
    assert ids(f"{first}\n{PUSH}\n#else\no[2] = 2;\n#endif\no[0] = 1;\n{second}\n#else\n{POP}\n#endif") != []


def test_a_range_is_empty_only_where_every_branch_of_a_directive_leaves_it_so():
    assert ids(f"{PUSH}\n#ifdef A\no[0] = 1;\n#endif\n{POP}") == []
    assert ids(f"{PUSH}\n#ifdef A\n#endif\n{POP}") == ["empty-range"]


def test_a_caller_answers_for_a_helper_that_leaves_a_range_open():
    helper = '__device__ void open_it(int* o) { IKET_RANGE_PUSH("x"); o[0] = 1; }\n'
    fine = helper + "__global__ void k(int* o) { open_it(o); o[1] = 1; IKET_RANGE_POP(); }"
    assert iket_rewrite.lint(fine) == ()
    wrong = helper + "__global__ void k(int* o) { open_it(o); o[1] = 1; }"
    assert [one.id for one in iket_rewrite.lint(wrong)] == ["push-without-pop"]
    assert [one.id for one in iket_rewrite.lint(helper)] == ["push-without-pop"]
