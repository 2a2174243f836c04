# SPDX-License-Identifier: Apache-2.0
"""Macros of the file: those that leave the path, that issue or wait, and those around work that they are given."""

from __future__ import annotations

import pytest

import iket_rewrite

HEAD = """
#define RETURN_IF(c) if (c) return
#define BOUNDS(i, n) RETURN_IF((i) >= (n))
#define LEAVE return
#define STOP_AT(c) if (c) break
#define SKIP(c) if (c) continue
#define OUT_IF(c) if (c) goto out
#define SPIN(c) while (true) { if (c) break; }
#define DIE() do { printf("return"); __trap(); } while (0)
#define CHECK(c) do { if (!(c)) { printf("%s; return", #c); __trap(); } } while (0)
#ifdef NDEBUG
#define VERIFY(c)
#else
#define VERIFY(c) do { if (!(c)) return; } while (0)
#endif
#define CHANGED(c) if (c) return
#undef CHANGED
#define CHANGED(c) ((void)(c))
#define GONE(c) if (c) return
#define CASE(x) case x: work(x); break
#define STEP o[0] = 1
#define EACH(n, f) for (int i = 0; i < n; ++i) f(i)
#define DRAIN() asm volatile("cp.async.wait_all;" ::: "memory")
#define COPY(to, from) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from))
#define TIMED(name, ...) do { IKET_RANGE_PUSH(name); __VA_ARGS__; IKET_RANGE_POP(); } while (0)
#define SCOPED(name, ...) { IKET_RANGE(name); __VA_ARGS__ }
#define INSTANT(name) { IKET_RANGE(name); IKET_MARK(name "/mark"); }
"""
PUSH, POP = 'IKET_RANGE_PUSH("x");', "IKET_RANGE_POP();"


def ids(body: str) -> list[str]:
    text = f"{HEAD}__global__ void kernel(int* o, int n, bool c)\n{{\n{body}\n}}\n"
    return [one.id for one in iket_rewrite.lint(text)]


@pytest.mark.parametrize(
    "body",
    [
        f"{PUSH} RETURN_IF(c); o[0] = 1; {POP}",
        f"{PUSH} BOUNDS(n, 3); o[0] = 1; {POP}",
        f"{PUSH} GONE(n); o[0] = 1; {POP}\n#undef GONE\n",
        f"{PUSH} switch (n) {{ CASE(1); case 2: return; }} o[0] = 1; {POP}",
        f"{PUSH} if (c) LEAVE; o[0] = 1; {POP}",
        f"{PUSH} o[0] = 1; VERIFY(c); {POP}",
        f"for (;;) {{ {PUSH} STOP_AT(o[0]); o[0] = 1; {POP} }}",
        f"for (int i = 0; i < n; ++i) {{ {PUSH} SKIP(o[i]); o[i] = 1; {POP} }}",
        f"{PUSH} OUT_IF(c); o[0] = 1; {POP} out: o[1] = 1;",
        'TIMED("a", if (c) return; o[0] = 1);',
        f'{PUSH} SCOPED("a", if (c) return; o[0] = 1;) {POP}',
        f"{PUSH} if (n) {{ for (int i = 0; i < n; ++i) {{ RETURN_IF(o[i]); }} }} o[0] = 1; {POP}",
    ],
)
def test_a_macro_that_leaves_the_path_leaves_ranges_open(body):
    assert ids(body) == ["push-without-pop"]


def test_a_macro_that_leaves_the_path_leaves_token_ranges_open():
    assert ids('IKET_RANGE_START("a"); RETURN_IF(c); o[0] = 1; IKET_RANGE_END("a");') == ["start-without-end"]


@pytest.mark.parametrize(
    "body",
    [
        f"RETURN_IF(c); {PUSH} o[0] = 1; {POP}",
        'IKET_RANGE("x"); RETURN_IF(c); o[0] = 1;',
        f"{PUSH} CHECK(c); o[0] = 1; {POP}",
        f"{PUSH} if (c) {{ DIE(); return; }} o[0] = 1; {POP}",
        f"for (int i = 0; i < n; ++i) {{ {PUSH} SPIN(o[i]); o[i] = 1; {POP} }}",
        f"{PUSH} EACH(n, [&](int i) {{ if (i) return; o[i] = 1; }}); {POP}",
        'TIMED("a", each(n, [&](int i) { if (i) return; o[i] = 1; }));',
        'SCOPED("a", if (c) return; o[0] = 1;)',
        f"int VERIFY = 3; {PUSH} o[0] = VERIFY; {POP}",
        f"{PUSH} CHANGED(c); o[0] = 1; {POP}",
        f"{PUSH} switch (n) {{ CASE(1); CASE(2); default: break; }} {POP}",
        'SCOPED("a", o[0] = 1;) SCOPED("b", o[1] = 1;)',
        f'{PUSH} cuda::memcpy_async(o, o, 4, o); TIMED("wait", bar.wait()); {POP}',
        f"{PUSH} cuda::memcpy_async(o, o, 4, o); DRAIN(); {POP}",
        'TIMED("copy", COPY(3, o); DRAIN());',
    ],
)
def test_a_macro_that_does_not_is_not_told_of(body):
    assert ids(body) == []


@pytest.mark.parametrize(
    "body",
    [f"{PUSH} COPY(3, o); {POP}", 'TIMED("copy", COPY(3, o));', 'TIMED("copy", cuda::memcpy_async(o, o, 4, o));'],
)
def test_a_macro_that_issues_is_told_of(body):
    assert ids(body) == ["issue-time"]


@pytest.mark.parametrize("name", ["LOAD_TILE", "STEP"])
def test_a_macro_without_parentheses_is_work(name):
    assert ids(f"{PUSH} {name}; {POP}") == []


def test_a_macro_without_parentheses_waits_and_issues():
    head = '#define WAIT asm volatile("cp.async.wait_all;" ::: "memory")\n'
    text = f"{head}__global__ void kernel(int* o) {{ {PUSH} __pipeline_memcpy_async(o, o, 4); WAIT; {POP} }}\n"
    assert iket_rewrite.lint(text) == ()


def test_an_included_file_may_hold_anything():
    include = '\n#include "body.inc"\n'
    assert ids(f"{PUSH}{include}{POP}") == []
    assert ids(f"{PUSH} cuda::memcpy_async(o, o, 4, o);{include}{POP}") == []
    assert ids(f"{PUSH} o[0] = 1;{include}") == ["not-decided"]
    assert ids(f"{include}{PUSH} {POP} o[0] = 1;") == ["empty-range"]


def test_a_block_of_a_macro_with_nothing_but_events_is_empty():
    assert ids('INSTANT("a") o[0] = 1;') == ["empty-range"]
