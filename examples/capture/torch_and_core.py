# SPDX-License-Identifier: Apache-2.0
"""Capture an annotated CUDA kernel that works on PyTorch's tensors, in the process, and print how long its parts take.

Run: python examples/capture/torch_and_core.py
"""

from __future__ import annotations

import ctypes

import torch
from cuda.core import Device, Kernel, LaunchConfig, Program, ProgramOptions, launch

import iket_rewrite

SOURCE = """
#include <iket_rewrite/iket.cuh>

extern "C" __global__ void square(const float* in, float* out, int tiles) {
  IKET_RANGE("square");
  for (int tile = 0; tile < tiles; ++tile) {
    int i = (tile * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    IKET_RANGE_PUSH("load", IKET_I32(tile));
    float x = in[i];
    IKET_RANGE_POP();
    out[i] = x * x;
    IKET_MARK("stored", IKET_F32(x));
  }
}
"""
TILES, BLOCKS, THREADS = 8, 4, 128


def compiled(device: Device):
    """Rewrite the source and compile it with NVRTC."""
    text = iket_rewrite.rewrite(SOURCE, path="square.cu").text
    capability = device.compute_capability
    arch = f"sm_{capability.major}{capability.minor}a"
    options = ProgramOptions(arch=arch, std="c++17", include_path=[iket_rewrite.include_dir()])
    return Program(text, "c++", options).compile("cubin").get_kernel("square")


def square() -> Kernel:
    """Launch it once, and check the result; the kernel's module is loaded as long as what this returns lives."""
    device = Device()
    device.set_current()
    kernel, stream = compiled(device), device.create_stream()
    x = torch.rand(TILES * BLOCKS * THREADS, device="cuda")
    y = torch.empty_like(x)
    torch.cuda.synchronize()
    pointers = [ctypes.c_uint64(one.data_ptr()) for one in (x, y)]

    launch(stream, LaunchConfig(grid=(BLOCKS,), block=(THREADS,)), kernel, *pointers, ctypes.c_int32(TILES))
    stream.sync()
    torch.testing.assert_close(y, x * x)
    return kernel


def main() -> None:
    """Capture one launch."""
    with iket_rewrite.capture() as captured:
        square()
    trace = captured.trace
    print(trace)
    for name in ("square", "load"):
        rows = trace.ranges.name == trace.names.index(name)
        took = trace.ranges.duration_ns[rows]
        print(f"{name:7} {rows.sum():4} ranges, {took.min()} to {took.max()} ns, {took.mean():.0f} on average")


if __name__ == "__main__":
    main()
