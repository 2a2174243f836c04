# SPDX-License-Identifier: Apache-2.0
"""The rules that judge names over the whole file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..rewriting.annotation import SiteKind
from .finding import LintFinding
from .sites import Point


def check_names(points: Sequence[Point]) -> Iterator[LintFinding]:
    """Find names that differ only by case, and token ranges of which one end is nowhere."""
    yield from _by_case(points)
    starts = _first_by_name(points, SiteKind.START)
    ends = _first_by_name(points, SiteKind.END)
    for name, point in starts.items():
        if name not in ends:
            message = f"the range {point.label} is started and nowhere ended in this file"
            yield LintFinding("start-without-end", message, point.place)
    for name, point in ends.items():
        if name not in starts:
            message = f"the range {point.label} is ended and nowhere started in this file"
            yield LintFinding("end-without-start", message, point.place)


def _first_by_name(points: Iterable[Point], kind: SiteKind) -> dict[str, Point]:
    found: dict[str, Point] = {}
    for point in points:
        if point.kind is kind and point.name is not None:
            found.setdefault(point.name, point)
    return found


def _by_case(points: Iterable[Point]) -> Iterator[LintFinding]:
    first: dict[str, Point] = {}
    told: set[str] = set()
    for point in points:
        if point.name is None:
            continue
        before = first.setdefault(point.name.casefold(), point)
        if before.name != point.name and point.name not in told:
            told.add(point.name)
            message = f"the name {point.label} differs from {before.label} by case only: they are two events"
            yield LintFinding("names-differ-by-case", message, point.place, (("the other one", before.place),))
