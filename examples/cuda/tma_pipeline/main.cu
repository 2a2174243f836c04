// SPDX-License-Identifier: Apache-2.0
#include "../checked.h"
#include "kernel.cuh"

int main()
{
    const int blocks = 8, count = 12;
    std::vector<float> values(blocks * count * TILE);
    for (std::size_t index = 0; index < values.size(); ++index) values[index] = float(index * 7 % 13);
    // Small integers: every sum is exact, in any order.
    std::vector<float> expected(blocks * CONSUMERS);
    for (std::size_t index = 0; index < values.size(); ++index) {
        const std::size_t block = index / (count * TILE), consumer = index / 32 % CONSUMERS;
        expected[block * CONSUMERS + consumer] += values[index];
    }
    const float* from = on_device(values);
    float* to = on_device(std::vector<float>(expected.size(), -1.0f));
    pipeline_sum<<<blocks, 32 * (CONSUMERS + 1)>>>(from, to, count);
    checked(cudaGetLastError(), "pipeline_sum");
    checked(cudaDeviceSynchronize(), "pipeline_sum");
    return compared(on_host(to, expected.size()), expected);
}
