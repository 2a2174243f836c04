# SPDX-License-Identifier: Apache-2.0
"""What a capture says equals what the kernel did: counts, order, nesting and payload values, computed here alone."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from gpu.capture import f32, f64
from gpu.jobs import CLUSTER_IN, FLAGS, GEMM, GEMM_A, GEMM_B, PRESSED_IN, REDUCE_IN, SILU_IN, SORT_IN

from iket_rewrite import abi


def code(name: str) -> int:
    return abi.PAYLOADS[name].code


def in_order(stamps) -> bool:
    return all(left <= right for left, right in pairwise(stamps))


def floats(words: list[int]) -> list[float]:
    return list(struct.unpack(f"<{len(words)}f", struct.pack(f"<{len(words)}I", *words)))


# --- Every payload type ---------------------------------------------------------------------------------------


def payload_bits(number: int, out: int) -> dict[str, tuple[str, int]]:
    """Return type and raw bits of each mark of all_payloads for one warp, from the formulas in its header."""
    half = struct.unpack("<H", struct.pack("<e", 0.5 + number))[0]
    return {
        "m_bool": ("bool", number & 1),
        "m_i8": ("i8", (-1 - number) & 0xFF),
        "m_u8": ("u8", (200 + number) & 0xFF),
        "m_i16": ("i16", (-1000 - number) & 0xFFFF),
        "m_u16": ("u16", 50000 + number),
        "m_i32": ("i32", (-100000 - number) & 0xFFFFFFFF),
        "m_u32": ("u32", 3000000000 + number),
        "m_i64": ("i64", (-5000000000 - number) & 0xFFFFFFFFFFFFFFFF),
        "m_u64": ("u64", 10000000000000000000 + number),
        "m_f16": ("f16", half),
        "m_bf16": ("bf16", f32(-1.0 - number) >> 16),
        "m_f32": ("f32", f32(1.5 + number)),
        "m_f64": ("f64", f64(0.0009765625 + number)),
        "m_ptr": ("pointer", out + 4 * number),
    }


def test_every_payload_type_comes_back_with_its_type_and_value(captured):
    launch = captured["all_payloads"]
    out = launch.buffers[0]["address"]
    assert len(launch.warps) == 48
    for block in range(6):
        for warp in range(8):
            number = 8 * block + warp
            expected = payload_bits(number, out)
            marks = launch.warp(block, warp).marks
            assert {mark.name: (mark.type, mark.payload) for mark in marks} == {
                name: (code(kind), bits) for name, (kind, bits) in expected.items()
            }
            assert len(marks) == len(expected)
            # Program order: a warp's stamps never go back.
            assert in_order(launch.warp(block, warp).mark(name).at for name in expected)


def test_pushes_and_both_ends_of_token_ranges_carry_payloads(captured):
    launch = captured["all_payloads"]
    for (block, _, _), warp in launch.warps:
        number = 8 * block + warp
        one = launch.warp(block, warp)
        work, transfer = one.range("work"), one.range("transfer")
        assert (work.first, work.last) == (f32(100.25 + number), None)
        assert (transfer.first, transfer.last) == (7 * number, 7 * number + 1)
        assert (work.type, transfer.type) == (2, 1)
        assert in_order([one.mark("m_ptr").at, work.start, work.end, transfer.start, transfer.end])


def test_the_instrumented_kernel_still_computes(captured):
    words = captured["all_payloads"].buffers[0]["words"]
    assert words == [number + 1 for number in range(48)] + [0] * 16


# --- Scoped ranges and conditions -----------------------------------------------------------------------------

#: Pushes per name, by (block, warp): the table in the header of scoped_exits.cu.
SCOPED = {
    (0, 0): {"kernel": 1, "step": 2, "round": 3, "inner": 3, "tail": 1, "last": 1},
    (0, 1): {"kernel": 1, "step": 4, "round": 3, "inner": 3, "tail": 1, "last": 1},
    (1, 0): {"kernel": 1, "step": 2, "round": 3, "inner": 3, "tail": 1, "last": 1},
    (1, 1): {"kernel": 1, "step": 4, "round": 3, "inner": 3},
}


@pytest.mark.parametrize(("block", "warp"), SCOPED)
def test_a_scoped_range_pops_once_per_push_and_warp_on_every_way_out(captured, block, warp):
    counts: dict[str, int] = {}
    for one in captured["scoped_exits"].warp(block, warp).ranges:
        counts[one.name] = counts.get(one.name, 0) + 1
    assert counts == SCOPED[block, warp]


def test_scoped_ranges_leave_the_result_alone(captured):
    def value(block: int, thread: int) -> int:
        lane, warp = thread % 32, thread // 32
        if lane % 2 or lane < 4 or (block, warp) == (1, 1):
            return 0
        return min(lane // 8, 2 + 2 * warp) + (20 if lane < 16 else 0) + 100

    words = captured["scoped_exits"].buffers[0]["words"]
    assert words == [value(block, thread) for block in range(2) for thread in range(64)]


def test_an_event_under_a_condition_is_recorded_by_the_warps_that_meet_it(captured):
    launch = captured["conditional"]
    for (block, _, _), warp in launch.warps:
        expected = {"all": None, "odd lanes": None, "from lane 5": 100 * warp + 5}
        if warp == 1:
            expected["warp 1"] = None
        if block == 1:
            expected["block 1"] = 2 + 7
        marks = launch.warp(block, warp).marks
        assert {mark.name: mark.payload for mark in marks} == expected
        assert len(marks) == len(expected)


def test_events_under_more_conditions_than_there_are_predicates(captured):
    launch = captured["roles"]
    up = [number for number, value in enumerate(FLAGS) if value > 7]
    expected = {f"flag {number}": None for number in up} | {f"again {number}": FLAGS[number] for number in up}
    assert len(launch.warps) == 16
    for warp in range(16):
        found = launch.warp(0, warp)
        assert {mark.name: mark.payload for mark in found.marks} == expected
        assert len(found.marks) == len(expected)
        assert [(one.name, one.first) for one in found.ranges] == (
            [(f"role {warp}", 100 * warp + 7)] if warp < 12 else []
        )


def pressed(thread: int) -> tuple[list[int], int]:
    """Return what a thread of `pressed` marks in each of its five turns, and its result."""
    values, marked, count = [value + thread for value in PRESSED_IN], [], len(PRESSED_IN)
    for turn in range(5):
        for i in range(count):
            values[i] = (values[i] * values[(i + 7) % count] + turn) & 0xFFFFFFFF
        for i in range(count):
            values[i] ^= (values[(i + 5) % count] + i) & 0xFFFFFFFF
        marked.append(values[3])
        for i in range(count):
            values[i] = (values[i] + 3 * values[(i + 11) % count]) & 0xFFFFFFFF
    return marked, sum(values) & 0xFFFFFFFF


def test_timestamps_that_are_kept_on_the_stack(captured):
    launch = captured["pressed"]
    assert launch.buffers[0]["words"] == [pressed(thread)[1] for thread in range(96)]
    assert len(launch.warps) == 3
    for warp in range(3):
        found = launch.warp(0, warp)
        assert [(one.name, one.first) for one in found.ranges] == [("turn", turn) for turn in range(5)]
        assert [(mark.name, mark.payload) for mark in found.marks] == [
            ("value", value) for value in pressed(32 * warp)[0]
        ]
        ends = zip(found.ranges, found.marks, strict=True)
        assert all(one.start <= mark.at <= one.end for one, mark in ends)


# --- Real kernels ---------------------------------------------------------------------------------------------


def test_overlapping_token_ranges_of_a_reduction(captured):
    launch = captured["block_reduce"]
    totals = []
    for block in range(2):
        sums = [sum(REDUCE_IN[256 * block + 32 * warp : 256 * block + 32 * warp + 32]) for warp in range(8)]
        totals.append(sum(sums))
        for warp in range(8):
            one = launch.warp(block, warp)
            first, second = one.range("warp_stage"), one.range("block_stage")
            assert (first.first, first.last) == (warp, warp + 100)
            assert (second.first, second.last) == (f32(sums[warp]), f32(sum(sums)))
            assert first.start <= second.start <= first.end <= second.end
            assert one.mark("warp/shfl_1").payload == f32(sums[warp])
            assert len(one.marks) == 11
    assert floats(launch.buffers[1]["words"]) == totals


def test_forty_marks_in_extended_native_dump_keep_their_names_and_values(captured):
    launch = captured["many_events"]
    assert launch.plan.method is abi.Method.EXTENDED
    in_address, sorted_address = launch.buffers[0]["address"], launch.buffers[1]["address"]
    names = [event.name for event in launch.plan.events if event.kind is abi.EventKind.MARK]
    for warp in range(2):
        keys = sorted(SORT_IN[32 * warp : 32 * warp + 32])
        one = launch.warp(0, warp)
        assert sorted(mark.name for mark in one.marks) == sorted(names)
        assert in_order(one.mark(name).at for name in names)
        assert launch.buffers[1]["words"][32 * warp : 32 * warp + 32] == keys
        values = {
            "begin": 0,
            "loaded": in_address,
            "sort/32/1": keys[0],
            "sorted": sorted_address,
            "scan/1": keys[0],
            "scan/16": keys[0],
            "max/1": f32(keys[-1]),
            "min/1": f32(keys[0]),
            "mean/1": f64(sum(keys) / 32),
            "stored": 32 * warp,
            "end": f32(1.0),
        }
        assert {name: one.mark(name).payload for name in values} == values
        assert one.range("reductions").first == keys[0]


def test_each_block_of_a_cluster_records_for_itself(captured):
    launch = captured["cluster_sum"]
    sums = [sum(CLUSTER_IN[32 * block : 32 * block + 32]) for block in range(4)]
    for block in range(4):
        one = launch.warp(block, 0)
        assert one.mark("enter").payload == block % 2
        assert one.mark("own_sum").payload == sums[block] & 0xFFFFFFFF
        assert one.mark("peer_sum").payload == sums[block ^ 1] & 0xFFFFFFFF
        barrier = one.range("cluster_barrier")
        assert barrier.start <= one.mark("arrived").at <= barrier.end
    words = launch.buffers[1]["words"]
    assert words == [(sums[block] + sums[block ^ 1]) & 0xFFFFFFFF for block in range(4)]


def test_ranges_of_a_tiled_gemm_nest_and_count_its_tiles(captured):
    launch = captured["tiled_gemm"]
    m, n, k = GEMM["m"], GEMM["n"], GEMM["k"]
    product = [
        sum(GEMM_A[row * k + step] * GEMM_B[step * n + column] for step in range(k))
        for row in range(m)
        for column in range(n)
    ]
    assert floats(launch.buffers[2]["words"]) == product
    tiles = -(-k // 16)
    assert len(launch.warps) == 3 * 2 * 8
    for (x, y, _), warp in launch.warps:
        one = launch.warps[(x, y, 0), warp]
        total = one.range("block_total")
        loads = [part for part in one.ranges if part.name == "load_tile"]
        computes = [part for part in one.ranges if part.name == "compute_tile"]
        assert [part.first for part in loads] == list(range(tiles))
        assert len(computes) == tiles
        assert all(total.start <= part.start <= part.end <= total.end for part in loads + computes)
        assert all(load.end <= compute.start for load, compute in zip(loads, computes, strict=True))
        # The first lane of a warp is thread (0, 2 * warp) of the block.
        row, column = 16 * y + 2 * warp, 16 * x
        assert one.mark("stored").payload == f32(product[row * n + column])


def test_a_helper_records_in_both_of_its_kernels(captured):
    for kernel, mark in (("silu_forward", "forward_stored"), ("swiglu_forward", "gate_loaded")):
        launch = captured[kernel]
        for (block, _, _), warp in launch.warps:
            one = launch.warp(block, warp)
            assert [part.name for part in one.ranges] == ["silu"]
            assert [part.name for part in one.marks] == [mark]
            if kernel == "swiglu_forward":
                assert one.marks[0].payload == f32(SILU_IN[32 * warp])


def test_names_that_pass_through_wrapper_macros(captured):
    softmax, scale = captured["softmax_rows"], captured["scale_rows"]
    for (block, _, _), warp in softmax.warps:
        row = 2 * block + warp
        one = softmax.warp(block, warp)
        assert sorted(part.name for part in one.ranges) == ["softmax", "stage/max", "stage/sum"]
        assert {mark.name: mark.payload for mark in one.marks} == {
            "row": row,
            "row_max": f32(1.0),
            "row_sum * 0.03125f": f32(1.0),
            "stored": None,
        }
        one = scale.warp(block, warp)
        assert [part.name for part in one.ranges] == ["scale"]
        assert one.mark("row").payload == row
        assert one.mark("columns").payload == 32
        assert one.mark("factor").payload == f32(2.0 + row)
        assert one.mark("factor_loaded").payload == scale.buffers[0]["address"]


def test_long_and_non_ascii_names_come_back_whole(captured):
    launch = captured["long_names"]
    one = launch.warp(0, 0)
    # Two sites spell one name in two ways.
    marks = [event.name for event in launch.plan.events if event.kind is abi.EventKind.MARK]
    assert sorted(mark.name for mark in one.marks) == sorted([*marks, "café 🚀"])
    ranges = {event.name: event.color for event in launch.plan.events if event.kind is not abi.EventKind.MARK}
    assert {part.name for part in one.ranges} == set(ranges)
    for part in one.ranges:
        color = ranges[part.name]
        assert part.color == (abi.COLOR_AUTOMATIC if color is None else color)


def test_a_template_instance_with_colours_and_values_uniform_over_the_warp(captured):
    (name,) = [kernel for kernel in captured if "affine" in kernel]
    launch = captured[name]
    x, y = (buffer["address"] for buffer in launch.buffers)
    for (block, _, _), warp in launch.warps:
        one = launch.warp(block, warp)
        assert one.range("affine").first == 3
        assert one.range("affine").color == 0x76B900
        single = one.range("single_precision")
        assert (single.first, single.last) == (f64(0.5), f64(3.0))
        assert one.mark("source").payload == x
        assert one.mark("destination").payload == y + 4 * 3 * 2 * 128
        assert one.range("affine").start <= single.start <= single.end <= one.range("affine").end
    assert floats(launch.buffers[1]["words"])[768:] == [0.5 * 2.0 + 3.0] * 256
