// SPDX-License-Identifier: Apache-2.0
// Faults between marks, which a checker must find with the marks and without: faults race|overwrite|bounds
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

// Two warps write the same places, as two records do, and which of them comes last is chance.
__global__ void overwrite(int* out)
{
    __shared__ int values[THREADS / 2];
    IKET_RANGE("overwrite");
    values[threadIdx.x % 32] = static_cast<int>(threadIdx.x);
    IKET_MARK("overwritten", IKET_U32(threadIdx.x));
    __syncthreads();
    out[threadIdx.x] = values[31 - threadIdx.x % 32];
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
    } else if (std::strcmp(arguments[1], "overwrite") == 0) {
        overwrite<<<1, THREADS>>>(out);
    } else {
        bounds<<<1, THREADS + 32>>>(out, THREADS);
    }
    checked(cudaGetLastError(), "launch");
    checked(cudaDeviceSynchronize(), "kernel");
    return 0;
}
