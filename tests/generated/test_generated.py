# SPDX-License-Identifier: Apache-2.0
"""200 random programs, rewritten and compiled: plan and binary hold what their trees say, and what the CPU runs.

`tests/gpu/test_generated.py` captures the same programs.
"""

from __future__ import annotations

import pytest
from builds import check_declarations, pmtrig_words
from generated.interpreting import run_block
from generated.language import Call, Module, Pop, Program, Scoped, sites
from generated.making import make_module
from generated.printing import source
from toolbox import ARCHES, nvrtc

import iket_rewrite
from iket_rewrite import abi

MODULES = 20


def declared(module: Module) -> list[tuple[str, str, str | None]]:
    """Return the events in the order of the text; a function stands before the kernel that calls it."""
    found = {}
    for program in module.programs:
        for site in (*_in_functions(program.body), *_outside(program.body)):
            found.setdefault((site.event.kind, site.event.name, site.event.payload))
    return list(found)


def _in_functions(body):
    for statement in body:
        if isinstance(statement, Call):
            yield from sites(statement.body)
        else:
            for inner in _bodies(statement):
                yield from _in_functions(inner)


def _outside(body):
    for statement in body:
        if not isinstance(statement, Call):
            inner = _bodies(statement)
            yield from ([statement.site] if hasattr(statement, "site") else [])
            for one in inner:
                yield from _outside(one)


def _bodies(statement):
    return [
        one
        for name in ("body", "then", "otherwise")
        for one in [getattr(statement, name, None)]
        if isinstance(one, tuple)
    ] + list(getattr(statement, "bodies", ()))


def sites_of(body) -> int:
    """Count the annotations in the text of a body and its functions, pops included."""
    own = sum(isinstance(one, Pop) or hasattr(one, "site") for one in body)
    return own + sum(sites_of(inner) for one in body for inner in _bodies(one))


def ids(program: Program, plan: iket_rewrite.Plan) -> tuple[set[int], set[int]]:
    """Return the ids that the kernel may trigger, and those that the CPU saw it trigger."""
    number = {(event.kind.value, event.name): event.id for event in plan.events}
    may = {number[site.event.kind, site.event.name] for site in sites(program.body)} | {abi.ID_POP}
    kinds = {"mark": "mark", "push": "range", "start": "token_range", "end": "token_range"}
    seen = set()
    for block in range(program.blocks):
        for warp in run_block(program, block):
            for one in flat(warp.events):
                seen.add(abi.ID_POP if one.action == "pop" else number[kinds[one.action], one.name])
    return may, seen


def flat(events):
    for one in events:
        yield from (one,) if hasattr(one, "action") else (*one.first, *one.second)


@pytest.mark.parametrize("seed", range(MODULES))
def test_a_binary_holds_what_the_programs_say(seed):
    module = make_module(seed)
    result = iket_rewrite.rewrite(source(module))
    plan = result.plan
    assert [(one.kind.value, one.name, one.payload and one.payload.name) for one in plan.events] == declared(module)
    assert len(plan.sites) == sum(sites_of(program.body) for program in module.programs)
    cubin = nvrtc(result.text, ARCHES[seed % len(ARCHES)])
    found = check_declarations(plan, cubin)
    assert {name for name, events in found.triggers.items() if events} == {one.name for one in module.programs}
    assert sum(map(len, found.triggers.values())) == pmtrig_words(cubin)
    for program in module.programs:
        may, seen = ids(program, plan)
        triggered = {number for number, _ in found.triggers[program.name]}
        assert seen <= triggered <= may
    # Ranges around nothing are what a random program has.
    report = iket_rewrite.verify(cubin, strict=True)
    assert [one for one in report.findings if one.fails and one.rule != "empty-range"] == []


def test_programs_have_what_the_language_has():
    """The generator draws every kind of statement, and enough of each."""
    text = "".join(repr(make_module(seed)) for seed in range(MODULES))
    for kind in (
        "Mark",
        "Push",
        "Pop",
        "Start",
        "Scoped",
        "Load",
        "Exchange",
        "If",
        "Divide",
        "Loop",
        "Switch",
        "Call",
    ):
        assert text.count(f"{kind}(") >= 100, kind
    for kind in ("how='break'", "how='continue'", "how='return'", "LanesReturn(", "diverging=True"):
        assert text.count(kind) >= 8, (kind, text.count(kind))
    for payload in abi.PAYLOADS:
        assert text.count(f"payload='{payload}'") >= 8, payload
    assert Scoped is not None
