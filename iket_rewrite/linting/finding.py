# SPDX-License-Identifier: Apache-2.0
"""What linting tells, as data, and the table of its rules."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..errors import Place

#: Version of the JSON layout; it changes when a key changes its meaning or goes.
SCHEMA = 1


class LintSeverity(enum.Enum):
    """Whether a finding is a likely mistake, or something that one should know."""

    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: its stable name; docs/lint.md has a paragraph of this name.
        severity: of its findings.
        remedy: the way out.
        by_default: whether it is looked for without being asked.
    """

    id: str
    severity: LintSeverity
    remedy: str
    by_default: bool = True


_WARNING, _NOTE = LintSeverity.WARNING, LintSeverity.NOTE
_ALL = (
    Rule("push-without-pop", _WARNING, "pop on every path, or open it with IKET_RANGE, which ends by itself"),
    Rule("pop-without-push", _WARNING, "remove the pop, or push on every path that leads to it"),
    Rule("start-without-end", _WARNING, "end it by the same name on every path"),
    Rule("end-without-start", _WARNING, "start it by the same name; names are compared letter by letter"),
    Rule("empty-range", _WARNING, "put the work between its ends, or use IKET_MARK"),
    Rule("unrolled-event", _WARNING, "move the event out of the loop, or unroll less: #pragma unroll 4"),
    Rule("divergent-end", _WARNING, "end the range outside the condition, or start it under the same one"),
    Rule("issue-time", _WARNING, 'put the wait into the range, or say what it measures: name it "issue ..."'),
    Rule("names-differ-by-case", _WARNING, "spell the name in one way"),
    Rule("not-decided", _NOTE, "nothing has to be done; iket-verify judges the compiled code"),
    Rule(
        "lane-payload",
        _NOTE,
        "nothing where that lane is meant; else record a value of the warp: a ballot, a reduction, threadIdx.x / 32",
        by_default=False,
    ),
)
#: Every rule by its id.
RULES = {rule.id: rule for rule in _ALL}


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One doubtful place.

    Attributes:
        id: the rule's stable id.
        message: what is doubtful here.
        place: where.
        others: further places that take part, each with a word on its role.
    """

    id: str
    message: str
    place: Place
    others: tuple[tuple[str, Place], ...] = ()

    @property
    def severity(self) -> LintSeverity:
        """Return how much it weighs."""
        return RULES[self.id].severity

    @property
    def remedy(self) -> str:
        """Return the way out."""
        return RULES[self.id].remedy

    @property
    def fails(self) -> bool:
        """Say whether `--lint=error` fails for it."""
        return self.severity is LintSeverity.WARNING

    def __str__(self) -> str:
        head = f"{self.place}: {self.severity.value}: {self.message} [{self.id}]"
        parts = [head, self.place.excerpt()]
        for role, place in self.others:
            parts += [f"{place}: {role}", place.excerpt()]
        return "\n".join([*parts, f"  fix: {self.remedy}"])
