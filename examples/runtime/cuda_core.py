# SPDX-License-Identifier: Apache-2.0
"""cuda.core: the cubin of `compile_cubin` is rewritten, compiled and judged by one call.

Run: python examples/runtime/cuda_core.py
"""

from __future__ import annotations

import ctypes
import sys

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from kernel import BLOCK, COUNT, GRID, SOURCE, told

import iket_rewrite


def main() -> int:
    """Launch the kernel and check its result."""
    device = Device()
    device.set_current()
    major, minor = device.compute_capability
    cubin = iket_rewrite.compile_cubin(SOURCE, arch=f"sm_{major}{minor}{'a' if major >= 9 else ''}")
    # The same in two steps: cuda.core.Program(iket_rewrite.rewrite(SOURCE).text, "c++", options).compile("cubin")
    kernel = ObjectCode.from_cubin(bytes(cubin)).get_kernel("axpy")

    values = np.arange(COUNT, dtype=np.float32)
    addresses = [driver.cuMemAlloc(values.nbytes)[1] for _ in range(2)]
    for address in addresses:
        driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes)
    stream = device.create_stream()
    pointers = [ctypes.c_uint64(int(address)) for address in addresses]
    launch(stream, LaunchConfig(grid=GRID, block=BLOCK), kernel, ctypes.c_float(2.0), *pointers, ctypes.c_int32(COUNT))
    stream.sync()
    result = np.empty_like(values)
    driver.cuMemcpyDtoH(result.ctypes.data, addresses[1], result.nbytes)
    return told(bool(np.array_equal(result, 3 * values)))


if __name__ == "__main__":
    sys.exit(main())
