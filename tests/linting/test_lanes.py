# SPDX-License-Identifier: Apache-2.0
"""Which conditions part the lanes of a warp: by their expressions, and by what is known of their variables."""

from __future__ import annotations

import pytest

import iket_rewrite

HEAD = """
#define TID threadIdx.x
__device__ int tid() { return threadIdx.x; }
__device__ int role() { return threadIdx.x / 128; }
__device__ int lane_id() { int id; asm volatile("mov.u32 %0, %%laneid;" : "=r"(id)); return id; }
__device__ float warpReduceSum(float v) { for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d); return v; }
"""
PUSH = 'IKET_RANGE_PUSH("x"); o[0] = 1;'


def ids(before: str, condition: str) -> set[str]:
    body = f"{before} {PUSH} if ({condition}) {{ IKET_RANGE_POP(); return; }} o[1] = 1; IKET_RANGE_POP();"
    text = f"{HEAD}__global__ void kernel(int* o, int n, Params p)\n{{\n{body}\n}}\n"
    return {one.id for one in iket_rewrite.lint(text)}


@pytest.mark.parametrize(
    ("before", "condition"),
    [
        ("", "__any_sync(~0u, threadIdx.x > n)"),
        ("", "__syncthreads_or(threadIdx.x > n)"),
        ("", "tile.any(threadIdx.x > n)"),
        ("unsigned m = tile.ballot(o[threadIdx.x] > n);", "m == 0"),
        ("int m = tile.shfl(threadIdx.x, 0);", "m == 0"),
        ("int m = cg::reduce(tile, o[threadIdx.x], cg::plus<int>());", "m == 0"),
        ("float m = warpReduceSum(o[threadIdx.x]);", "m == 0"),
        ("__shared__ int s; int v = o[threadIdx.x]; if (threadIdx.x == 0) s = v; __syncthreads();", "s == 0"),
        ("__shared__ int t, s[128]; s[threadIdx.x] = threadIdx.x; __syncthreads();", "s[0] == 0"),
        ("int i = threadIdx.x; o[i] = 1; i = blockIdx.x;", "i >= n"),
        ("p.lane = threadIdx.x;", "p.trace"),
        ("", "threadIdx.x < blockDim.x / 2"),
        ("", "threadIdx.x < NUM_THREADS - 32"),
        ("", "role() == 1"),
        ("", "cutlass::canonical_warp_idx_sync() == 0"),
    ],
)
def test_a_condition_that_is_the_same_for_a_warp_may_end_a_range(before, condition):
    assert ids(before, condition) == set()


@pytest.mark.parametrize(
    ("before", "condition"),
    [
        ("", "TID >= n"),
        ("", "tid() >= n"),
        ("", "cute::get_lane_id() > n"),
        ("const int l = cutlass::canonical_lane_idx();", "l > n"),
        ("int l = lane_id();", "l > n"),
        ("int i = 0; i = threadIdx.x;", "i >= n"),
        ("int i = blockIdx.x * 128; i += threadIdx.x;", "i >= n"),
        ("int i = 0; if (n) i = threadIdx.x;", "i >= n"),
        ("int i = threadIdx.x; if (n) i = 0;", "i >= n"),
        ("int v = o[threadIdx.x];", "v > n"),
        ("", "threadIdx.x < blockDim.x - n"),
    ],
)
def test_a_condition_that_parts_lanes_may_not(before, condition):
    assert ids(before, condition) == {"divergent-end"}


def test_a_lambda_knows_what_it_captures():
    work = 'auto f = [&] { IKET_RANGE_PUSH("x"); o[0] = 1; if (t > n) { IKET_RANGE_POP(); return; } o[1] = 1; '
    text = f"__global__ void kernel(int* o, int n) {{ const int t = VALUE; {work} IKET_RANGE_POP(); }}; f(); }}"
    assert [one.id for one in iket_rewrite.lint(text.replace("VALUE", "threadIdx.x"))] == ["divergent-end"]
    assert iket_rewrite.lint(text.replace("VALUE", "threadIdx.x / 32")) == ()
