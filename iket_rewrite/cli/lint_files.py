# SPDX-License-Identifier: Apache-2.0
"""The work of `iket-rewrite --lint`: findings as text or JSON, and whether they fail."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..errors import OptionError
from ..linting.core import lint
from ..linting.finding import SCHEMA, LintFinding
from .output import write_all
from .rewrite_files import read_input

#: What may stand behind `--lint=`, several with commas between.
WORDS = ("warn", "error", "all")


def lint_files(options: argparse.Namespace) -> int:
    """Lint every input and print what was found; return 1 where that fails.

    Raises:
        IketError: an input can not be read or understood, or a word behind `--lint=` is none.
    """
    words = options.lint.split(",")
    for word in words:
        if word not in WORDS:
            raise OptionError(f"unknown --lint={word}", remedy=f"choose of {', '.join(WORDS)}, or write --lint alone")
    found: list[tuple[str, LintFinding]] = []
    counts = []
    for path in options.files:
        name = "<stdin>" if path == "-" else path
        findings = lint(read_input(path), path=name, pedantic="all" in words)
        found += [(name, finding) for finding in findings]
        counts.append(f"{name}: {_counted(findings)}")
    if options.json:
        table = {"schema": SCHEMA, "findings": [_as_json(finding) for _, finding in found]}
        text = json.dumps(table, indent=2, ensure_ascii=False) + "\n"
    else:
        lines = [str(finding) for _, finding in found] + ([] if options.quiet else counts)
        text = "".join(f"{line}\n" for line in lines)
    write_all([("-", text.encode("utf-8", "backslashreplace"))])
    return 1 if "error" in words and any(finding.fails for _, finding in found) else 0


def _counted(findings: tuple[LintFinding, ...]) -> str:
    warnings = sum(finding.fails for finding in findings)
    notes = len(findings) - warnings
    parts = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in ((warnings, "warning"), (notes, "note"))]
    return ", ".join(part for part in parts if not part.startswith("0 ")) or "no findings"


def _as_json(finding: LintFinding) -> dict[str, Any]:
    place = finding.place
    return {
        "file": place.path,
        "line": place.line,
        "column": place.column,
        "id": finding.id,
        "severity": finding.severity.value,
        "message": finding.message,
        "remedy": finding.remedy,
        "others": [
            {"role": role, "file": other.path, "line": other.line, "column": other.column}
            for role, other in finding.others
        ],
    }
