# SPDX-License-Identifier: Apache-2.0
"""A PyTorch extension with marks in its kernel: PyTorch calls `iket-nvcc` in nvcc's place.

    python examples/cuda/torch_extension/run.py          builds and checks the result
    run-iket --output-dir trace --clobber profile --postprocess all -- python examples/cuda/torch_extension/run.py
    IKET=0 python examples/cuda/torch_extension/run.py   the same without marks

It needs a GPU, PyTorch for CUDA, ninja and a CUDA toolkit.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import iket_rewrite

HERE = Path(__file__).parent


def extension():
    """Build and load the extension."""
    # PyTorch takes this program where it would call nvcc.
    os.environ["PYTORCH_NVCC"] = f"{sys.executable} -m iket_rewrite.cli.nvcc_command"
    major, minor = torch.cuda.get_device_capability()
    os.environ.setdefault("TORCH_CUDA_ARCH_LIST", f"{major}.{minor}a" if major >= 9 else f"{major}.{minor}")
    from torch.utils.cpp_extension import load

    # Marked and unmarked builds have folders of their own: PyTorch does not look at IKET.
    state = "off" if os.environ.get("IKET") == "0" else "on"
    return load(
        f"iket_softmax_{state}",
        [str(HERE / "binding.cpp"), str(HERE / "softmax.cu")],
        extra_include_paths=[iket_rewrite.include_dir()],
        verbose="-v" in sys.argv,
    )


def main() -> int:
    """Compare the kernel's result with PyTorch's own."""
    values = torch.randn(37, 100, device="cuda")
    result = extension().softmax(values)
    right = torch.allclose(result, torch.softmax(values, 1), atol=1e-6)
    print(f"{'right' if right else 'wrong'}: {result.numel()} values")
    return 0 if right else 1


if __name__ == "__main__":
    import torch

    if not torch.cuda.is_available():
        sys.exit("this example needs a GPU and PyTorch for CUDA")
    sys.exit(main())
