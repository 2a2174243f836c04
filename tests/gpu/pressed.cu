// SPDX-License-Identifier: Apache-2.0
// More values alive than there are registers: ptxas keeps the timestamp of a record on the stack for a while.
#include <iket_rewrite/iket.cuh>

constexpr int COUNT = 48;

extern "C" __global__ void __maxnreg__(24) pressed(unsigned* out, const unsigned* in, unsigned turns)
{
    unsigned values[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) values[i] = in[i] + threadIdx.x;
#pragma unroll 1
    for (unsigned turn = 0; turn < turns; ++turn) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) values[i] = values[i] * values[(i + 7) % COUNT] + turn;
        IKET_RANGE_PUSH("turn", IKET_U32(turn));
#pragma unroll
        for (int i = 0; i < COUNT; ++i) values[i] ^= values[(i + 5) % COUNT] + i;
        IKET_MARK("value", IKET_U32(values[3]));
#pragma unroll
        for (int i = 0; i < COUNT; ++i) values[i] += values[(i + 11) % COUNT] * 3u;
        IKET_RANGE_POP();
    }
    unsigned sum = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum += values[i];
    out[threadIdx.x] = sum;
}
