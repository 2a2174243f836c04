# SPDX-License-Identifier: Apache-2.0
"""iket-verify's verdict on the ranges of random kernels is the interpreter's, or there is none."""

from __future__ import annotations

import pytest
from verify.conditional_programs import Drawn, verdict
from verify.ranged import ARCHES

NUMBERS = [number for number in range(60) if Drawn(number).names]


@pytest.mark.parametrize("number", NUMBERS)
def test_the_verdict_on_a_random_kernel_is_right_or_there_is_none(number):
    drawn = Drawn(number)
    truth = "paired" if drawn.pairs_up() else "unbalanced"
    assert verdict(drawn.text, ARCHES[number % len(ARCHES)]) in (truth, "undecided"), drawn.text


def test_the_kernels_are_of_both_kinds():
    truths = [Drawn(number).pairs_up() for number in NUMBERS]
    assert 10 < sum(truths) < len(truths) - 10
