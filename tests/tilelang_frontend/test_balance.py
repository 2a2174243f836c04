# SPDX-License-Identifier: Apache-2.0
"""Ranges that do not pair up on some path are found in the source that TileLang generates, without a binary."""

from __future__ import annotations

import pytest
import tilelang.language as T
from tilelang.language.eager.builder import Builder
from tilelang_frontend.support import lower

from iket_rewrite import tilelang as iket


def faults(body) -> list[tuple[str | None, str]]:
    """Lower a kernel around a macro; return name and fault of each range, which are what is warned of as well."""

    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(4, threads=128) as bx:
            body(A, bx)

    with pytest.warns() as caught, iket.session() as session:
        lower(kernel)
        # A warning is expected in any case, so that one that should not be is seen.
        iket.places.tell("the end")
    found = [(one.name, one.fault) for one in session.kernels[0].unbalanced]
    messages = [str(one.message) for one in caught if one.category is iket.IketWarning]
    assert len(messages) == len(found) + 1
    for one, message in zip(session.kernels[0].unbalanced, messages, strict=False):
        assert one.fault in message
        assert f"{__file__}:{one.place.line}" in message
    return found


def test_a_range_that_break_or_continue_leaves():
    @T.macro
    def leaving(A, bx):
        for i in T.serial(8):
            with iket.range("left by break"):
                A[i] = T.float32(1)
                if A[i + 1] > 4:
                    break
        for i in T.serial(8):
            with iket.range("left by continue"):
                A[i] = T.float32(1)
                if A[i + 1] > 4:
                    continue
                A[i] = T.float32(2)

    assert faults(leaving) == [
        ("left by break", "is left by `break`, which does not end it"),
        ("left by continue", "is left by `continue`, which does not end it"),
    ]


def test_a_loop_inside_a_range_may_be_left():
    @T.macro
    def inside(A, bx):
        with iket.range("around"):
            for i in T.serial(8):
                A[i] = A[i] + T.float32(1)
                if A[i] > 4:
                    break

    assert faults(inside) == []


def test_token_ranges_may_be_ended_on_several_paths():
    @T.macro
    def ended(A, bx):
        for i in T.serial(8):
            iket.token_start("token")
            A[i] = A[i] + T.float32(1)
            if A[i] > 4:
                iket.token_end("token")
                break
            iket.token_end("token")

    assert faults(ended) == []


def test_a_range_that_is_never_ended_or_never_started():
    @T.macro
    def lone(A, bx):
        iket.range_push("pushed")
        A[bx] = T.float32(1)
        iket.token_start("started")
        iket.token_end("ended")

    assert faults(lone) == [
        ("pushed", "is never ended"),
        ("started", "is never ended"),
        ("ended", "is never started"),
    ]


def test_a_range_that_is_started_in_one_branch_only():
    @T.macro
    def sometimes(A, bx):
        if bx == 0:
            iket.range_push("one branch")
        elif bx == 1:
            A[2] = T.float32(1)
        else:
            iket.mark("the other")
        A[bx] = T.float32(1)

    assert faults(sometimes) == [("one branch", "is started in one branch of an `if` only")]


def test_an_end_without_the_condition_of_its_start():
    @T.macro
    def conditional(A, bx):
        if bx == 0:
            iket.range_push("under a condition")
        A[bx] = T.float32(1)
        iket.range_pop()

    assert faults(conditional) == [
        (None, "is ended on a path on which none is open"),
        ("under a condition", "is started under a condition, and no end has the same one"),
    ]


def test_branches_that_start_one_range_each_and_conditions_that_agree_are_fine():
    @T.macro
    def paired(A, bx):
        if bx == 0:
            iket.range_push("first block")
        else:
            iket.range_push("other blocks")
        A[bx] = T.float32(1)
        iket.range_pop()
        if bx == 1:
            iket.range_push("second block")
        A[bx + 4] = T.float32(2)
        if bx == 1:
            iket.range_pop()

    # A pop ends one of the two, so the program has one open as far as its lines tell.
    assert faults(paired) == []


def test_a_range_that_is_started_in_a_loop_only():
    @T.macro
    def growing(A, bx):
        for i in T.serial(4):
            iket.range_push("each time")
            A[i] = A[i] + T.float32(1)

    assert faults(growing) == [("each time", "is started in the body of a `for` only")]


@pytest.mark.skipif(not hasattr(Builder, "PythonLoopBreak"), reason="this release runs such a loop to its end")
def test_a_loop_over_a_python_sequence_may_be_left():
    @T.macro
    def unrolled(A, bx):
        for i in [1, 2, 3]:
            with iket.range("unrolled"):
                A[i] = T.float32(1)
                if i == 2:
                    break
        iket.mark("behind")

    assert faults(unrolled) == []


@pytest.mark.parametrize(("arch", "expected"), [("sm_80", []), ("sm_90a", [("whole loop", "ended")])])
def test_a_range_around_a_pipelined_loop_stays_open_in_the_warps_that_load(arch, expected):
    @T.prim_func
    def kernel(
        A: T.Tensor((256, 256), T.float16), B: T.Tensor((256, 256), T.float16), C: T.Tensor((256, 256), T.float32)
    ):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            a = T.alloc_shared((128, 64), T.float16)
            b = T.alloc_shared((64, 128), T.float16)
            c = T.alloc_fragment((128, 128), T.float32)
            T.clear(c)
            with iket.range("whole loop"):
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[by * 128, k * 64], a)
                    T.copy(B[k * 64, bx * 128], b)
                    with iket.range("step", payload=k):
                        T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 128])

    with pytest.warns(iket.IketWarning) as caught, iket.session() as session:
        lower(kernel, arch)
        iket.places.tell("the end")
    found = [(one.name, one.fault.split()[1]) for one in session.kernels[0].unbalanced]
    assert found == expected
    assert ["Warp specialisation" in str(one.message) for one in caught].count(True) == len(expected)
