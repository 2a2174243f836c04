# SPDX-License-Identifier: Apache-2.0
"""docs/traces.md says what the code does: every finding has its paragraph, every subcommand its line."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from toolbox import ROOT

from iket_rewrite.cli.trace_command import SUBCOMMANDS
from iket_rewrite.tracing import findings, grouping

TEXT = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")


def test_every_finding_is_documented_and_nothing_else():
    tree = ast.parse(Path(findings.__file__).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    made = {
        (node.args[0].value, node.args[1].value)
        for node in calls
        if isinstance(node.func, ast.Name) and node.func.id == "Finding"
    }
    section = TEXT.split("## Findings")[1].split("\n## ")[0]
    paragraphs = re.findall(r"### (.+)\n(Warning|Note)s?\.", section)
    told = {(code, severity.lower()) for codes, severity in paragraphs for code in codes.split(", ")}
    assert len(made) > 10
    assert told == made


def test_every_subcommand_and_division_is_documented():
    assert [name for name in SUBCOMMANDS if f"iket-trace {name}" not in TEXT] == []
    assert "|".join(grouping.BY) in TEXT
