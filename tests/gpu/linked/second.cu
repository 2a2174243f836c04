// SPDX-License-Identifier: Apache-2.0
// A device function in a unit of its own, and the program around the two.
#include "shared.cuh"

#include <cstdio>

__global__ void first(int* out);

__device__ int second_step(int value)
{
    IKET_RANGE("second step", IKET_I32(value));
    return noted(2 * value) + 1;
}

int main()
{
    int *out = nullptr, found[128] = {};
    if (cudaMalloc(&out, sizeof(found)) != cudaSuccess) return 2;
    first<<<2, 64>>>(out);
    if (cudaMemcpy(found, out, sizeof(found), cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
    for (int index = 0; index < 128; ++index) {
        if (found[index] != 2 * index + 1) return 1;
    }
    std::puts("right: 128 values");
    return 0;
}
