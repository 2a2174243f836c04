# SPDX-License-Identifier: Apache-2.0
"""Ranges whose two ends are under conditions that go together: not decided, and never called unbalanced.

Beside each kind stands one that is like it and does not pair up on some path whatever the values are.
"""

from __future__ import annotations

import pytest
from toolbox import FIXTURES, nvrtc
from verify.ranged import ARCHES, rules

import iket_rewrite

PUSH, POP = 'IKET_RANGE_PUSH("r")', "IKET_RANGE_POP()"

ELECT = 'unsigned e; asm volatile("{.reg .pred P; elect.sync _|P, 0xffffffff; selp.u32 %0, 1, 0, P;}" : "=r"(e));'


def _switch(count: int, event: str) -> str:
    cases = (f"case {one}: {event.format(one)}; break;" for one in range(1, count + 1))
    return f"switch (threadIdx.x / 32) {{ {' '.join(cases)} default:; }}"


#: Pair up by what the values mean.
GO_TOGETHER = {
    "first and last turn": f"for (int i = 0; i < n; ++i) {{ if (i == 0) {PUSH}; o[i] += 1; if (i == n - 1) {POP}; }}",
    "first and last turn, not unrolled": (
        f"#pragma unroll 1\nfor (int i = 0; i < n; ++i) {{ if (i == 0) {PUSH}; o[i] += 1; if (i == n - 1) {POP}; }}"
    ),
    "two turns that parameters name": (
        "for (int i = 0; i < n; ++i) { if (i == o[0]) " + PUSH + "; o[i + 2] += 1; if (i == o[1]) " + POP + "; }"
    ),
    "every eighth turn": (
        f"for (int i = 0; i < n; ++i) {{ if (i % 8 == 0) {PUSH}; o[i] += 1; if (i % 8 == 7 || i == n - 1) {POP}; }}"
    ),
    "a flag": (
        f"bool on = false; for (int i = 0; i < n; ++i) {{ if (o[i] > 3 && !on) {{ {PUSH}; on = true; }} o[i] *= 2;"
        f" if (o[i] < 0 && on) {{ {POP}; on = false; }} }} if (on) {POP};"
    ),
    "a flag of a loop, read behind it": (
        f"int on = 0; for (int i = 0; i < n; ++i) if (o[i] > 3 && !on) {{ {PUSH}; on = 1; }} o[n] = 1; if (on) {POP};"
    ),
    "a count": (
        f"int depth = 0; for (int i = 0; i < n; ++i) {{ if (o[i] == 1) {{ {PUSH}; ++depth; }}"
        f" else if (o[i] == 2 && depth > 0) {{ {POP}; --depth; }} o[i] += i; }}"
        f" while (depth > 0) {{ {POP}; --depth; }}"
    ),
    "the work of a turn ends in the next one": (
        f"bool on = false; for (int i = blockIdx.x; i < n; i += gridDim.x) {{ if (on) {POP}; {PUSH}; on = true;"
        f" o[i] += 1; }} if (on) {POP};"
    ),
    "a stage that a variable names": (
        f"int stage = 0; while (o[9] < n) {{ if (stage == 0) {{ {PUSH}; stage = 1; }} else if (stage == 1) {{ ++o[9];"
        f" stage = o[1] & 1 ? 1 : 2; }} else {{ {POP}; stage = 0; }} }} if (stage != 0) {POP};"
    ),
    "bits of one value": (f"if (n & 1) {PUSH}; o[0] += 1; if ((n & 3) == 2) return; o[1] += 1; if (n & 1) {POP};"),
    "two parts of one condition": (
        f"const bool a = o[0] > n, b = o[1] > n; if (a && b) {PUSH}; o[2] = 1; if (!a) return; o[3] = 1; if (b) {POP};"
    ),
    "a float that is read once": (
        f"const float x = ((volatile float*)o)[0]; if (x > 5) {PUSH}; o[1] = 1; if (x < 3) return; o[2] = 1;"
        f" if (x > 5) {POP};"
    ),
    "a value that is read again": f"if (o[5] > 3) {PUSH}; o[1] += 1; __syncthreads(); if (o[5] > 3) {POP};",
    "a flag in shared memory": (
        "__shared__ volatile int f; if (threadIdx.x == 0) f = o[0]; __syncthreads();"
        f" if (f) {PUSH}; o[1] += 1; __syncthreads(); if (f) {POP};"
    ),
    "as many closed as a loop opened": (
        f"#pragma unroll 1\nfor (int i = 0; i < 6; ++i) {{ {PUSH}; o[i] += 1; }}\n" + f"{POP}; o[9] += 1; " * 6
    ),
    "a range in the turns beside another": (
        f"{PUSH}; if (o[31] == 1) {{ bool on = false; for (int i = 0; i < n; ++i) {{ if (on) {POP}; {PUSH}; on = true;"
        f" o[i] += 1; }} if (on) {POP}; }} {POP};"
    ),
    "every rest of a division": (
        f"{PUSH}; switch ((unsigned)o[0] % 5) {{ case 0: o[1] += 1; {POP}; break; case 1: o[2] *= 3; {POP}; break;"
        f" case 2: o[3] = 1; {POP}; break; case 3: o[5] = o[6] = 4; {POP}; break;"
        f" case 4: o[8] = 4; o[6] = 5; {POP}; break; }}"
    ),
    "two switches with a branch between them": _switch(3, 'IKET_RANGE_PUSH("e{}")')
    + f" o[15] = 3; if (n > 3) {{ {PUSH}; o[16] = n; {POP}; }}"
    + _switch(3, POP),
    "two longer switches with a branch between them": _switch(5, 'IKET_RANGE_PUSH("e{}")')
    + " if (o[3] > 1 && threadIdx.x < 64) o[16] = n;"
    + _switch(5, POP),
    "a lane by two names": (
        'unsigned l; asm("mov.u32 %0, %%laneid;" : "=r"(l));'
        f" if ((threadIdx.x & 31) == 0) {PUSH}; o[0] = n; if (l == 0) {POP};"
    ),
    "the first thread and the elected one": (
        f"if (threadIdx.x == 0) {PUSH}; o[0] = n; {ELECT} if (threadIdx.x < 32 && e) {POP};"
    ),
    "two elections": f"{{ {ELECT} if (!e) {PUSH}; }} o[0] = n; {ELECT} if (!e) {POP};",
    "two votes of a CTA": (
        f"const int p = o[threadIdx.x]; if (__syncthreads_or(p)) {PUSH}; o[0] = n; if (__syncthreads_or(p)) {POP};"
    ),
    "a reduction and a vote": (
        f"const int p = o[threadIdx.x] > 0; if (__reduce_or_sync(~0u, p)) {PUSH}; o[0] = n;"
        f" if (__any_sync(~0u, p)) {POP};"
    ),
    "rank and index of a block": (
        'unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));'
        f" if (r == 0) {PUSH}; o[0] = n; if ((blockIdx.x & 1) == 0) {POP};"
    ),
    "a switch behind the test of its value": (
        f"const int w = threadIdx.x / 32; if (w < 4) {{ {PUSH}; {POP}; }} else switch (w) {{ case 0: {POP}; break;"
        f" case 1: o[4] = n; {POP}; break; case 2: o[5] = 2 * n; {POP}; break; default: o[6] = 3; }}"
    ),
    "a token range of a flag": (
        'int on = 0; for (int i = 0; i < n; ++i) { if (o[i] == 4 && !on) { IKET_RANGE_START("t"); on = 1; } o[i] += 1;'
        ' if (on && o[i] == 9) { IKET_RANGE_END("t"); on = 0; } } if (on) IKET_RANGE_END("t");'
    ),
}

