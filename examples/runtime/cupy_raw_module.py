# SPDX-License-Identifier: Apache-2.0
"""CuPy: rewrite the text in front of `RawModule`, which compiles it with NVRTC.

Run: python examples/runtime/cupy_raw_module.py
"""

from __future__ import annotations

import sys

import cupy
from kernel import BLOCK, COUNT, GRID, SOURCE, told

import iket_rewrite


def main() -> int:
    """Launch the kernel and check its result."""
    options = ("--std=c++17", f"-I{iket_rewrite.include_dir()}")
    module = cupy.RawModule(code=iket_rewrite.rewrite(SOURCE).text, options=options)
    x = cupy.arange(COUNT, dtype=cupy.float32)
    y = x.copy()
    module.get_function("axpy")((GRID,), (BLOCK,), (cupy.float32(2.0), x, y, cupy.int32(COUNT)))
    return told(bool((y == 3 * x).all()))


if __name__ == "__main__":
    sys.exit(main())
