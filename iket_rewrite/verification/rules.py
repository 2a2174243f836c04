# SPDX-License-Identifier: Apache-2.0
"""The rules, each with a stable id, a severity, why it matters, and the way out.

`docs/verify.md` has a paragraph per rule; a test compares the two.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Severity(enum.Enum):
    """How much a finding weighs: an error or a warning fails the check, a note does not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: stable name.
        severity: by default.
        strict: severity under --strict.
        title: what is wrong, in a line.
        remedy: the way out.
    """

    id: str
    severity: Severity
    strict: Severity
    title: str
    remedy: str


def _rule(name: str, severity: Severity, title: str, remedy: str, strict: Severity | None = None) -> Rule:
    return Rule(name, severity, strict or severity, title, remedy)


_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

_REBUILD = "rewrite the source with iket-rewrite and build it again"
_REPORT = f"{_REBUILD}; if it stays, report the source and the compiler's release"

RULES: dict[str, Rule] = {
    rule.id: rule
    for rule in (
        # Records
        _rule(
            "merged-record",
            _E,
            "timestamp and payload are one store; the captured process dies of it",
            f"keep the two stores apart: make both volatile, or {_REBUILD}",
        ),
        _rule("payload-missing", _E, "the event declares a payload, but its record stores none", _REPORT),
        _rule("payload-undeclared", _E, "the record stores a payload, but its event declares none", _REPORT),
        _rule("payload-width", _E, "the payload has another width or place than its event declares", _REPORT),
        _rule("stamp-missing", _E, "the record has no timestamp", _REPORT),
        _rule("stamp-width", _E, "the timestamp store has the width of the other method", _REPORT),
        _rule(
            "record-address",
            _E,
            "the record is not where the runtime looks for it",
            "compile for the architecture that the record was made for",
        ),
        _rule("id-mismatch", _E, "the timestamp carries another event's id than the trigger", _REPORT),
        _rule("id-unproven", _W, "that timestamp and trigger carry one id can not be shown", _REPORT, strict=_E),
        _rule("split-predicate", _E, "the stores of one record are under different predicates", _REPORT),
        _rule("trigger-predicate", _E, "the trigger is under another predicate than its record", _REPORT),
        _rule(
            "swapped-stores",
            _N,
            "the payload is stored before the timestamp; the runtime accepts it",
            "make both stores volatile to keep their order",
            strict=_E,
        ),
        # Events and metadata
        _rule(
            "undeclared-event",
            _E,
            "a trigger's id is declared nowhere: NVIDIA's parser refuses the whole module",
            "remove the pmevent of your own, or declare the event",
        ),
        _rule("id-range", _E, "an event's id is outside the range of its method", _REPORT),
        _rule("mixed-methods", _E, "events of two methods are declared in one module", "use one method for a module"),
        _rule(
            "unused-event",
            _N,
            "a declared event has no site: its code was removed, or it is never reached",
            "nothing to do, if that code should be gone",
        ),
        _rule(
            "no-metadata",
            _E,
            "triggers, but no metadata: the runtime takes the module for not instrumented",
            "keep the metadata arrays: mark them as used, refer to them in host code too for -dlto, and link them in",
        ),
        _rule(
            "no-trigger",
            _W,
            "metadata, but no trigger: there is nothing to record",
            "check that the kernels with annotations are in this binary and compiled for this architecture",
        ),
        _rule("bad-metadata", _E, "a metadata array can not be decoded", _REBUILD),
        _rule("unknown-version", _E, "the metadata is of a version that is not known", "use a newer iket-rewrite"),
        _rule(
            "tilelang-header",
            _W,
            "the header holds counts where versions belong, as TileLang 0.1.15 writes it",
            "instrument with iket_rewrite in place of TileLang's own module",
        ),
        _rule("range-collision", _E, "two ranges have one range id", "rename one of them"),
        _rule("name-not-utf8", _E, "an event's name is not UTF-8", "name it in UTF-8"),
        _rule(
            "two-plans",
            _E,
            "two plans in one image: the runtime takes it for not instrumented",
            "rewrite what is linked together with one plan",
        ),
        # Architectures and files
        _rule(
            "pre-hopper",
            _E,
            "below sm_90 a record overwrites the kernel's own shared memory",
            "leave events out below sm_90, which is the default of iket-rewrite",
        ),
        _rule(
            "unknown-architecture",
            _W,
            "where records lie on this architecture is not known",
            "compile for an architecture that iket-rewrite knows",
        ),
        _rule(
            "unoptimised-extended",
            _W,
            "NVIDIA's parser was seen to lose events of ExtendedNativeDump in code that is not optimised",
            "compile without -G and -O0, or use at most 30 events",
        ),
        _rule("not-verified", _E, "a function could not be disassembled", "try another release of nvdisasm"),
        _rule(
            "ptx-not-judged",
            _N,
            "embedded PTX is not judged: the driver may compile it for another architecture",
            "build without PTX: -gencode arch=compute_90a,code=sm_90a",
        ),
        # Ranges
        _rule(
            "unbalanced-range",
            _W,
            "on some path the ranges do not pair up",
            "close the range on every path, or use IKET_RANGE, which does so by itself",
            strict=_E,
        ),
        _rule("not-decided", _N, "whether the ranges pair up was not decided", "nothing to do"),
        _rule(
            "empty-range",
            _W,
            "nothing stands between the two ends of a range",
            "move the range around the code it should measure; warp specialisation moves code out of ranges",
        ),
        # Comparison
        _rule(
            "official-differs",
            _E,
            "NVIDIA's parser reads the binary otherwise",
            "report the binary, and go by NVIDIA's parser",
        ),
    )
}
