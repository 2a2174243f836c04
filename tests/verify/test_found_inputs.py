# SPDX-License-Identifier: Apache-2.0
"""Inputs on which the verifier once hung, raised a false alarm, or buried its finding under consequences."""

from __future__ import annotations

import pytest
from builds import needs_nvcc
from toolbox import ROOT, nvcc, nvrtc

import iket_rewrite

HEADER = "#include <iket_rewrite/iket.cuh>\n"
KERNEL = 'extern "C" __global__ void kernel'


def judged(source: str, **options) -> iket_rewrite.Report:
    return iket_rewrite.verify(nvrtc(iket_rewrite.rewrite(HEADER + source).text), official=True, **options)


def rules(report: iket_rewrite.Report) -> list[str]:
    return [finding.rule for finding in report.findings]


@pytest.mark.parametrize("times", [24, 64])
def test_many_scoped_ranges_in_a_row_take_no_time_and_pair_up(times):
    report = judged(
        f"{KERNEL}(float* o) {{\n#pragma unroll\n  for (int i = 0; i < {times}; ++i) {{\n"
        '    IKET_RANGE("u", IKET_I32(i)); o[i * 32 + threadIdx.x] *= 2;\n  }\n}',
        strict=True,
    )
    assert rules(report) == []
    assert len(report.sites) == 2 * times


def test_a_device_function_that_is_not_inlined_is_judged_inside_its_kernel():
    report = judged(
        '__device__ __noinline__ float f(float x, int n) { IKET_RANGE("f", IKET_F32(x)); '
        "for (int i = 0; i < n; ++i) x = x * x + 1; return x; }\n"
        f'{KERNEL}(float* o, int n) {{ IKET_RANGE("k"); o[threadIdx.x] = f(o[threadIdx.x], n); }}',
        strict=True,
    )
    assert rules(report) == ["not-decided"]
    assert len(report.sites) == 4


def test_a_kernel_may_keep_the_time_in_its_own_shared_memory():
    report = judged(
        f"{KERNEL}(float* o) {{ __shared__ volatile unsigned t[64]; unsigned a;\n"
        '  asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(a)); t[6] = a; t[7] = threadIdx.x;\n'
        '  IKET_MARK("m", IKET_F32(o[0])); __syncthreads(); o[1] = t[threadIdx.x & 7]; }',
        strict=True,
    )
    assert rules(report) == []
    assert [row[4] for row in report.sites[0].instructions] == ["timestamp", "payload", "trigger"]


def test_functions_that_were_not_looked_at_have_no_unused_events():
    source = f'{KERNEL}_a() {{ IKET_MARK("a"); }}\n{KERNEL}_b() {{ IKET_MARK("b"); }}'
    assert rules(judged(source)) == []
    assert rules(judged(source, kernel="kernel_a")) == []


def test_a_pmevent_of_the_users_own_is_named_as_it_was_written():
    report = judged(KERNEL + '(int* o) { IKET_MARK("a"); o[0] = 1; asm volatile("pmevent 7;"); }')
    message = next(finding.message for finding in report.findings if finding.rule == "undeclared-event")
    assert "128 (pmevent 7)" in message


@needs_nvcc
def test_two_units_rewritten_apart_are_two_plans_and_nothing_more(tmp_path):
    units = []
    for name in ("one", "two"):
        text = iket_rewrite.rewrite(
            f'{HEADER}__global__ void {name}(int* o) {{ IKET_MARK("{name}", 1); o[0] = 1; }}\n'
        ).text
        (tmp_path / f"{name}.cu").write_text(text, encoding="utf-8")
        done = nvcc(tmp_path / f"{name}.cu", tmp_path / f"{name}.o", "-arch=sm_90a", "-rdc=true", "-c")
        assert done.returncode == 0, done.stderr
        units.append(str(tmp_path / f"{name}.o"))
    (tmp_path / "main.cu").write_text("int main() { return 0; }\n", encoding="utf-8")
    done = nvcc(tmp_path / "main.cu", tmp_path / "app", "-arch=sm_90a", "-rdc=true", *units)
    assert done.returncode == 0, done.stderr
    report = iket_rewrite.verify(tmp_path / "app")
    assert rules(report) == ["two-plans"]


@pytest.mark.parametrize("method", ["native", "extended"])
def test_a_timestamp_that_is_kept_on_the_stack_is_known_where_nvidias_parser_knows_it(method):
    source = (ROOT / "tests" / "gpu" / "pressed.cu").read_text(encoding="utf-8")
    report = iket_rewrite.verify(nvrtc(iket_rewrite.rewrite(source, method=method).text), official=True)
    assert len(report.sites) == 3
    if method == "native":
        assert rules(report) == []
    else:
        assert "id-unproven" in rules(report)
