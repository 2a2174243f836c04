# SPDX-License-Identifier: Apache-2.0
"""PyTorch's `load_inline`: rewrite the CUDA text before it is handed over.

Run: python examples/runtime/torch_inline.py

An extension of files is in examples/cuda/torch_extension: there, PyTorch calls `iket-nvcc` in nvcc's place.
"""

from __future__ import annotations

import os
import sys

import torch
from kernel import BLOCK, COUNT, GRID, SOURCE, told

import iket_rewrite

LAUNCH = f"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

void axpy_(double a, const at::Tensor& x, at::Tensor y)
{{
    axpy<<<{GRID}, {BLOCK}, 0, c10::cuda::getCurrentCUDAStream()>>>(
        static_cast<float>(a), x.data_ptr<float>(), y.data_ptr<float>(), static_cast<int>(x.numel()));
}}
"""


def main() -> int:
    """Build, launch, and check the result."""
    from torch.utils.cpp_extension import load_inline

    major, minor = torch.cuda.get_device_capability()
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{major}.{minor}a" if major >= 9 else f"{major}.{minor}")
    module = load_inline(
        "iket_axpy",
        cpp_sources="void axpy_(double a, const at::Tensor& x, at::Tensor y);",
        cuda_sources=iket_rewrite.rewrite(SOURCE + LAUNCH).text,
        functions=["axpy_"],
        extra_include_paths=[iket_rewrite.include_dir()],
    )
    x = torch.arange(COUNT, dtype=torch.float32, device="cuda")
    y = x.clone()
    module.axpy_(2.0, x, y)
    return told(torch.equal(y, 3 * x))


if __name__ == "__main__":
    sys.exit(main())
