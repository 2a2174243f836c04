# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's own compiler against this project: the same events in the same order give the same bytes and records."""

from __future__ import annotations

import functools
import json

import pytest
from builds import arrays
from records import read_records
from toolbox import FIXTURES, nvrtc

import iket_rewrite

ORACLE = json.loads((FIXTURES / "oracle" / "cutedsl_4.8.1.json").read_text(encoding="utf-8"))["cases"]
CASES = [pytest.param(case, arch, id=f"{case}-{arch}") for case in ORACLE for arch in ORACLE[case]]

PLAIN = [
    'IKET_MARK("mark");',
    'IKET_RANGE_START("token");',
    'IKET_RANGE_END("token");',
    'IKET_RANGE_PUSH("stack");',
    "IKET_RANGE_POP();",
    'IKET_MARK("slash/name");',
    'IKET_MARK("é");',
]
# The value differs from lane to lane, as CuTe DSL assumes of every payload: so both sides elect a lane.
PAYLOADS = [
    *(f'IKET_MARK("{name}", IKET_{name.upper()}(value));' for name in ("i8", "u8", "i16", "u16", "i32", "u32")),
    *(f'IKET_MARK("{name}", IKET_{name.upper()}(value));' for name in ("i64", "u64", "f32", "f64")),
    'IKET_RANGE_START("token_payload", IKET_I32(value));',
    'IKET_RANGE_END("token_payload", IKET_I32(value));',
    'IKET_RANGE_PUSH("stack_payload", IKET_F32(value));',
    "IKET_RANGE_POP();",
]
FILLERS = [f'IKET_MARK("filler{index:02d}");' for index in range(30)]


def annotated(case: str) -> str:
    """Return a kernel with the events of fixtures/oracle/make_cutedsl_oracle.py, in its order."""
    lines = PLAIN + (PAYLOADS if case.endswith("payload") else []) + (FILLERS if case.startswith("extended") else [])
    body = "\n".join("    " + line for line in lines)
    return (
        "#include <iket_rewrite/iket.cuh>\n"
        'extern "C" __global__ void kern(int const* values) {\n'
        f"    int value = values[threadIdx.x];\n    (void)value;\n{body}\n}}\n"
    )


@functools.cache
def binary(case: str, arch: str) -> bytes:
    return nvrtc(iket_rewrite.rewrite(annotated(case)).text, arch)


@pytest.mark.parametrize(("case", "arch"), CASES)
def test_the_metadata_is_the_same_to_the_byte(case, arch):
    ours = {name: list(data) for name, data in arrays(binary(case, arch)).items() if name.startswith("__iket_")}
    assert ours == ORACLE[case][arch]["symbols"]


@pytest.mark.parametrize(("case", "arch"), CASES)
def test_the_sites_are_the_same_in_ids_and_stores(case, arch):
    (records,) = read_records(binary(case, arch)).values()
    assert not [one for one in records if one.fault]
    # CuTe DSL's plain stores may be swapped by ptxas; ours may not, which other tests see to.
    assert [(one.id, sorted((s.opcode, s.offset, bool(s.predicate)) for s in one.stores)) for one in records] == [
        (site["event_id"], sorted((s["store"], s["offset"], s["predicated"]) for s in site["stores"]))
        for site in ORACLE[case][arch]["sites"]
    ]
    assert all(len(one.predicates) == 1 for one in records)
