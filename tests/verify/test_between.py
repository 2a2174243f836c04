# SPDX-License-Identifier: Apache-2.0
"""What lies between the ends of ranges: counted against the source, labelled, and with what can not be counted said."""

from __future__ import annotations

from collections import Counter

import pytest
from builds import needs_nvcc
from toolbox import ROOT
from verify.baselines import ASKED, HEAD, KINDS, fixture_pair, marked, only, pipeline_pair, plain

import iket_rewrite


def contents(source: str, arch: str = "sm_90a"):
    """Return what the ranges of a kernel hold, by their name."""
    return {one.name: one for one in only(iket_rewrite.compare_binaries(None, marked(source, arch))).ranges}


@pytest.mark.parametrize(("arch", "info"), [("sm_90a", False), ("sm_90a", True), ("sm_100a", False), ("sm_120a", True)])
def test_each_label_is_told(arch, info):
    kernel = only(iket_rewrite.compare_binaries(plain(KINDS, arch, lineinfo=info), marked(KINDS, arch, lineinfo=info)))
    assert {one.name: one.label for one in kernel.ranges} == {name: name for name in ASKED}
    silent = {"integer", "control", "other"}
    for one in kernel.ranges:
        assert {name: count for name, count in one.inside.items() if name not in silent} == ASKED[one.name]
        assert one.own == one.inside
        assert (one.loops, one.branches, one.calls, len(one.ends)) == (False, False, False, 1)
    if info:
        text = KINDS.splitlines()
        (wait,) = (one.lines.values() for one in kernel.ranges if one.name == "wait")
        assert [text[line - 1].split("(")[0].strip() for lines in wait for line in lines] == [
            "asm volatile",
            "__syncthreads",
        ]
        (memory,) = (one.spans for one in kernel.ranges if one.name == "memory")
        assert memory == f"kernel.cu:{text.index('  out[threadIdx.x] = tile[threadIdx.x];') + 1}"


def test_a_tensor_core_pipeline():
    kernel = only(iket_rewrite.compare_binaries(*fixture_pair("gemm_sm_90a")))
    labels = Counter((one.name, one.label) for one in kernel.ranges)
    # TileLang's `copy` is empty in the consumer, which is what iket-verify warns of; the products are awaited.
    assert labels == {("copy", "empty"): 2, ("gemm", "compute"): 2, ("tile", "compute"): 1}
    tile = next(one for one in kernel.ranges if one.name == "tile")
    assert tile.inside["mma"] == sum(one.inside["mma"] for one in kernel.ranges if one.name == "gemm") == 8
    assert tile.own["global"] == tile.inside["global"] == 64
    assert "mma" not in tile.own


@needs_nvcc
def test_the_tma_example_by_its_lines():
    comparison = iket_rewrite.compare_binaries(*pipeline_pair())
    kernel = only(comparison)
    assert comparison.ok
    assert [order.known_by for order in kernel.orders] == ["line"] * 3
    assert {one.name: one.label for one in kernel.ranges} == {
        "consumer": "compute",
        "wait for tile": "wait",
        "add": "compute",
        "producer": "memory",
        "wait for room": "wait",
    }
    text = (ROOT / "examples" / "cuda" / "tma_pipeline" / "kernel.cuh").read_text(encoding="utf-8").splitlines()
    for one in kernel.ranges:
        assert one.source.endswith("kernel.cuh")
        lines = " ".join(text[line - 1] for line in one.lines[one.source])
        assert ("barrier_wait(&full" in lines) == (one.name in ("consumer", "wait for tile"))
        assert ("sum += tiles" in lines or "for (int index" in lines) == (one.name in ("consumer", "add"))
    # Of events that follow each other directly the binary has the first one's line only.
    assert '"consumer"' in next(text[one.line - 1] for one in kernel.ranges if one.name == "consumer")


BRANCHES = HEAD + (
    "(volatile float* out, int n) {\n"
    '  IKET_RANGE_PUSH("loop");\n  for (int at = 0; at < n; ++at) out[at] = 1;\n  IKET_RANGE_POP();\n'
    '  IKET_RANGE_START("either");\n'
    '  if (n > 7) { out[0] = 2; __syncthreads(); IKET_RANGE_END("either"); out[5] = 1; __syncthreads(); }\n'
    '  else { out[1] = 3; out[2] = 4; IKET_RANGE_END("either"); }\n  out[9] = 1;\n}\n'
)


def test_loops_and_ends_on_different_paths_are_said():
    ranges = contents(BRANCHES)
    assert ranges["loop"].loops
    assert not ranges["either"].loops
    assert ranges["either"].branches
    assert len(ranges["either"].ends) == 2
    # Both paths are counted, and nothing that lies behind either end.
    assert (ranges["either"].inside["global"], ranges["either"].inside["wait"]) == (3, 1)


CALLS = (
    "__device__ __noinline__ float far(float x) { return x * x + sqrtf(x); }\n"
    + HEAD
    + '(float* out) { IKET_RANGE_PUSH("call"); out[0] = far(out[1]); IKET_RANGE_POP(); }\n'
)


def test_a_call_is_said():
    assert contents(CALLS)["call"].caveats.endswith("calls")


ASYNCHRONOUS = HEAD + (
    "(unsigned long long* out, unsigned long long a, unsigned long long b) {\n"
    "#if __CUDA_ARCH__ >= 1000\n"
    '  IKET_RANGE_PUSH("product");\n'
    '  asm volatile("{.reg .pred p; setp.ne.u32 p, 1, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}"'
    ' :: "r"(0), "l"(a), "l"(b), "r"(0) : "memory");\n'
    "  IKET_RANGE_POP();\n"
    '  IKET_RANGE_PUSH("tensor memory");\n  unsigned x;\n'
    '  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(0));\n'
    '  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");\n'
    "  IKET_RANGE_POP();\n  *out = x;\n#endif\n}\n"
)


def test_tensor_memory_and_a_product_that_is_only_issued():
    ranges = contents(ASYNCHRONOUS, "sm_100a")
    assert (ranges["product"].label, ranges["product"].inside["mma"]) == ("issue only", 1)
    assert (ranges["tensor memory"].label, ranges["tensor memory"].inside["tensor memory"]) == ("memory", 1)


def test_one_range_inside_another_counts_in_both_and_is_own_in_one():
    source = HEAD + (
        '(volatile float* out) {\n  IKET_RANGE_PUSH("outer");\n  out[0] = 1;\n  IKET_RANGE_PUSH("inner");\n'
        "  out[1] = 1;\n  out[2] = 1;\n  IKET_RANGE_POP();\n  out[3] = 1;\n  IKET_RANGE_POP();\n}\n"
    )
    ranges = contents(source)
    assert (ranges["outer"].inside["global"], ranges["outer"].own["global"]) == (4, 2)
    assert ranges["inner"].inside["global"] == ranges["inner"].own["global"] == 2
