# SPDX-License-Identifier: Apache-2.0
"""Ways to divide the ranges of a kernel: by payload, by role of the warp, by CTA, SM, launch or process."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OptionError
from . import payloads
from .model import Trace, kind_name
from .statistics import sums

#: What a summary can be divided by.
BY = ("payload", "warp", "cta", "sm", "launch", "process")


@dataclass(frozen=True, slots=True)
class Role:
    """Warps of a kernel that record the same set of ranges.

    Attributes:
        label: "warps 4-11" where warp numbers tell the roles of the kernel apart, else the names of the ranges.
        warps: how many warps, over all CTAs and launches.
        numbers: their numbers within a CTA.
        ranges: names of the ranges that they record, sorted.
        lifetime_ns: the sum of their lifetimes.
        covered_ns: how much of it some range covers.
    """

    label: str
    warps: int
    numbers: tuple[int, ...]
    ranges: tuple[str, ...]
    lifetime_ns: int
    covered_ns: int


@dataclass(frozen=True, slots=True)
class Groups:
    """A division: `of` gives each of the chosen ranges its group, `labels` the groups' names, best order first."""

    of: Any
    labels: Sequence[str]


def find_roles(trace: Trace, warps: Any, rows: Any) -> tuple[list[Role], Any]:
    """Return the roles of a kernel's warps, and the role of each warp.

    Args:
        trace: the trace.
        warps: (w,) rows of `trace.warps`.
        rows: (n,) rows of `trace.ranges`.
    """
    table = trace.ranges
    position = np.full(len(trace.warps), -1, np.int64)
    position[warps] = np.arange(len(warps))
    owner = position[table.warp[rows]]
    sets, of = _sets(owner, table.name[rows], len(warps), max(1, len(trace.names)))
    names = [tuple(sorted(trace.names[one] for one in found)) for found in sets]
    numbers = _split(of, trace.locations.warp[trace.warps.location[warps]], len(sets))
    every = np.arange(len(sets))
    life, cover = sums(of, lifetimes(trace)[warps], every), sums(of[owner], table.own_ns[rows], every)
    count = np.bincount(of, minlength=len(sets))
    columns = zip(_labels(numbers, names), count.tolist(), numbers, names, life.tolist(), cover.tolist(), strict=True)
    return [Role(label, warps, tuple(ids), *rest) for label, warps, ids, *rest in columns], of


def _sets(owner: Any, name: Any, warps: int, names: int) -> tuple[list[list[int]], Any]:
    """Return the distinct sets of names, and which set each warp has."""
    owners, found = np.divmod(np.unique(owner * names + name), names)
    bounds = np.searchsorted(owners, np.arange(warps + 1)).tolist()
    sets: dict[bytes, int] = {}
    of = [sets.setdefault(found[first:last].tobytes(), len(sets)) for first, last in itertools.pairwise(bounds)]
    return [np.frombuffer(key, found.dtype).tolist() for key in sets], np.array(of, np.int64)


def _split(of: Any, values: Any, groups: int) -> list[list[int]]:
    """Return the distinct values of each group, sorted."""
    pairs = np.unique(np.column_stack([of, values]), axis=0)
    bounds = np.searchsorted(pairs[:, 0], np.arange(groups + 1)).tolist()
    return [pairs[first:last, 1].tolist() for first, last in itertools.pairwise(bounds)]


def lifetimes(trace: Trace) -> Any:
    """Return the lifetime of every warp, 0 where it was not recorded."""
    return np.where(trace.warps.recorded, np.maximum(0, trace.warps.end_ns - trace.warps.start_ns), 0)


