// SPDX-License-Identifier: Apache-2.0
#include "../checked.h"
#include "scan.cuh"

int main()
{
    const int count = 100 * TILE - 77, tiles = (count + TILE - 1) / TILE;
    std::vector<unsigned> values(count), expected(count);
    unsigned sum = 0;
    for (int index = 0; index < count; ++index) {
        values[index] = index * 2654435761u >> 20;
        expected[index] = sum += values[index];
    }
    const unsigned* from = on_device(values);
    unsigned* to = on_device(std::vector<unsigned>(count, 0));
    unsigned long long* states = on_device(std::vector<unsigned long long>(tiles, 0));
    unsigned* next = on_device(std::vector<unsigned>(1, 0));
    lookback_scan<<<tiles, THREADS>>>(from, to, count, states, next);
    checked(cudaGetLastError(), "lookback_scan");
    checked(cudaDeviceSynchronize(), "lookback_scan");
    return compared(on_host(to, count), expected);
}
