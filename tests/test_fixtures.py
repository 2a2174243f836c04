# SPDX-License-Identifier: Apache-2.0
"""The plan of every fixture against what was written down by hand, or read by another program."""

from __future__ import annotations

import pytest
from texts import expected, fixture
from toolbox import FIXTURES

from iket_rewrite import rewrite
from iket_rewrite.abi import Method

CUDA, TILELANG, TIRX = (expected(folder) for folder in ("cuda", "tilelang", "tirx"))
RAW = [
    *(("cuda", stem) for stem in CUDA),
    *(("tilelang", stem) for stem in TILELANG),
    *(("tirx", stem) for stem in TIRX if stem.startswith("tokens")),
]
#: Kernels with helpers, templates or wrappers of fixed names hold events whose sites do not stand in them.
WHOLE = ["tiled_gemm", "block_reduce", "cluster", "all_payloads", "many_events", "long_names", "scoped_exits"]


def planned(folder, stem):
    path = fixture(folder, stem)
    return rewrite(path.read_bytes(), path=str(path), runtime_payloads=True).plan


def named_in(plan) -> dict[str, list[str]]:
    """Return the names of the events at each kernel's sites, in the order of first appearance."""
    names: dict[str, list[str]] = {}
    for site in plan.sites:
        if site.kernel is not None and site.event is not None and site.event.name not in names.get(site.kernel, ()):
            names.setdefault(site.kernel, []).append(site.event.name)
    return names


@pytest.mark.parametrize(("folder", "values"), [("cuda", CUDA), ("tilelang", TILELANG), ("tirx", TIRX)])
def test_every_fixture_is_written_down(folder, values):
    stems = {path.stem for path in (FIXTURES / folder).glob("*.cu") if not path.stem.endswith(".instrumented")}
    assert stems == set(values)


@pytest.mark.parametrize(("folder", "stem"), RAW)
def test_events_have_their_kinds_names_types_and_order(folder, stem):
    wanted = expected(folder)[stem]["events"]
    events = planned(folder, stem).events
    assert [(event.kind.value, event.name, event.payload.name if event.payload else None) for event in events] == [
        (event["kind"], event["name"], event["payload"]) for event in wanted
    ]


@pytest.mark.parametrize(("folder", "stem"), RAW)
def test_ids_are_dense_from_the_methods_first(folder, stem):
    plan = planned(folder, stem)
    first = {Method.NATIVE: 1, Method.EXTENDED: 64}[plan.method]
    assert [event.id for event in plan.events] == list(range(first, first + len(plan.events)))


@pytest.mark.parametrize(("folder", "stem"), RAW)
def test_no_site_is_missed_and_none_is_invented(folder, stem):
    assert len(planned(folder, stem).sites) == expected(folder)[stem]["sites"]


@pytest.mark.parametrize("stem", CUDA)
def test_method_and_form_of_the_names_are_as_written_down(stem):
    plan = planned("cuda", stem)
    assert (plan.method.value, plan.long_names) == (CUDA[stem]["method"], CUDA[stem]["long_names"])


@pytest.mark.parametrize("stem", CUDA)
def test_colours_are_as_written_down(stem):
    assert [event.color for event in planned("cuda", stem).events] == [event["color"] for event in CUDA[stem]["events"]]


@pytest.mark.parametrize("stem", WHOLE)
def test_sites_stand_in_their_kernels(stem):
    assert {kernel: sorted(names) for kernel, names in named_in(planned("cuda", stem)).items()} == CUDA[stem]["kernels"]


@pytest.mark.parametrize("stem", [stem for stem in CUDA if stem not in WHOLE])
def test_sites_of_helpers_and_macros_stand_in_no_kernel_of_their_own(stem):
    kernels = {name.split("<")[0]: set(names) for name, names in CUDA[stem]["kernels"].items()}
    found = named_in(planned("cuda", stem))
    assert set(found) == set(kernels)
    if stem == "templated":  # the branches of `if constexpr` belong to one instantiation each
        kernels = {"affine": set().union(*map(set, CUDA[stem]["kernels"].values()))}
    assert all(set(names) <= kernels[kernel] for kernel, names in found.items())


@pytest.mark.parametrize(("folder", "stem"), [pair for pair in RAW if pair[0] != "cuda"])
def test_sites_of_generated_code_stand_in_their_kernels(folder, stem):
    assert named_in(planned(folder, stem)) == expected(folder)[stem]["kernels"]


@pytest.mark.parametrize("stem", [stem for stem in TILELANG if not stem.startswith("tokens")])
def test_tilelangs_payloads_are_off_by_default(stem):
    plan = rewrite(fixture("tilelang", stem).read_bytes()).plan
    assert all(event.payload is None for event in plan.events)
    assert [event.declared.name if event.declared else None for event in plan.events] == [
        event["payload"] for event in TILELANG[stem]["events"]
    ]


@pytest.mark.parametrize(("folder", "stem"), [("tilelang", "tokens_sm_90a"), ("tirx", "tokens_sm_90a")])
def test_the_payloads_of_our_tokens_are_on_by_default(folder, stem):
    plan = rewrite(fixture(folder, stem).read_bytes()).plan
    assert all(event.payload is event.declared for event in plan.events)
    assert any(event.payload for event in plan.events)


@pytest.mark.parametrize("folder", ["tilelang", "tirx"])
def test_the_colour_of_a_token_arrives(folder):
    (colored,) = [event for event in planned(folder, "tokens_sm_90a").events if event.color is not None]
    assert (colored.name, colored.color) == ("block", 0x3366FF)