#: Pair up by what comparisons of one value with constants tell of one another: no finding.
TELL_OF_ONE_ANOTHER = {
    "warps": (
        f"if (threadIdx.x / 32 == 0) {PUSH}; o[0] += 1; if (threadIdx.x / 32 == 3) return; o[1] += 1;"
        f" if (threadIdx.x / 32 == 0) {POP};"
    ),
    "threads": f"if (threadIdx.x < 64) {PUSH}; o[0] += 1; if (threadIdx.x == 99) return; if (threadIdx.x < 64) {POP};",
    "a chain of warps": (
        f'const int w = threadIdx.x / 32; if (w == 0) {PUSH}; else if (w == 1) IKET_RANGE_PUSH("s"); o[1] += 1;'
        f" if (w == 2) return; o[3] += 1; if (w <= 1) {POP};"
    ),
    "a parameter": f"if (n > 5) {PUSH}; o[0] += 1; if (n < 3) return; o[1] += 1; if (n > 5) {POP};",
    "a value that is read once": (
        f"const int x = o[0]; if (x > 5) {PUSH}; o[1] += 1; if (x < -3) return; o[2] += 1; if (x > 5) {POP};"
    ),
    "a warp that leaves from a loop": (
        f"const int w = __shfl_sync(~0u, threadIdx.x / 32, 0); if (w == 0) {PUSH};"
        " for (int i = 0; i < n; ++i) { if (w == 1) { o[i] += 3; if (o[i + 1] == 4) return; } else o[i] *= 2; }"
        f" if (w == 0) {POP};"
    ),
    "a group of warps by a broadcast index": (
        "const int w = __shfl_sync(~0u, threadIdx.x / 32, 0);"
        f" if (w >= 4 && w < 8) {PUSH}; o[0] += n; if (w == 2) return;"
        f" o[1] += n; if (w >= 4 && w < 8) {POP};"
    ),
    "warps that leave before a group's end": (
        "const int w = __shfl_sync(~0u, threadIdx.x / 32, 0);"
        f" if (w >= 3 && w < 8) {PUSH}; o[0] += n; if (w < 3) return;"
        f" o[1] += n; if (w < 8) {POP};"
    ),
    "twelve warps": "const int w = threadIdx.x / 32;"
    + "".join(f"if (w == {i}) {PUSH}; o[{i}] += 1; if (w == {i}) {POP}; __syncthreads();" for i in range(12)),
}

