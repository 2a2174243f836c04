// SPDX-License-Identifier: Apache-2.0
// Faults between marks, which a checker must find with the marks and without: faults race|bounds
#include <iket_rewrite/iket.cuh>

#include <cstring>

#include "../../../examples/cuda/checked.h"

constexpr int THREADS = 64;

// Each warp reads what the other one writes, and no barrier stands between.
__global__ void race(int* out)
{
    __shared__ int values[THREADS];
    IKET_RANGE("race");
    values[threadIdx.x] = static_cast<int>(threadIdx.x);
    IKET_MARK("written", IKET_U32(threadIdx.x));
    out[threadIdx.x] = values[THREADS - 1 - threadIdx.x];
}

// The last thread writes behind the end.
__global__ void bounds(int* out, int count)
{
    IKET_RANGE("bounds");
    if (static_cast<int>(threadIdx.x) <= count) out[threadIdx.x] = count;
    IKET_MARK("filled", IKET_I32(count));
}

int main(int, char** arguments)
{
    int* out = on_device(std::vector<int>(THREADS, 0));
    if (std::strcmp(arguments[1], "race") == 0) {
        race<<<1, THREADS>>>(out);
    } else {
        bounds<<<1, THREADS + 32>>>(out, THREADS);
    }
    checked(cudaGetLastError(), "launch");
    checked(cudaDeviceSynchronize(), "kernel");
    return 0;
}
