# SPDX-License-Identifier: Apache-2.0
"""Every rule finds what it is for, and nothing else, in files whose lines say what is expected of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from toolbox import FIXTURES

import iket_rewrite
from iket_rewrite.linting.finding import RULES

FAULTS = sorted((FIXTURES / "lint" / "faults").glob("*.cu"))
_EXPECTED = re.compile(r"// lint: ([\w-]+)")


def expected(path: Path) -> list[tuple[int, str]]:
    lines = path.read_text(encoding="utf-8").split("\n")
    return [(number, name) for number, line in enumerate(lines, 1) for name in _EXPECTED.findall(line)]


def found(path: Path) -> list[tuple[int, str]]:
    pedantic = path.stem == "lane_payloads"
    return [(one.place.line, one.id) for one in iket_rewrite.lint(path.read_bytes(), path=path, pedantic=pedantic)]


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_fault_is_found_where_the_file_says_and_nowhere_else(path):
    assert found(path) == expected(path)
    assert expected(path)


def test_every_rule_has_at_least_two_faults():
    counts = Counter(name for path in FAULTS for _, name in expected(path))
    assert counts.keys() == RULES.keys()
    assert min(counts.values()) >= 2


def test_what_is_off_by_default_is_not_told_of():
    path = FIXTURES / "lint" / "faults" / "lane_payloads.cu"
    assert iket_rewrite.lint(path.read_bytes()) == ()


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_a_comment_silences_each_line(path):
    text = path.read_text(encoding="utf-8").replace("// lint:", "// iket-lint: off")
    assert iket_rewrite.lint(text, pedantic=True) == ()


def test_a_finding_says_where_what_and_how():
    path = FIXTURES / "lint" / "faults" / "open_ranges.cu"
    first = iket_rewrite.lint(path.read_text(encoding="utf-8"), path="kernel.cu")[0]
    assert str(first).splitlines() == [
        'kernel.cu:8:5: warning: the range "load" is still open where the function returns [push-without-pop]',
        '      IKET_RANGE_PUSH("load");  // lint: push-without-pop',
        "      ^^^^^^^^^^^^^^^",
        "kernel.cu:11:9: left open here",
        "          return;",
        "          ^",
        "  fix: pop on every path, or open it with IKET_RANGE, which ends by itself",
    ]
    assert isinstance(first, iket_rewrite.LintFinding)
    assert first.fails
