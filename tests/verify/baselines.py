# SPDX-License-Identifier: Apache-2.0
"""Kernels for comparisons, compiled with their marks and without, once for all tests."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

import pytest
from building.compilers import command, environment
from builds import CUDA, TILELANG, cubin, nvrtc_options
from toolbox import INCLUDE, NVCC, ROOT, nvrtc

import iket_rewrite

HEAD = '#include <iket_rewrite/iket.cuh>\nextern "C" __global__ void kernel'

#: One range of each label, named by it; nothing of one can move into another.
KINDS = (
    HEAD
    + """(const float* in, volatile float* out, float scale) {
  __shared__ float tile[1024];
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(tile + 4 * threadIdx.x));
  const float* from = in + 4 * threadIdx.x;
  IKET_RANGE_PUSH("issue only");
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
  IKET_RANGE_POP();
  IKET_RANGE_PUSH("empty");
  IKET_RANGE_POP();
  IKET_RANGE_START("wait");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  IKET_RANGE_END("wait");
  IKET_RANGE_PUSH("memory");
  out[threadIdx.x] = tile[threadIdx.x];
  IKET_RANGE_POP();
  float value = scale;
  IKET_RANGE_PUSH("compute");
#pragma unroll
  for (int round = 0; round < 8; ++round) asm volatile("fma.rn.f32 %0, %0, %0, %1;" : "+f"(value) : "f"(scale));
  IKET_RANGE_POP();
  out[threadIdx.x + 1024] = value;
}
"""
)
#: What `KINDS` holds, by range: the instructions that its source asks for, by class.
ASKED = {
    "issue only": {"copy issue": 2},
    "empty": {},
    "wait": {"wait": 2},
    "memory": {"global": 1, "shared": 1},
    "compute": {"float": 8},
}


def marked(source: str, arch: str = "sm_90a", **options: object) -> bytes:
    """Compile a source with its marks."""
    return _compiled(iket_rewrite.rewrite(source, path="kernel.cu").text, arch, **options)


def plain(source: str, arch: str = "sm_90a", **options: object) -> bytes:
    """Compile a source without its marks: the macros are nothing then."""
    return _compiled(source, arch, **options)


@functools.cache
def _compiled(text: str, arch: str, **options) -> bytes:
    return nvrtc(text, arch, **options)


_FIXTURES = {fixture.path.stem: fixture for fixture in (*CUDA, *TILELANG)}


@functools.cache
def fixture_pair(name: str) -> tuple[bytes, bytes]:
    """Return a fixture's builds without marks and with them."""
    fixture = _FIXTURES[name]
    arch = "sm_90a" if "sm_90a" in fixture.arches else fixture.arches[0]
    text = iket_rewrite.strip(fixture.path.read_text(encoding="utf-8")).text
    return nvrtc(text, arch, **nvrtc_options(fixture.origin)), cubin(fixture, arch)


@functools.cache
def pipeline_pair() -> tuple[bytes, bytes]:
    """Return the TMA example with line info, built by nvcc without marks and with them."""
    if NVCC is None:
        pytest.skip("no nvcc here (PATH, or the variable NVCC)")
    source, built = ROOT / "examples" / "cuda" / "tma_pipeline" / "main.cu", []
    with tempfile.TemporaryDirectory() as folder:
        for tool in ([NVCC], command("nvcc_command")):
            file = Path(folder, "pipeline.cubin")
            line = [*tool, "-cubin", "-arch=sm_90a", "-std=c++17", "-lineinfo", f"-I{INCLUDE}", source, "-o", file]
            done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment())
            assert done.returncode == 0, done.stderr
            built.append(file.read_bytes())
    return built[0], built[1]


def only(comparison: iket_rewrite.Comparison):
    """Return the one kernel of a comparison."""
    (kernel,) = comparison.kernels
    return kernel
