# SPDX-License-Identifier: Apache-2.0
"""What one capture after the other costs in one process; prints JSON: python repeated.py.

A launch of a loaded kernel alone, the same in a capture, and reading the trace; milliseconds each.
"""

from __future__ import annotations

import ctypes
import json
import time

from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

import iket_rewrite

SOURCE = """
#include <iket_rewrite/iket.cuh>
extern "C" __global__ void kernel(unsigned* out) {
  IKET_RANGE("kernel");
  for (unsigned i = 0; i < 16; ++i) {
    IKET_MARK("round", IKET_U32(i));
    out[blockIdx.x * blockDim.x + threadIdx.x] = i;
  }
}
"""
#: As many events as a capture of a small GEMM has: 2,304.
BLOCKS, THREADS, TIMES = 32, 128, 12


def main() -> None:
    """Measure."""
    device = Device()
    device.set_current()
    capability = device.compute_capability
    options = ProgramOptions(
        arch=f"sm_{capability.major}{capability.minor}a", std="c++17", include_path=[iket_rewrite.include_dir()]
    )
    program = Program(iket_rewrite.rewrite(SOURCE).text, "c++", options)
    kernel, stream = program.compile("cubin").get_kernel("kernel"), device.create_stream()
    code, address = driver.cuMemAlloc(4 * BLOCKS * THREADS)
    assert code == driver.CUresult.CUDA_SUCCESS
    config = LaunchConfig(grid=(BLOCKS,), block=(THREADS,))

    def launch_once() -> None:
        launch(stream, config, kernel, ctypes.c_uint64(int(address)))
        stream.sync()

    launch_once()
    plain, capture, reading = [], [], []
    for _ in range(TIMES):
        began = time.perf_counter()
        launch_once()
        plain.append(time.perf_counter() - began)
        began = time.perf_counter()
        with iket_rewrite.capture() as captured:
            launch_once()
        capture.append(time.perf_counter() - began)
        began = time.perf_counter()
        ranges = len(captured.trace.ranges)
        reading.append(time.perf_counter() - began)
        assert ranges == BLOCKS * THREADS // 32
    series = {"plain": plain, "capture": capture, "reading": reading}
    print(json.dumps({name: [1e3 * one for one in values] for name, values in series.items()}))


if __name__ == "__main__":
    main()
