# SPDX-License-Identifier: Apache-2.0
"""Which range is inside which: nesting depth, own time, and the range that a marker falls into.

One sweep over the starts of all ranges of a warp, in the order of time, with two stacks.

*Open* holds every range in the order of opening; time belongs to the one opened last.  A range below the top may have
ended already (token ranges may overlap); it is dropped when it comes to the top.  *Stack* holds push/pop ranges only,
and each of them lies within the one below it; one that does not is crossing and is kept out.

Intervals are half-open: what starts in the tick in which another ends comes after it; only a marker for which no range
is left open belongs to one that ends in its tick.  Stamps have ticks of 32 ns, so equal stamps are common.  Of
two ranges of one kind that start together the longer one is the outer, whatever the file's order: captures list token
ranges that start together in the order of their ends.  Among equals, and between kinds, the file's order stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .kinds import KIND_PUSH

#: How many starts are turned into Python integers at a time.
_BATCH = 1 << 16


@dataclass(frozen=True, slots=True)
class Nesting:
    """What the sweep finds: per range (n,) depth, own_ns and crossing; per marker (m,) the row of the range, or -1."""

    depth: Any
    own_ns: Any
    crossing: Any
    inside: Any


def find_nesting(warp: Any, kind: Any, start: Any, end: Any, marker_warp: Any, marker_ns: Any) -> Nesting:
    """Sweep over ranges (n,) and markers (m,) of all warps."""
    count = len(warp)
    end = np.maximum(start, end)
    order = _order(warp, kind, start, end)
    if len(marker_ns):
        # A marker comes after the ranges that start in its tick.
        warps, stamps = np.concatenate([warp[order], marker_warp]), np.concatenate([start[order], marker_ns])
        rows = np.concatenate([order, -1 - np.arange(len(marker_ns))])
        merged = np.lexsort((rows < 0, stamps, warps))
        rows, warps, stamps = rows[merged], warps[merged], stamps[merged]
    else:
        rows, warps, stamps = order, warp[order], start[order]
    found = Nesting(
        depth=np.zeros(count, np.int32),
        own_ns=np.zeros(count, np.int64),
        crossing=np.zeros(count, np.bool_),
        inside=np.full(len(marker_ns), -1, np.int32),
    )
    sweep = _Sweep(found)
    for first in range(0, len(rows), _BATCH):
        batch = slice(first, first + _BATCH)
        chosen = rows[batch]
        ranges = chosen[chosen >= 0]
        ends, push = np.zeros(len(chosen), np.int64), np.zeros(len(chosen), np.bool_)
        ends[chosen >= 0], push[chosen >= 0] = end[ranges], kind[ranges] == KIND_PUSH
        sweep.run(chosen, warps[batch], stamps[batch], ends, push)
    sweep.close()
    sweep.flush()
    return found


def _order(warp: Any, kind: Any, start: Any, end: Any) -> Any:
    """Return the order of opening."""
    order = np.lexsort((start, warp))
    if not len(order):
        return order
    columns = [column[order] for column in (warp, kind, start)]
    together = np.logical_and.reduce([column[1:] == column[:-1] for column in columns])
    group, last = np.append(0, np.cumsum(~together)), end[order]
    # What lasts no time is inside of nothing and around nothing.
    lasting = np.flatnonzero(last > columns[2])
    groups, ends = group[lasting], last[lasting]
    wrong = (groups[1:] == groups[:-1]) & (ends[1:] > ends[:-1])
    if wrong.any():
        mixed = np.isin(group, groups[1:][wrong])
        order = order[np.lexsort((np.where(mixed, -last, 0), group))]
    return order


class _Sweep:
    """The state between two batches: the two stacks of the warp at hand, and how far its time is given away."""

    def __init__(self, found: Nesting) -> None:
        self.found = found
        self.warp = -1
        self.last = 0
        #: The outermost range that ends at `last`, or -1.
        self.ended = -1
        #: Row and end of every range that may be open, and the ends of nested push/pop ranges.
        self.open: list[tuple[int, int]] = []
        self.stack: list[int] = []
        #: Rows and the time they get, not yet added up.
        self.owners: list[int] = []
        self.times: list[int] = []

    def run(self, rows: Any, warps: Any, stamps: Any, ends: Any, push: Any) -> None:
        """Take a batch of starts and markers (negative rows)."""
        depth: list[int] = []
        crossing: list[int] = []
        inside: list[tuple[int, int]] = []
        opened, stack = self.open, self.stack
        columns = (rows.tolist(), warps.tolist(), stamps.tolist(), ends.tolist(), push.tolist())
        for row, warp, now, end, pushed in zip(*columns, strict=True):
            if warp != self.warp:
                self.close()
                self.warp = warp
            if now != self.last:
                self.ended = -1
            if opened:
                self._advance(now)
            self.last = now
            if row < 0:
                inside.append((-1 - row, opened[-1][0] if opened else self.ended))
                continue
            while stack and stack[-1] <= now:
                stack.pop()
            depth.append(len(stack))
            if pushed:
                if stack and end > stack[-1]:
                    crossing.append(row)
                else:
                    stack.append(end)
            opened.append((row, end))
        self._store(rows, depth, crossing, inside)

    def close(self) -> None:
        """End the warp: let all its ranges run out."""
        self._advance(np.iinfo(np.int64).max)
        self.ended = -1
        self.stack.clear()

    def _advance(self, now: int) -> None:
        """Give the time up to now to the ranges on top."""
        opened, last = self.open, self.last
        while opened:
            row, end = opened[-1]
            if end > now:
                if now > last:
                    self.owners.append(row)
                    self.times.append(now - last)
                break
            if end > last:
                self.owners.append(row)
                self.times.append(end - last)
                last = end
            if end == now:
                self.ended = row
            opened.pop()

    def flush(self) -> None:
        """Add up the own times."""
        np.add.at(self.found.own_ns, np.array(self.owners, np.int64), np.array(self.times, np.int64))
        self.owners.clear()
        self.times.clear()

    def _store(self, rows: Any, depth: list[int], crossing: list[int], inside: list[tuple[int, int]]) -> None:
        self.flush()
        self.found.depth[rows[rows >= 0]] = depth
        self.found.crossing[crossing] = True
        if inside:
            marks = np.array(inside)
            self.found.inside[marks[:, 0]] = marks[:, 1]
