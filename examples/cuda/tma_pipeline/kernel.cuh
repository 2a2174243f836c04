// SPDX-License-Identifier: Apache-2.0
// A warp-specialised pipeline: one warp has tiles copied into shared memory, the others add them up.
//
// The marks are per role.  The producer's "wait for room" says that the consumers are the slow side; the consumers'
// "wait for tile" says that the copies are.  A copy itself is asynchronous: "issue" is a mark, since a range around it
// would measure how long it takes to ask for it.
#pragma once

#include <iket_rewrite/iket.cuh>

#include "pipeline.cuh"

constexpr int STAGES = 4, CONSUMERS = 4, TILE = 1024;

__device__ __forceinline__ void produce(float (&tiles)[STAGES][TILE], std::uint64_t* full, std::uint64_t* empty,
                                        const float* from, int count)
{
    IKET_RANGE("producer");
    for (int tile = 0; tile < count; ++tile) {
        const int stage = tile % STAGES;
        {
            IKET_RANGE("wait for room", IKET_I32(tile));
            barrier_wait(&empty[stage], (tile / STAGES & 1) ^ 1);
        }
        barrier_expect(&full[stage], TILE * sizeof(float));
        bulk_copy(tiles[stage], from + tile * TILE, TILE * sizeof(float), &full[stage]);
        IKET_MARK("issue", IKET_I32(stage));
    }
}

__device__ __forceinline__ float consume(const float (&tiles)[STAGES][TILE], std::uint64_t* full, std::uint64_t* empty,
                                         int consumer, int count)
{
    IKET_RANGE("consumer", IKET_I32(consumer));
    float sum = 0.0f;
    for (int tile = 0; tile < count; ++tile) {
        const int stage = tile % STAGES;
        IKET_RANGE_PUSH("wait for tile", IKET_I32(tile));
        barrier_wait(&full[stage], tile / STAGES & 1);
        IKET_RANGE_POP();
        IKET_RANGE_PUSH("add");
        for (int index = consumer * 32 + threadIdx.x % 32; index < TILE; index += CONSUMERS * 32) {
            sum += tiles[stage][index];
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(&empty[stage]);
        IKET_RANGE_POP();
    }
    return sum;
}

// One block adds `count` tiles; to[block * CONSUMERS + consumer] is the sum of what one warp has read.
extern "C" __global__ void __launch_bounds__(32 * (CONSUMERS + 1)) pipeline_sum(const float* from, float* to, int count)
{
    __shared__ alignas(128) float tiles[STAGES][TILE];
    __shared__ std::uint64_t full[STAGES], empty[STAGES];
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            barrier_init(&full[stage], 1);
            barrier_init(&empty[stage], CONSUMERS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    from += static_cast<long long>(blockIdx.x) * count * TILE;
    if (warp == CONSUMERS) {
        if (threadIdx.x % 32 == 0) produce(tiles, full, empty, from, count);
    } else {
        float sum = consume(tiles, full, empty, warp, count);
        for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
        if (threadIdx.x % 32 == 0) to[blockIdx.x * CONSUMERS + warp] = sum;
        IKET_MARK("summed", IKET_F32(sum));
    }
}
