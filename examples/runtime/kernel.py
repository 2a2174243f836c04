# SPDX-License-Identifier: Apache-2.0
"""The annotated kernel that the examples of this folder compile while they run, and what it must compute."""

SOURCE = r"""
#include <iket_rewrite/iket.cuh>

extern "C" __global__ void axpy(float a, const float* x, float* y, int n)
{
    IKET_RANGE("axpy");
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        IKET_RANGE_PUSH("load", IKET_I32(i));
        const float value = x[i], before = y[i];
        IKET_RANGE_POP();
        y[i] = a * value + before;
        IKET_MARK("stored");
    }
}
"""
GRID, BLOCK, COUNT = 4, 128, 1024


def told(right: bool) -> int:
    """Print the verdict; return what the program returns."""
    print(f"{'right' if right else 'wrong'}: {COUNT} values")
    return 0 if right else 1
