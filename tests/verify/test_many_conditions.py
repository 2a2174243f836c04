# SPDX-License-Identifier: Apache-2.0
"""Kernels that keep more conditions than there are predicates: ptxas puts them away and computes them anew in records.

What it makes of twelve roles of warps on sm_90a: the timer is read under P0, P0 is computed again with the comparison
that it came from, and the record is stored under it.
"""

from __future__ import annotations

import pytest
from verify.ranged import ARCHES, report, rules

from iket_rewrite.verification.conditions import Conditions
from iket_rewrite.verification.flow import Flow
from iket_rewrite.verification.sass import Instruction

WARP = "const int w = threadIdx.x / 32;"
WARP_OF_ALL = "const int w = __shfl_sync(~0u, threadIdx.x / 32, 0);"
PUSH, PUSH_WITH_PAYLOAD = 'IKET_RANGE_PUSH("r{}")', 'IKET_RANGE_PUSH("r{}", IKET_U32(n))'


def _nest(count: int, condition: str = "w == {}", push: str = PUSH) -> str:
    """Open ranges one by one, each under a condition of its own, and close them in the opposite order."""
    opened = (f"if ({condition.format(i)}) {push.format(i)}; o[{i}] = {i} * n;" for i in range(count))
    closed = (f"if ({condition.format(i)}) IKET_RANGE_POP(); o[{i + 64}] += 1;" for i in reversed(range(count)))
    return " ".join([*opened, *closed])


def _turns(conditions: list[str]) -> str:
    """Open and close ranges one after the other in each turn of a loop, with a payload, each under a condition."""
    each = (
        f'if ({one}) IKET_RANGE_PUSH("r{i}", IKET_U32(o[{i}])); o[{i + 64}] = {i} * n; if ({one}) IKET_RANGE_POP();'
        for i, one in enumerate(conditions)
    )
    return f"{WARP_OF_ALL}\n#pragma unroll 1\nfor (int j = 0; j < n; ++j) {{ {' '.join(each)} }}"


def _flags(count: int, comparison: str) -> str:
    return " ".join(f"const bool c{i} = {comparison.format(i)};" for i in range(count))


#: No finding: what is known of one value tells that only one of them holds.
ROLES = {
    "eight roles": WARP + _nest(8),
    "twelve roles": WARP + _nest(12),
    "sixteen roles with payloads": WARP + _nest(16, push=PUSH_WITH_PAYLOAD),
    "twelve roles of a broadcast index": WARP_OF_ALL + _nest(12),
    "twelve roles in each turn": f"{WARP}\n#pragma unroll 1\nfor (int j = 0; j < n; ++j) {{ {_nest(12)} }}",
    "marks": WARP
    + " ".join(f'if (w == {i}) IKET_MARK("m{i}", IKET_U32(n)); o[{i}] = {i} * n;' for i in range(12))
    + " ".join(f'if (w == {i}) IKET_MARK("q{i}"); o[{i}] = {i} * n;' for i in range(12)),
}

#: Conditions that ptxas combines, and that tell of one another on the ways between them: no finding.
COMBINED = {
    "a warp and a flag": _flags(3, "o[{}] > n") + _turns(["w == 5 && c0", "w == 3", "w == 4 && c2", "w > 6", "c2"]),
    "a warp or a flag": _turns(["w != 6 || n > 6", "w < 5", "w > 5", "w != 9 || n > 9", "w < 11"]),
    "what one way has decided": _turns(["w < 5", "w > 5", "w == 6", "w != 7 || n > 7", "w == 3", "w > 4"]),
    "bits of a parameter": _turns(["n & 1", "w == 2 || n & 1", "w == 3 && !(n & 1)", "n & 512"]),
}

#: Any of them can hold beside the others: the records are sound, the paths too many.
FLAGS = {
    "integers": _flags(12, "o[{}] > n") + _nest(12, "c{}"),
    "floating point": _flags(12, "((volatile float*)o)[{}] > 2.5f") + _nest(12, "c{}", PUSH_WITH_PAYLOAD),
    "of a role each": WARP + _flags(6, "o[{}] > n") + _nest(6, "w == {0} && c{0}") + _nest(6, "c{}"),
}


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", ROLES)
def test_roles_of_warps_have_no_finding(name, arch):
    assert rules(ROLES[name], arch) == set()


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", COMBINED)
def test_combined_conditions_have_no_finding(name, arch):
    assert rules(COMBINED[name], arch) == set()


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", COMBINED)
def test_a_range_that_a_combined_condition_leaves_open_is_told(name, arch):
    body = COMBINED[name]
    last = body.rindex("IKET_RANGE_POP()")
    assert "unbalanced-range" in rules(f"{body[:last]}o[99] = 1{body[last + len('IKET_RANGE_POP()') :]}", arch)


