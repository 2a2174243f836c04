// SPDX-License-Identifier: Apache-2.0
#include "shared.cuh"

__global__ void first(int* out)
{
    TRACE("first");
    const int index = blockIdx.x * blockDim.x + threadIdx.x;
    out[index] = second_step(noted(index));
}
