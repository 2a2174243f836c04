// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iket_rewrite/iket.cuh>

#define TRACE(name) IKET_RANGE(name)

__device__ __forceinline__ int noted(int value)
{
    IKET_MARK("noted", IKET_I32(value));
    return value;
}

__device__ int second_step(int value);
