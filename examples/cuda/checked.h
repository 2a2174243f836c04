// SPDX-License-Identifier: Apache-2.0
// What the examples share: an error of CUDA ends the program, and a result is compared with the host's.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline void checked(cudaError_t code, const char* what)
{
    if (code != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
        std::exit(2);
    }
}

template <typename T> T* on_device(const std::vector<T>& values)
{
    T* pointer = nullptr;
    checked(cudaMalloc(&pointer, values.size() * sizeof(T)), "cudaMalloc");
    checked(cudaMemcpy(pointer, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return pointer;
}

template <typename T> std::vector<T> on_host(const T* pointer, std::size_t count)
{
    std::vector<T> values(count);
    checked(cudaMemcpy(values.data(), pointer, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return values;
}

// Prints the verdict; returns what main returns.
template <typename T> int compared(const std::vector<T>& found, const std::vector<T>& expected)
{
    for (std::size_t index = 0; index < expected.size(); ++index) {
        if (found[index] != expected[index]) {
            std::printf("wrong at %zu: %g instead of %g\n", index, double(found[index]), double(expected[index]));
            return 1;
        }
    }
    std::printf("right: %zu values\n", expected.size());
    return 0;
}