def divide(trace: Trace, rows: Any, by: str, roles: Sequence[Role], role_of: Any) -> Groups:
    """Divide ranges.

    Args:
        trace: the trace.
        rows: (n,) rows of `trace.ranges`.
        by: one of `BY`.
        roles, role_of: the kernel's roles, and the role of every warp of the trace.

    Raises:
        OptionError: there is no such division.
    """
    table, warps = trace.ranges, trace.warps
    if by == "payload":
        return _by_payload(table.start_type[rows], table.start_bits[rows])
    warp = table.warp[rows]
    if by == "warp":
        return Groups(role_of[warp], [role.label for role in roles])
    launch = warps.launch[warp]
    if by == "launch":
        return Groups(launch, [_launch_label(trace, number) for number in range(len(trace.launches))])
    process = trace.launches.process[launch]
    if by == "process":
        return Groups(process, [one.label for one in trace.processes])
    where = trace.locations
    if by == "sm":
        keys = where.sm[warps.location[warp]][:, None]
        return _by_place(trace, process, keys, "sm ")
    if by == "cta":
        return _by_place(trace, process, where.cta[warps.location[warp]], "cta ")
    raise OptionError(f"a summary can not be divided by {by!r}", remedy=f"choose from {', '.join(BY)}")


def _by_payload(codes: Any, bits: Any) -> Groups:
    distinct, of = np.unique(bits, return_inverse=True)
    keys, of = np.unique(of.astype(np.int64) * 256 + codes, return_inverse=True)
    types, values = (keys % 256).tolist(), distinct[keys // 256].tolist() if len(keys) else []
    found = list(zip(types, values, strict=True))
    # In the order of the values, which for signed and floating types is not that of the bits.
    order = sorted(range(len(found)), key=lambda row: (found[row][0], _sortable(payloads.decode(*found[row]))))
    # Not a number has many bit patterns and one name: what can not be told apart by its label is one group.
    groups: dict[tuple[int, str], int] = {}
    rank = np.empty(len(found), np.int64)
    for row in order:
        label = payloads.text(*found[row]) or "no payload"
        rank[row] = groups.setdefault((found[row][0], label), len(groups))
    return Groups(rank[of], [label for _, label in groups])


def _sortable(value: payloads.Value) -> tuple[float, str]:
    if isinstance(value, (int, float)):
        # Not a number has no place among numbers: after all of them.
        return (float("inf"), "nan") if math.isnan(value) else (float(value), "")
    return 0.0, (value or "").rjust(20, "0")


def _by_place(trace: Trace, process: Any, keys: Any, word: str) -> Groups:
    distinct, of = np.unique(np.column_stack([process, keys]), axis=0, return_inverse=True)
    several = len(trace.processes) > 1
    labels = []
    for number, *place in distinct.tolist():
        label = word + ",".join(map(str, place))
        labels.append(f"{trace.processes[number].label}: {label}" if several else label)
    return Groups(of.reshape(-1), labels)


def _launch_label(trace: Trace, launch: int) -> str:
    launches = trace.launches
    label = f"launch {launch} (grid id {launches.grid_id[launch]}"
    label += f", {launches.graph[launch]})" if launches.graph[launch] else ")"
    return f"{trace.processes[launches.process[launch]].label}: {label}" if len(trace.processes) > 1 else label


def _labels(numbers: Sequence[Sequence[int]], names: Sequence[tuple[str, ...]]) -> list[str]:
    every = [number for role in numbers for number in role]
    if len(every) == len(set(every)):
        return [f"warp{'s' if len(role) > 1 else ''} {spans(role)}" for role in numbers]
    return ["+".join(role) or "no ranges" for role in names]


def spans(numbers: Sequence[int]) -> str:
    """Return sorted numbers in short: "0-3,8"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)


def kind_and_name(trace: Trace, key: int) -> tuple[str, str]:
    """Return what a key of `range_keys` stands for."""
    return kind_name(key % 256), trace.names[key // 256]


def range_keys(trace: Trace, rows: Any) -> Any:
    """Return one number for each range's kind and name."""
    return trace.ranges.name[rows].astype(np.int64) * 256 + trace.ranges.kind[rows]
