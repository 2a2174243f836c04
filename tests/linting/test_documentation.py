# SPDX-License-Identifier: Apache-2.0
"""docs/lint.md has a paragraph for each rule, and says of each what it is."""

from __future__ import annotations

import re

import pytest
from toolbox import ROOT

import iket_rewrite
from iket_rewrite.linting.finding import RULES

TEXT = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
PARAGRAPHS = dict(re.findall(r"^### (\S+)\n([\s\S]*?)(?=^##|\Z)", TEXT, re.MULTILINE))


def test_the_rules_of_the_page_are_those_of_the_program():
    assert list(PARAGRAPHS) == list(RULES)


@pytest.mark.parametrize("name", RULES)
def test_a_paragraph_says_what_the_rule_is(name):
    rule = RULES[name]
    first = "Note" if rule.severity.value == "note" else "Warning"
    assert PARAGRAPHS[name].startswith(f"{first}{'' if rule.by_default else ', off by default'}.")
    assert len(PARAGRAPHS[name].split()) > 15


def test_the_example_of_the_page_is_what_is_printed():
    source = re.search(r"```cuda\n(// kernel.cu\n[\s\S]*?)```", TEXT).group(1)
    shown = re.search(r"\$ iket-rewrite --lint kernel.cu\n([\s\S]*?)```", TEXT).group(1)
    findings = iket_rewrite.lint(source, path="kernel.cu")
    assert "".join(f"{one}\n" for one in findings) + f"kernel.cu: {len(findings)} warning\n" == shown
