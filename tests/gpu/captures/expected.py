# SPDX-License-Identifier: Apache-2.0
"""What the kernels of `counted.cu` must record and compute."""

from __future__ import annotations

from gpu.capture import Captured

WARPS = 2  # of a block of 64 threads


def check_counted(
    launch: Captured, rounds: int, *, more: int = 0, blocks: range = range(4), warps: int = WARPS
) -> None:
    """Every warp has its range, and a mark of each round, in order, with its number."""
    assert set(launch.warps) == {((block, 0, 0), warp) for block in blocks for warp in range(warps)}
    for ((block, _, _), _), warp in launch.warps.items():
        times = rounds + more * block
        assert [mark.payload for mark in warp.marks] == [1000 * block + number for number in range(times)]
        assert {mark.name for mark in warp.marks} == {"round"}
        outer = warp.range("counted")
        assert outer.first == block
        assert all(outer.start <= mark.at <= outer.end for mark in warp.marks)


def sums(rounds: int, blocks: int = 4, block: int = 64) -> list[int]:
    return [sum(range(rounds))] * (blocks * block)
