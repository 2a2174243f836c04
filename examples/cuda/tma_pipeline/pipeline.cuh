// SPDX-License-Identifier: Apache-2.0
// The pieces of a pipeline on Hopper: transaction barriers in shared memory, and bulk copies by the copy engine (TMA).
#pragma once

#include <cstdint>

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer)
{
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_init(std::uint64_t* barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives, and announces bytes that a copy will bring.
__device__ __forceinline__ void barrier_expect(std::uint64_t* barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, unsigned parity)
{
    unsigned done = 0;
    while (done == 0) {
        asm volatile("{\n\t.reg .pred passed;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 passed, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, passed;\n\t}"
                     : "=r"(done)
                     : "r"(shared_address(barrier)), "r"(parity)
                     : "memory");
    }
}

// Copies bytes from global to shared memory; the barrier hears of their arrival.  One thread issues it.
__device__ __forceinline__ void bulk_copy(void* to, const void* from, unsigned bytes, std::uint64_t* barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}
