# SPDX-License-Identifier: Apache-2.0
"""Every fixture, rewritten and compiled with NVRTC, read back by the official parser and from its machine code."""

from __future__ import annotations

import pytest
from builds import (
    CUDA,
    GENERATED,
    TILELANG,
    TIRX,
    Fixture,
    check_declarations,
    check_kernels,
    check_records,
    cubin,
    cuda_arch,
    names,
    pmtrig_words,
    rewritten,
)
from toolbox import Official

from iket_rewrite import abi


def built(fixtures: list[Fixture], payloads: tuple[bool | None, ...]) -> list:
    """Return parameters: every fixture for each of its architectures, with and without runtime payloads."""
    return [
        pytest.param(fixture, arch, captured, id=f"{fixture.name}-{arch}-{captured}")
        for fixture in fixtures
        for arch in fixture.arches
        for captured in payloads
    ]


BUILDS = [*built(CUDA, (None,)), *built(TILELANG, (True, False)), *built(TIRX, (None, False))]
HOPPER = [one for one in BUILDS if cuda_arch(one.values[1]) >= abi.FIRST_CUDA_ARCH]


@pytest.mark.parametrize(("fixture", "arch", "captured"), HOPPER)
def test_the_official_parser_reads_the_plan(fixture, arch, captured):
    plan, binary = rewritten(fixture, captured).plan, cubin(fixture, arch, captured)
    found = check_declarations(plan, binary)
    check_kernels(fixture, plan, found)
    if fixture.triggers:
        assert {kernel: len(points) for kernel, points in found.triggers.items()} == fixture.triggers


#: Each family once; its other members on the fixtures that have most forms, since a disassembly takes longest of all.
FAMILIES = ("sm_90a", "sm_100a", "sm_120a")
MOST_FORMS = ("all_payloads", "many_events", "scoped_exits")
DISASSEMBLED = [one for one in HOPPER if one.values[1] in FAMILIES or one.values[0].path.stem in MOST_FORMS]


@pytest.mark.parametrize(("fixture", "arch", "captured"), DISASSEMBLED)
def test_every_record_has_the_contracts_shape(fixture, arch, captured):
    check_records(rewritten(fixture, captured).plan, cubin(fixture, arch, captured))


@pytest.mark.parametrize(("fixture", "arch", "captured"), [one for one in BUILDS if one not in HOPPER])
def test_before_hopper_nothing_is_recorded(fixture, arch, captured):
    binary = cubin(fixture, arch, captured)
    assert pmtrig_words(binary) == 0
    assert Official(binary).triggers == {}


@pytest.mark.parametrize("fixture", GENERATED, ids=names(GENERATED))
def test_a_plan_knows_which_kernel_its_sites_are_in(fixture):
    kernels: dict[str, set[str]] = {}
    for site in rewritten(fixture).plan.sites:
        if site.event is not None:
            kernels.setdefault(site.kernel, set()).add(site.event.name)
    assert kernels == {kernel: set(events) for kernel, events in fixture.kernels.items()}
