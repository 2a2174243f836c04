# SPDX-License-Identifier: Apache-2.0
"""Nesting: the sweep against a model that is too slow and too simple to be wrong."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import PUSH, TOKEN

from iket_rewrite.tracing import nesting
from iket_rewrite.tracing.nesting import find_nesting


def sweep(ranges, markers=()):
    """Ranges are (warp, kind, start, end), markers (warp, ns)."""
    columns = list(zip(*ranges, strict=True)) or [(), (), (), ()]
    marks = list(zip(*markers, strict=True)) or [(), ()]
    arrays = [np.array(column, np.int64) for column in (*columns, *marks)]
    return find_nesting(*arrays)


def model(ranges, markers):
    """Return (own, inside): at every instant the range opened last, of two the shorter, owns the time."""
    own = [0] * len(ranges)

    def outermost_first(row):
        return ranges[row][2], -ranges[row][3], row

    order = {row: place for place, row in enumerate(sorted(range(len(ranges)), key=outermost_first))}

    def top(warp, now):
        opened = [row for row, (owner, _, start, end) in enumerate(ranges) if owner == warp and start <= now < end]
        return max(opened, key=order.get, default=-1)

    for warp in {one[0] for one in ranges}:
        for now in range(max(one[3] for one in ranges) + 1):
            if (row := top(warp, now)) >= 0:
                own[row] += 1
    inside = []
    for warp, now in markers:
        row = top(warp, now)
        if row < 0:
            ended = [at for at, one in enumerate(ranges) if one[0] == warp and one[2] <= now == one[3]]
            inside.append(ended)
        else:
            inside.append([row])
    return own, inside


tokens = st.lists(
    st.tuples(st.integers(0, 2), st.just(TOKEN), st.integers(0, 12), st.integers(0, 8)).map(
        lambda one: (one[0], one[1], one[2], one[2] + one[3])
    ),
    max_size=12,
)
marks = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 24)), max_size=6)


@settings(deadline=None)
@given(tokens, marks)
def test_own_time_and_enclosing_range_of_any_intervals(ranges, markers):
    found = sweep(ranges, markers)
    own, inside = model(ranges, markers)
    assert found.own_ns.tolist() == own
    for row, allowed in zip(found.inside.tolist(), inside, strict=True):
        assert row in (allowed or [-1])


@settings(deadline=None)
@given(st.lists(st.sampled_from("([)].,"), max_size=60))
def test_a_stack_gives_its_own_depths(steps):
    """Play push (, pop ), token start [ and end ], and time passing; then ask for what the stack knew."""
    now, started, stack, open_token, ranges, depths = 0, -1, [], None, [], []
    for step in steps:
        if step == "(":
            depths.append(len(stack))
            stack.append(len(ranges))
            ranges.append([0, PUSH, now, None])
            started = now
        # What ends in the tick in which another starts has ended before it, so nothing else can be told from stamps.
        elif step == ")" and stack and started < now:
            ranges[stack.pop()][3] = now
        elif step == "[" and open_token is None:
            open_token = len(ranges)
            depths.append(len(stack))
            ranges.append([0, TOKEN, now, None])
            started = now
        elif step == "]" and open_token is not None:
            ranges[open_token][3] = now
            open_token = None
        else:
            now += 1
    for one in ranges:
        one[3] = now + 1 if one[3] is None else one[3]
    found = sweep(ranges)
    assert found.depth.tolist() == depths
    assert not found.crossing.any()


def test_push_ranges_that_cross_are_marked():
    found = sweep([(0, PUSH, 0, 10), (0, PUSH, 5, 15), (0, PUSH, 11, 12), (0, PUSH, 6, 8)])
    assert found.crossing.tolist() == [False, True, False, False]
    assert found.depth.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(("kind", "depth"), [(PUSH, [1, 0]), (TOKEN, [0, 0])])
def test_equal_starts_out_of_order_put_the_longer_one_outside(kind, depth):
    found = sweep([(0, kind, 0, 5), (0, kind, 0, 10)])
    assert found.depth.tolist() == depth
    assert found.own_ns.tolist() == [5, 5]
    assert not found.crossing.any()


def test_ranges_that_end_before_they_start_own_nothing():
    assert sweep([(0, PUSH, 10, 4), (0, PUSH, 0, 20)]).own_ns.tolist() == [0, 20]


def test_batches_do_not_show(monkeypatch):
    ranges = [
        (warp, PUSH, start, start + 7 - depth) for warp in range(5) for start in range(0, 80, 8) for depth in range(3)
    ]
    whole = sweep(ranges, [(3, 9), (4, 70)])
    monkeypatch.setattr(nesting, "_BATCH", 7)
    parts = sweep(ranges, [(3, 9), (4, 70)])
    for name in ("depth", "own_ns", "crossing", "inside"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist()
