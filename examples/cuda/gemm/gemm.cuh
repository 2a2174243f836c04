// SPDX-License-Identifier: Apache-2.0
// C = A B, row-major, tile by tile through shared memory.  The marks show how long a warp waits for tiles and how long
// it computes; without a rewriter in the build they are nothing.
#pragma once

#include <iket_rewrite/iket.cuh>

// One block computes TILE x TILE values of C with TILE x TILE / 16 threads, each of them a square of 4 x 4.
template <int TILE, int DEPTH>
__device__ __forceinline__ void load_tiles(float (&a)[DEPTH][TILE], float (&b)[DEPTH][TILE], const float* from_a,
                                           const float* from_b, int m, int n, int k, int row, int column, int depth)
{
    constexpr int THREADS = TILE * TILE / 16;
    IKET_RANGE("load", IKET_I32(depth / DEPTH));
    for (int index = threadIdx.x; index < TILE * DEPTH; index += THREADS) {
        const int line = index / DEPTH, step = index % DEPTH;
        const bool inside = row + line < m && depth + step < k;
        a[step][line] = inside ? from_a[(row + line) * k + depth + step] : 0.0f;
    }
    for (int index = threadIdx.x; index < TILE * DEPTH; index += THREADS) {
        const int step = index / TILE, line = index % TILE;
        const bool inside = depth + step < k && column + line < n;
        b[step][line] = inside ? from_b[(depth + step) * n + column + line] : 0.0f;
    }
    __syncthreads();
}

template <int TILE, int DEPTH>
__global__ void __launch_bounds__(TILE* TILE / 16)
    gemm(const float* __restrict__ from_a, const float* __restrict__ from_b, float* __restrict__ to, int m, int n, int k)
{
    __shared__ float a[DEPTH][TILE];
    __shared__ float b[DEPTH][TILE];
    IKET_RANGE("block");
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    const int own_row = threadIdx.x / (TILE / 4) * 4, own_column = threadIdx.x % (TILE / 4) * 4;
    float sum[4][4] = {};
    for (int depth = 0; depth < k; depth += DEPTH) {
        load_tiles<TILE, DEPTH>(a, b, from_a, from_b, m, n, k, row, column, depth);
        IKET_RANGE_PUSH("compute");
        for (int step = 0; step < DEPTH; ++step) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) {
                    sum[i][j] += a[step][own_row + i] * b[step][own_column + j];
                }
            }
        }
        __syncthreads();
        IKET_RANGE_POP();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            if (row + own_row + i < m && column + own_column + j < n) {
                to[(row + own_row + i) * n + column + own_column + j] = sum[i][j];
            }
        }
    }
    IKET_MARK("stored", IKET_F32(sum[0][0]));
}
