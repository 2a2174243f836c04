# SPDX-License-Identifier: Apache-2.0
"""A small share of `make fuzz`, the same every time, and every input that once found a fault."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from fuzzing.naive import Refused, calls
from fuzzing.scanning import NAME, difference
from fuzzing.targets import TARGETS, faults
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SEEDS = sorted(path for path in (Path(__file__).parent / "seeds").iterdir() if path.suffix != ".md")
SHARE = {"scanner": 2000, "rewriter": 200, "tokens": 1000, "cubin": 300, "sass": 300, "trace": 200}


@pytest.mark.parametrize("name", TARGETS)
def test_drawn_inputs(name):
    for seed in range(SHARE[name]):
        data = TARGETS[name].draw(random.Random(f"{name} {seed}"))
        assert not (fault := faults(name, data)), (seed, fault)


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_inputs_that_once_found_a_fault(path):
    assert not faults(path.name.rpartition("-")[0], path.read_bytes())


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.text("IKET_MARK(\"')/*\\\n#R{} ifdefne01;x", max_size=60), st.text("()\"'/*\\\n#R ", max_size=12))
def test_the_scanner_and_the_naive_reader_agree_on_any_text(before, behind):
    assert difference(f"{before} {NAME}(1){behind}") == ""


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("IKET_MARK(1); x.IKET_MARK (2)", [0, 16]),
        ("/* IKET_MARK(1) */ IKET_MARK(2) // IKET_MARK(3)", [19]),
        ("\"IKET_MARK(1)\" 'IKET_MARK(1)' IKET_MARK", []),
        ('R"x(IKET_MARK(1) )" )x" IKET_MARK(2)', [24]),
        ("1'0 IKET_MARK(1) don't IKET_MARK(2)\nIKET_MARK(3)", [4, 36]),
        ("#if 0\nIKET_MARK(1)\n#else\nIKET_MARK(2)\n#endif", [25]),
        ("#define M IKET_MARK(1)\n#pragma IKET_MARK(2)\n", [10]),
    ],
)
def test_the_naive_reader_is_right(text, places):
    assert calls(text, NAME) == places


@pytest.mark.parametrize("text", ["IKET_MARK(", "IKET_MARK((]", "IKET_MARK(\n#x\n)", "IKET_MARK(')", "IKET_MARK(/*)"])
def test_the_naive_reader_refuses(text):
    with pytest.raises(Refused):
        calls(text, NAME)
