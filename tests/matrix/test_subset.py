# SPDX-License-Identifier: Apache-2.0
"""A part of the ptxas matrix: the releases at hand, each with some architectures and levels."""

from __future__ import annotations

import itertools

import pytest
from assembling import assemble_with, releases
from builds import expected_shape
from matrix.cells import LEVELS, METHODS, SPILLING_KERNEL, assembly, judge
from matrix.sources import PAYLOADS, module
from records import read_records

from iket_rewrite.abi import Method
from iket_rewrite.rewriting.plan import PayloadForm

ARCHES = ("sm_90a", "sm_100a", "sm_120a")


def runs() -> list:
    cells = itertools.product(LEVELS, releases())
    return [
        pytest.param(release, ARCHES[index % len(ARCHES)], level, METHODS[index // 2 % 2])
        for index, (level, release) in enumerate(cells)
    ]


@pytest.mark.parametrize(("release", "arch", "level", "method"), runs())
def test_a_cell_of_the_matrix(release, arch, level, method, tmp_path):
    cell = judge(release, releases()[release], arch, level, method, tmp_path)
    assert cell.good, cell
    assert cell.triggers > 150
    assert cell.level == "-O0" or cell.triggers - cell.parsed <= 4


def test_code_that_is_not_optimised_is_told_without_a_note_of_the_options(tmp_path):
    # Cubins of releases 12.x for sm_90 have none.
    release = next(release for release in releases() if release.startswith("12."))
    for level, limit in (("-O0", "unoptimised"), ("-O1", "")):
        assert judge(release, releases()[release], "sm_90a", level, "extended", tmp_path).limit == limit


@pytest.mark.parametrize("method", METHODS)
def test_an_independent_reader_finds_the_same_records(method, tmp_path):
    release = list(releases())[-1]
    binary = assemble_with(releases()[release], assembly(method, "sm_90a"), release, "sm_90a", "-O3", tmp_path)
    records = read_records(binary)
    # Its straight walk does not follow a timestamp through local memory.
    del records[SPILLING_KERNEL]
    assert len(records) == 6
    for one in (one for found in records.values() for one in found):
        assert not one.fault, one
        assert one.shape == expected_shape(module(method).plan, one.id), one


@pytest.mark.parametrize("method", METHODS)
def test_the_source_has_every_form(method):
    plan = module(method).plan
    assert plan.method is Method(method)
    used = [(site.event.payload, site.form) for site in plan.sites if site.event and site.event.payload]
    assert {payload.name for payload, _ in used} == {{"PTR": "pointer"}.get(name, name.lower()) for name in PAYLOADS}
    # The form follows from how wide the record's payload is and whether lanes differ.
    forms = {(payload.bits == 64, form) for payload, form in used}
    assert forms == {(wide, form) for wide in (True, False) for form in (PayloadForm.ELECTED, PayloadForm.UNIFORM)}
