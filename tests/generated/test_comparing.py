# SPDX-License-Identifier: Apache-2.0
"""Recorded warps compared with interpreted ones: what the hardware may do is accepted, any difference refused."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from generated.comparing import difference
from generated.interpreting import Either, Seen, run_block
from generated.making import make_module
from gpu.capture import Mark, Range, Warp

from iket_rewrite import abi


def recorded(events: list, source: random.Random) -> Warp:
    """Return what a clock with a coarse tick would record of these events."""
    warp, now, stack, tokens = Warp(), 1000, [], {}
    for one in flat(events, source):
        now += source.choice((0, 0, 32, 64))
        kind = abi.PAYLOADS[one.payload].code if one.payload else None
        color = 0xFFFFFFFF if one.color is None else one.color
        if one.action == "mark":
            warp.marks.append(Mark(one.name, one.bits, kind, now))
        elif one.action == "push":
            stack.append((one, now, color))
        elif one.action == "start":
            tokens[one.name] = (one, now, color)
        else:
            first, start, color = stack.pop() if one.action == "pop" else tokens.pop(one.name)
            kind = 2 if one.action == "pop" else 1
            warp.ranges.append(Range(first.name, first.bits, one.bits, start, now, kind, color))
    warp.ranges.sort(key=lambda one: one.start)
    return warp


def flat(events: list, source: random.Random):
    for one in events:
        if isinstance(one, Either):
            arms = [list(one.first), list(one.second)]
            while arms[0] or arms[1]:
                yield source.choice([arm for arm in arms if arm]).pop(0)
        else:
            yield one


def warps():
    for seed in range(4):
        for program in make_module(seed).programs:
            yield from (warp for warp in run_block(program, 0) if warp.events)


def test_a_true_record_has_no_difference():
    source = random.Random(1)
    for warp in warps():
        assert difference(warp.events, recorded(warp.events, source)) == ""


def test_every_change_of_a_record_is_a_difference():
    source = random.Random(2)
    changed = 0
    for warp in warps():
        true = recorded(warp.events, source)
        for bent in bendings(true, source):
            changed += 1
            assert difference(warp.events, bent), (warp.events, bent)
    assert changed > 200


def bendings(warp: Warp, source: random.Random):
    """Yield records that no hardware may leave for the events of this one."""
    marks, ranges = warp.marks, warp.ranges
    if marks:
        at = source.randrange(len(marks))
        yield Warp(marks[:at] + marks[at + 1 :], ranges)
        yield Warp([*marks, marks[-1]], ranges)
        yield Warp(
            [*marks[:at], replace(marks[at], payload=(marks[at].payload or 0) ^ 1 << 7), *marks[at + 1 :]], ranges
        )
        yield Warp([*marks[:at], replace(marks[at], name="other"), *marks[at + 1 :]], ranges)
    if ranges:
        at = source.randrange(len(ranges))
        yield Warp(marks, ranges[:at] + ranges[at + 1 :])
        yield Warp(marks, [*ranges, ranges[at]])
        yield Warp(marks, [*ranges[:at], replace(ranges[at], first=-1), *ranges[at + 1 :]])
        yield Warp(marks, [*ranges[:at], replace(ranges[at], end=ranges[at].start - 32), *ranges[at + 1 :]])


def mark(name: str) -> Seen:
    return Seen("mark", name)


@pytest.mark.parametrize(
    ("names", "fits"), [("abcd", True), ("acbd", True), ("cabd", True), ("bacd", False), ("abdc", False)]
)
def test_marks_of_two_arms_may_interleave_each_in_its_own_order(names, fits):
    events = [Either((mark("a"), mark("b")), (mark("c"),)), mark("d")]
    warp = Warp([Mark(name, None, None, index) for index, name in enumerate(names)])
    assert (difference(events, warp) == "") is fits


def test_a_mark_outside_its_range_is_a_difference():
    events = [Seen("push", "r"), mark("a"), Seen("pop")]
    inside, outside = (
        Warp([Mark("a", None, None, at)], [Range("r", None, None, 64, 96, 2, 0xFFFFFFFF)]) for at in (96, 128)
    )
    assert difference(events, inside) == ""
    assert difference(events, outside).startswith("order")
