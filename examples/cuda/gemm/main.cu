// SPDX-License-Identifier: Apache-2.0
#include "../checked.h"
#include "gemm.cuh"

constexpr int TILE = 64, DEPTH = 16;

int main()
{
    const int m = 192, n = 128, k = 80;
    std::vector<float> a(m * k), b(k * n), expected(m * n);
    for (int index = 0; index < m * k; ++index) a[index] = float(3 * index % 5);
    for (int index = 0; index < k * n; ++index) b[index] = float(5 * index % 7);
    // Small integers: every sum is exact, in any order.
    for (int row = 0; row < m; ++row) {
        for (int step = 0; step < k; ++step) {
            for (int column = 0; column < n; ++column) {
                expected[row * n + column] += a[row * k + step] * b[step * n + column];
            }
        }
    }
    const float *from_a = on_device(a), *from_b = on_device(b);
    float* to = on_device(std::vector<float>(m * n, -1.0f));
    const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
    gemm<TILE, DEPTH><<<grid, TILE * TILE / 16>>>(from_a, from_b, to, m, n, k);
    checked(cudaGetLastError(), "gemm");
    checked(cudaDeviceSynchronize(), "gemm");
    return compared(on_host(to, m * n), expected);
}
