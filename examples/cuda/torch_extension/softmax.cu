// SPDX-License-Identifier: Apache-2.0
// Softmax over the rows of a matrix, one warp per row.  It knows nothing of PyTorch, which spares it PyTorch's headers.
#include <iket_rewrite/iket.cuh>

#include <cuda_runtime.h>

constexpr int WARPS = 4;

__device__ __forceinline__ float warp_max(float value)
{
    for (int distance = 16; distance > 0; distance /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
}

__device__ __forceinline__ float warp_sum(float value)
{
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    return value;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) softmax_rows(const float* from, float* to, int rows, int columns)
{
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    IKET_RANGE("row", IKET_I32(row));
    from += static_cast<long long>(row) * columns;
    to += static_cast<long long>(row) * columns;

    IKET_RANGE_PUSH("maximum");
    float largest = -INFINITY;
    for (int column = lane; column < columns; column += 32) largest = fmaxf(largest, from[column]);
    largest = warp_max(largest);
    IKET_RANGE_POP();

    IKET_RANGE_PUSH("sum");
    float sum = 0.0f;
    for (int column = lane; column < columns; column += 32) sum += expf(from[column] - largest);
    sum = warp_sum(sum);
    IKET_RANGE_POP();
    IKET_MARK("normaliser", IKET_F32(sum));

    IKET_RANGE_PUSH("store");
    for (int column = lane; column < columns; column += 32) to[column] = expf(from[column] - largest) / sum;
    IKET_RANGE_POP();
}

void launch_softmax(const float* from, float* to, int rows, int columns, cudaStream_t stream)
{
    softmax_rows<<<(rows + WARPS - 1) / WARPS, 32 * WARPS, 0, stream>>>(from, to, rows, columns);
}
