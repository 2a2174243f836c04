// SPDX-License-Identifier: Apache-2.0
// Kernels whose events can be counted by hand: every number in a payload follows from the block and the round.
#include <iket_rewrite/iket.cuh>

// Block b goes `rounds + more * b` times round, and adds up the rounds' numbers.
extern "C" __global__ void counted(unsigned* out, unsigned rounds, unsigned more) {
  IKET_RANGE("counted", IKET_U32(blockIdx.x));
  unsigned sum = 0;
  for (unsigned round = 0; round < rounds + more * blockIdx.x; ++round) {
    IKET_MARK("round", IKET_U32(1000 * blockIdx.x + round));
    sum += round;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Launched in clusters of two blocks.
extern "C" __global__ void __cluster_dims__(2, 1, 1) paired(unsigned* out) {
  IKET_MARK("block", IKET_U32(blockIdx.x));
  out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x;
}