@pytest.mark.parametrize("arch", ARCHES)
def test_ranges_under_many_conditions_one_after_the_other_are_decided(arch):
    conditions = [f"c{i}" for i in range(12)]
    assert rules(_flags(12, "o[{}] > n") + _turns(conditions), arch) == set()


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", FLAGS)
def test_records_under_flags_are_sound(name, arch):
    judged = report(FLAGS[name], arch)
    assert judged.ok
    assert {finding.rule for finding in judged.findings} <= {"not-decided", "empty-range"}
    assert {site.verdict for site in judged.sites} == {"ok"}


@pytest.mark.parametrize("arch", ARCHES)
def test_a_range_that_one_of_twelve_roles_leaves_open_is_told(arch):
    body = WARP + _nest(12).replace("if (w == 9) IKET_RANGE_POP();", "")
    judged = report(body, arch)
    messages = [finding.message for finding in judged.findings if finding.rule == "unbalanced-range"]
    assert len(messages) == 1
    assert "'r9'" in messages[0]


#: Between reading the timer under @!P0 and storing it under @!P0: what is done, and whether P0 is the same then.
BETWEEN = {
    "nothing": ([], True),
    "the same comparison": ([("ISETP.NE.AND", "P0,PT,R0,0x1,PT")], True),
    "the same comparison of the opposite": ([("ISETP.EQ.AND", "P0,PT,R0,0x1,PT")], False),
    "another comparison": ([("ISETP.NE.AND", "P0,PT,R0,0x2,PT")], False),
    "another value": ([("ISETP.NE.AND", "P0,PT,R1,0x1,PT")], False),
    "put away, used, taken back": (
        [("P2R", "R6,PR,RZ,0x1"), ("ISETP.NE.AND", "P0,PT,R0,0x7,PT"), ("ISETP.NE.AND", "P0,PT,R6,RZ,PT")],
        True,
    ),
    "another one taken back": (
        [("P2R", "R6,PR,RZ,0x2"), ("ISETP.NE.AND", "P0,PT,R6,RZ,PT")],
        False,
    ),
    "the value has changed": ([("IADD3", "R0,R0,0x1,RZ"), ("ISETP.NE.AND", "P0,PT,R0,0x1,PT")], False),
    "an election each": ([("ELECT", "P0,URZ,PT")], False),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_two_instructions_act_together_where_their_predicate_is_the_same(name):
    between, together = BETWEEN[name]
    assert _act_together(between, "@!P0", elected="election" in name) is together


#: Other predicates for the store, the instruction that computes them, and whether they are the same.
OTHERS = {
    "@P2": ("ISETP.EQ.AND", "P2,PT,R0,0x1,PT", True),
    "@!P2": ("ISETP.NE.AND", "P2,PT,R0,0x1,PT", True),
    "@!P3": ("ISETP.EQ.AND", "P3,PT,R0,0x1,PT", False),
    "@P4": ("PLOP3.LUT", "P4,PT,P0,PT,PT,0x8,0x80", True),
    "@P5": ("PLOP3.LUT", "P5,PT,P0,PT,PT,0x80,0x8", False),
    "@P6": ("PLOP3.LUT", "P6,PT,P0,P1,PT,0x80,0x8", False),
}


@pytest.mark.parametrize("predicate", OTHERS)
def test_predicates_of_other_names_can_be_the_same(predicate):
    opcode, operands, together = OTHERS[predicate]
    assert _act_together([(opcode, operands)], predicate) is together


def _act_together(between, predicate: str, *, elected: bool = False) -> bool:
    code = [
        ("", "LDG.E", "R0,desc[UR4][R2.64]"),
        ("", "LDG.E", "R1,desc[UR4][R4.64]"),
        ("", "ISETP.NE.AND", "P1,PT,R1,0x1,PT"),
        ("", *(("ELECT", "P0,URZ,PT") if elected else ("ISETP.NE.AND", "P0,PT,R0,0x1,PT"))),
        ("@!P0", "CS2R.32", "R8,SR_GLOBALTIMERLO"),
        *(("", opcode, operands) for opcode, operands in between),
        (predicate, "STS", "[UR6],R8"),
        ("", "EXIT", ""),
    ]
    flow = Flow([Instruction(16 * index, *one) for index, one in enumerate(code)])
    return flow.certain(4, len(code) - 2) or Conditions(flow).act_together(4, len(code) - 2)
