// SPDX-License-Identifier: Apache-2.0
// Every payload type, ranges of every kind, and scoped ranges that lanes leave apart: two fixtures, launched and checked.
#include "../../../examples/cuda/checked.h"
#include "../../../fixtures/cuda/all_payloads.cu"
#include "../../../fixtures/cuda/scoped_exits.cu"

int main()
{
    const unsigned warps = 48;
    std::vector<unsigned> expected(warps);
    for (unsigned id = 0; id < warps; ++id) expected[id] = id + 1;
    unsigned* numbers = on_device(std::vector<unsigned>(warps, 0));
    all_payloads<<<6, 256>>>(numbers, 1.5f);
    checked(cudaGetLastError(), "all_payloads");
    checked(cudaDeviceSynchronize(), "all_payloads");
    if (compared(on_host(numbers, warps), expected)) return 1;

    // The formula in the header of scoped_exits.cu.
    expected.assign(128, 0);
    for (unsigned index = 0; index < 128; ++index) {
        const unsigned block = index / 64, warp = index % 64 / 32, lane = index % 32;
        if (lane % 2 || lane < 4 || (block == 1 && warp == 1)) continue;
        const unsigned turns = 2 + 2 * warp, steps = lane / 8 < turns ? lane / 8 : turns;
        expected[index] = steps + (lane < 16 ? 20 : 0) + 100;
    }
    unsigned* values = on_device(std::vector<unsigned>(128, 0));
    scoped_exits<<<2, 64>>>(values);
    checked(cudaGetLastError(), "scoped_exits");
    checked(cudaDeviceSynchronize(), "scoped_exits");
    return compared(on_host(values, 128), expected);
}
