# SPDX-License-Identifier: Apache-2.0
"""What a session hands back of each module of generated source."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..rewriting.annotation import SiteKind, SourcePosition
from ..rewriting.core import Rewrite
from ..rewriting.notice import Notice
from ..rewriting.plan import Plan, Site
from ..rewriting.table import event_table
from .balance import Imbalance

if TYPE_CHECKING:
    from ..verification.report import Report

_KERNEL = re.compile(r"\b__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")
#: How many places a message names.
_SHOWN = 4


@dataclass(eq=False)
class KernelRecord:
    """The source of one compilation; it holds one kernel or several.

    Attributes:
        original: what TileLang generated, after a chained callback.
        rewrite: what the rewriter made of it.
        target: the architecture, for example "sm_90a", or "" where TileLang names none.
        runtime_payloads: whether payloads are recorded.
        report: what the verifier said of the binary; None where none was made or asked for.
        empty_ranges: by name, at how many places a range encloses nothing in the generated source.
        unbalanced: ranges that do not pair up on some path through the generated source.
        thread: the thread that compiled it.
    """

    original: str = field(repr=False)
    rewrite: Rewrite[str] = field(repr=False)
    target: str
    runtime_payloads: bool
    report: Report | None = None
    empty_ranges: dict[str, int] = field(default_factory=dict)
    unbalanced: tuple[Imbalance, ...] = ()
    thread: int = field(default_factory=threading.get_ident, repr=False)

    @property
    def source(self) -> str:
        """The rewritten source, which is what gets compiled."""
        return self.rewrite.text

    @property
    def plan(self) -> Plan:
        """The events with their ids, and the sites."""
        return self.rewrite.plan

    @property
    def warnings(self) -> tuple[Notice, ...]:
        """What the rewriter has to say."""
        return self.rewrite.warnings

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels in it."""
        return kernel_names(self.original)

    @property
    def instrumented(self) -> bool:
        """Whether there are events in it."""
        return bool(self.plan.events) or self.rewrite.instrumented

    @property
    def table(self) -> dict[str, Any]:
        """The event table, as `iket-rewrite --events` writes it; sites give the line in the Python program."""
        return event_table(self.plan)

    def places_of(self, name: str) -> tuple[SourcePosition, ...]:
        """Return each place in the program where a range of that name starts."""
        return tuple(dict.fromkeys(site.position for site in self._starts(name) if site.position is not None))

    def places_at(self, line: int | None) -> tuple[SourcePosition, ...]:
        """Return the places in the program of what stands on a line of the generated source."""
        found = [site.position for site in self.plan.sites if site.place.line == line and site.position is not None]
        return tuple(dict.fromkeys(found))

    def starts_of(self, name: str) -> int:
        """Return at how many places of the generated source a range of that name starts."""
        return len(self._starts(name))

    def place_of(self, notice: Notice) -> SourcePosition | None:
        """Return the line of the program that a notice is about, where it is about one annotation."""
        if notice.place is None:
            return None
        at = (notice.place.line, notice.place.column)
        return next((site.position for site in self.plan.sites if (site.place.line, site.place.column) == at), None)

    def _starts(self, name: str) -> list[Site]:
        kinds = (SiteKind.PUSH, SiteKind.START)
        return [site for site in self.plan.sites if site.kind in kinds and site.event and site.event.name == name]


def in_words(places: Iterable[SourcePosition]) -> str:
    """Return places for a message, in parentheses; nothing where there are none."""
    lines = [f"{place.file}:{place.line}" for place in places]
    shown = ", ".join([*lines[:_SHOWN], *(["..."] if len(lines) > _SHOWN else [])])
    return f" ({shown})" if shown else ""


def kernel_names(source: str) -> tuple[str, ...]:
    """Return the names of the kernels in generated source, in order."""
    return tuple(dict.fromkeys(_KERNEL.findall(source)))
