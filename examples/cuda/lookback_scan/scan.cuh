// SPDX-License-Identifier: Apache-2.0
// An inclusive prefix sum in one pass, by decoupled look-back: every block publishes the sum of its tile, then reads
// the sums of its predecessors until one of them knows its whole prefix.
//
// The first warp looks back and the others wait for it: the marks show how far it has to look, and what that costs.
#pragma once

#include <iket_rewrite/iket.cuh>

constexpr int THREADS = 256, ITEMS = 4, TILE = THREADS * ITEMS;

// State and value of a tile in one word, so that both are seen at once.
constexpr unsigned NOTHING = 0, TILE_SUM = 1, PREFIX = 2;

__device__ __forceinline__ unsigned long long packed(unsigned state, unsigned value)
{
    return static_cast<unsigned long long>(state) << 32 | value;
}

__device__ __forceinline__ void publish(unsigned long long* states, int tile, unsigned state, unsigned value)
{
    atomicExch(&states[tile], packed(state, value));
    IKET_MARK("published", IKET_U32(state));
}

// Returns the sum of all tiles before this one; every lane of the first warp calls it.
__device__ __forceinline__ unsigned look_back(unsigned long long* states, int tile)
{
    IKET_RANGE("look back", IKET_I32(tile));
    unsigned prefix = 0;
    for (int last = tile - 1; last >= 0; last -= 32) {
        const int mine = last - static_cast<int>(threadIdx.x);
        unsigned long long word = mine >= 0 ? 0 : packed(PREFIX, 0);
        while (word >> 32 == NOTHING) word = atomicAdd(&states[mine], 0ull);
        // The nearest tile that knows its prefix ends the search; those before it count already.
        const unsigned known = __ballot_sync(0xffffffffu, word >> 32 == PREFIX);
        const int nearest = known ? __ffs(known) - 1 : 31;
        unsigned value = static_cast<int>(threadIdx.x) <= nearest ? static_cast<unsigned>(word) : 0;
        for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
        prefix += value;
        if (known) {
            IKET_MARK("found", IKET_I32(tile - 1 - last + nearest));
            break;
        }
    }
    return prefix;
}

__device__ __forceinline__ unsigned scan_warp(unsigned value)
{
    for (int distance = 1; distance < 32; distance *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffu, value, distance);
        if (static_cast<int>(threadIdx.x % 32) >= distance) value += other;
    }
    return value;
}

// Before the launch `states` and `*next` are zero; tiles are numbered in the order in which blocks begin.
extern "C" __global__ void __launch_bounds__(THREADS)
    lookback_scan(const unsigned* from, unsigned* to, int count, unsigned long long* states, unsigned* next)
{
    __shared__ unsigned warp_sums[THREADS / 32];
    __shared__ unsigned before_tile;
    __shared__ int tile_number;
    if (threadIdx.x == 0) tile_number = static_cast<int>(atomicAdd(next, 1u));
    __syncthreads();
    const int tile = tile_number, warp = threadIdx.x / 32;
    IKET_RANGE("tile", IKET_I32(tile));

    IKET_RANGE_PUSH("local scan");
    unsigned items[ITEMS];
    unsigned sum = 0;
    for (int index = 0; index < ITEMS; ++index) {
        const int at = tile * TILE + static_cast<int>(threadIdx.x) * ITEMS + index;
        sum += at < count ? from[at] : 0;
        items[index] = sum;
    }
    const unsigned up_to_lane = scan_warp(sum);
    if (threadIdx.x % 32 == 31) warp_sums[warp] = up_to_lane;
    __syncthreads();
    unsigned before_warp = 0, total = 0;
    for (int index = 0; index < THREADS / 32; ++index) {
        if (index < warp) before_warp += warp_sums[index];
        total += warp_sums[index];
    }
    IKET_RANGE_POP();

    if (warp == 0) {
        if (threadIdx.x == 0) publish(states, tile, tile == 0 ? PREFIX : TILE_SUM, total);
        const unsigned prefix = tile == 0 ? 0 : look_back(states, tile);
        if (threadIdx.x == 0) {
            if (tile > 0) publish(states, tile, PREFIX, prefix + total);
            before_tile = prefix;
        }
    }
    IKET_RANGE_PUSH("wait for prefix");
    __syncthreads();
    IKET_RANGE_POP();

    IKET_RANGE_PUSH("store");
    const unsigned before = before_tile + before_warp + up_to_lane - sum;
    for (int index = 0; index < ITEMS; ++index) {
        const int at = tile * TILE + static_cast<int>(threadIdx.x) * ITEMS + index;
        if (at < count) to[at] = before + items[index];
    }
    IKET_RANGE_POP();
}
