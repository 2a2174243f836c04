# SPDX-License-Identifier: Apache-2.0
"""How many blocks of a kernel one SM can hold at once, from what each takes of it.  No GPU is needed."""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32


@dataclass(frozen=True, slots=True)
class Limits:
    """What one SM has, and in what portions it is given away.

    Blocks, warps, registers and shared memory are those of the table of compute capabilities in the CUDA C++
    Programming Guide; that a block's shared memory includes a kilobyte of the system's stands in the tuning guides.
    Portions, the four parts of an SM and the named barriers are those of the toolkit's `cuda_occupancy.h`, with which
    `tests/test_resource_table.py` compares the whole calculation.

    Attributes:
        blocks, warps: that are resident at most.
        registers: of 32 bits.
        registers_of_block, registers_of_thread: the most that one can have.
        shared_bytes, shared_bytes_of_block: shared memory of the SM, and the most of a block without the reserved part.
        reserved_bytes: shared memory of each block that the system keeps for itself.
        register_portion: registers are given to a warp in multiples of it.
        shared_portion: bytes of shared memory are given to a block in multiples of it.
        parts: each has its share of the registers, and a warp lives in one of them.
        barriers: named barriers.
    """

    blocks: int = 32
    warps: int = 64
    registers: int = 64 * 1024
    registers_of_block: int = 64 * 1024
    registers_of_thread: int = 255
    shared_bytes: int = 228 * 1024
    shared_bytes_of_block: int = 227 * 1024
    reserved_bytes: int = 1024
    register_portion: int = 256
    shared_portion: int = 128
    parts: int = 4
    barriers: int = 64


#: By the architecture's number.  The two do not differ in any of this.
LIMITS = {90: Limits(), 100: Limits()}


def blocks_per_sm(arch: int, *, threads: int, registers: int, shared_bytes: int = 0, barriers: int = 0) -> int:
    """Return how many blocks an SM holds; 0 where not even one fits.

    Args:
        arch: the architecture's number, a key of `LIMITS`.
        threads: of a block.
        registers: of a thread.
        shared_bytes: static and dynamic shared memory of a block, without what the system reserves.
        barriers: named barriers of a block.
    """
    limits = LIMITS[arch]
    warps = -(-threads // WARP)
    of_warp = _rounded(registers * WARP, limits.register_portion)
    fits = (
        registers <= limits.registers_of_thread
        # A launch is refused as if every part of the SM got its share of the block.
        and of_warp * _rounded(warps, limits.parts) <= limits.registers_of_block
        and shared_bytes <= limits.shared_bytes_of_block
    )
    if not fits:
        return 0
    found = [limits.blocks, limits.warps // warps]
    if registers:
        found.append(limits.registers // limits.parts // of_warp * limits.parts // warps)
    found.append(limits.shared_bytes // _rounded(shared_bytes + limits.reserved_bytes, limits.shared_portion))
    if barriers:
        found.append(limits.barriers // barriers)
    return min(found)


def _rounded(number: int, portion: int) -> int:
    return -(-number // portion) * portion
