// SPDX-License-Identifier: Apache-2.0
// Events under conditions. ptxas predicates the short ones, trigger included; longer ones branch.
#include <iket_rewrite/iket.cuh>

extern "C" __global__ void conditional(unsigned* out)
{
    const unsigned lane = threadIdx.x % 32u;
    const unsigned warp = threadIdx.x / 32u;
    IKET_MARK("all");
    if (lane % 2u == 1u) IKET_MARK("odd lanes");
    if (warp == 1u) IKET_MARK("warp 1");
    if (lane >= 5u) IKET_MARK("from lane 5", IKET_U32(100u * warp + lane));
    if (threadIdx.x > 1000u) IKET_MARK("never");
    if (blockIdx.x == 1u) IKET_MARK("block 1", IKET_U32(gridDim.x + 7u));
    out[64u * blockIdx.x + threadIdx.x] = lane + 1u;
}