#: Do not pair up on some path, whatever the values are.
NEVER = {
    "a return in a turn": f"for (int i = 0; i < n; ++i) {{ {PUSH}; if (o[i] < 0) return; o[i] += 1; {POP}; }}",
    "a turn that forgets": f"for (int i = 0; i < n; ++i) {{ {PUSH}; o[i] += 1; if (o[i] != 7) {POP}; }}",
    "each turn opens": f"for (int i = 0; i < n; ++i) {{ {PUSH}; o[i] += 1; }}",
    "each turn closes": f"{PUSH}; for (int i = 0; i < n; ++i) {{ o[i] += 1; {POP}; }}",
    "a return beside a flag": (
        f"bool on = o[0] > 2; {PUSH}; for (int i = 0; i < n; ++i) {{ if (o[i] == 3) return; o[i] += on; }} {POP};"
    ),
    "a search that may find nothing": (
        f"{PUSH}; for (int i = 0; i < n; ++i) if (o[i] == 7) {{ {POP}; o[0] = i; break; }}"
    ),
    "two conditions outside loops": f"const bool a = o[0] > n, b = o[1] > n; if (a) {PUSH}; o[2] = 1; if (b) {POP};",
    "a range that is opened under a condition": f"if (o[0] > n) {PUSH}; o[2] = 1; {POP};",
    "a return of any warp": (
        f"if (threadIdx.x / 32 == 0) {PUSH}; o[0] += 1; if (o[9] == 3) return; if (threadIdx.x / 32 == 0) {POP};"
    ),
    "what no case names": (
        f"{PUSH}; switch (o[0]) {{ case 0: o[1] = 1; {POP}; break; case 1: o[2] = 2; {POP}; break; }}"
    ),
    "a token range left by continue": (
        'for (int i = 0; i < n; ++i) { IKET_RANGE_START("t"); if (o[i] == 3) return; o[i] += 1; IKET_RANGE_END("t"); }'
    ),
}


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", GO_TOGETHER)
def test_conditions_that_go_together_are_not_called_a_fault(name, arch):
    assert rules(GO_TOGETHER[name], arch) <= {"not-decided"}


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", TELL_OF_ONE_ANOTHER)
def test_comparisons_of_one_value_tell_of_one_another(name, arch):
    assert rules(TELL_OF_ONE_ANOTHER[name], arch) == set()


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", NEVER)
def test_what_never_pairs_up_is_told(name, arch):
    assert rules(NEVER[name], arch) == {"unbalanced-range"}


@pytest.mark.parametrize("stem", ["flags", "state_machines"])
def test_the_kernels_of_the_linter_are_not_decided(stem):
    text = (FIXTURES / "lint" / "clean" / f"{stem}.cu").read_text(encoding="utf-8")
    report = iket_rewrite.verify(nvrtc(iket_rewrite.rewrite(text).text))
    assert report.ok
    (finding,) = [one for one in report.findings if one.rule == "not-decided"]
    assert finding.message.endswith("unless the conditions of its two ends go together")
