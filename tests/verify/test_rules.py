# SPDX-License-Identifier: Apache-2.0
"""Every rule trips on a binary with its fault, and does not on the one beside it."""

from __future__ import annotations

import re

import pytest
from toolbox import ROOT, nvrtc
from verify.planted import (
    EVENT_ID,
    EVENT_METHOD,
    EVENT_NAME,
    EVENT_PAYLOAD,
    HEADER_FEATURES,
    HEADER_MAGIC,
    HEADER_MINOR,
    RANGE_ID,
    SOURCE,
    bend,
    bend_array,
    binary,
    rewritten,
    word,
)

import iket_rewrite
from iket_rewrite.verification.rules import RULES, Severity

STAMP = "st.volatile.shared.b32 [address], stamp;"
PAYLOAD = "st.volatile.shared.b32 [address+4], %2;"
TRIGGER = "pmevent.mask %0;"


def rules(text: str, arch: str = "sm_90a", *, strict: bool = False) -> set[str]:
    report = iket_rewrite.verify(binary(text, arch), strict=strict)
    assert report.ok is not any(finding.severity is not Severity.NOTE for finding in report.findings)
    return {finding.rule for finding in report.findings}


def with_volatile_dropped() -> str:
    return bend(rewritten(), ("st.volatile.shared.b32", "st.shared.b32"))


def test_the_untouched_binary_is_clean_also_under_strict():
    assert rules(rewritten(), strict=True) == set()
    assert rules(rewritten(method="extended"), strict=True) == set()


# Each row: the rule, and how the rewritten text is bent.
BENT = {
    "merged-record": with_volatile_dropped,
    "payload-missing": lambda: bend(rewritten(), ("@first " + PAYLOAD + "\\n\\t", "")),
    "payload-undeclared": lambda: bend_array(rewritten(), "evt_decl_lane", EVENT_PAYLOAD, word(0)),
    "payload-width": lambda: bend(rewritten(), (PAYLOAD, PAYLOAD.replace("+4", "+8"))),
    "stamp-missing": lambda: bend(rewritten(), ('"' + STAMP + "\\n\\t", '"')),
    "stamp-width": lambda: bend(
        rewritten(method="extended"), ("st.volatile.shared.v2.b32 [address], {stamp, number};", STAMP)
    ),
    "record-address": lambda: bend(rewritten(), ("#define IKET_EMIT_OFFSET 0x3f0", "#define IKET_EMIT_OFFSET 0x3e0")),
    "id-mismatch": lambda: bend(rewritten(), ("or.b32 stamp, stamp, %0;", "or.b32 stamp, stamp, 9;")),
    "id-unproven": lambda: bend(rewritten(method="extended"), ("mov.b32 number, %0;", "mov.u32 number, %%laneid;")),
    "split-predicate": lambda: bend(rewritten(), ("@first " + STAMP, STAMP)),
    "trigger-predicate": lambda: bend(
        rewritten(), (PAYLOAD + '\\n\\t"\n      "' + TRIGGER, PAYLOAD + '\\n\\t"\n      "@first ' + TRIGGER)
    ),
    "undeclared-event": lambda: rewritten(SOURCE.replace("__syncthreads();", 'asm volatile("pmevent 13;");')),
    "id-range": lambda: bend_array(rewritten(), "evt_decl_plain", EVENT_ID, word(40)),
    "mixed-methods": lambda: bend_array(rewritten(), "evt_decl_plain", EVENT_METHOD, word(5)),
    "unused-event": lambda: rewritten(SOURCE.replace('IKET_MARK("plain")', 'if (false) IKET_MARK("plain")')),
    "no-metadata": lambda: bend(rewritten(), (" __iket_", " other_")),
    "no-trigger": lambda: bend(rewritten(), (TRIGGER, "")),
    "bad-metadata": lambda: bend_array(rewritten(), "meta_info", HEADER_MAGIC, word(1)),
    "unknown-version": lambda: bend_array(rewritten(), "meta_info", HEADER_MINOR, word(9)),
    "tilelang-header": lambda: bend_array(
        bend_array(rewritten(), "meta_info", HEADER_MINOR, word(7)), "meta_info", HEADER_FEATURES, word(5)
    ),
    "name-not-utf8": lambda: bend_array(rewritten(), "evt_decl_plain", EVENT_NAME, b"\xff"),
    "unbalanced-range": lambda: rewritten(
        SOURCE.replace('IKET_MARK("plain");', "if (value == 77) { data[0] = 1; return; }")
    ),
    "empty-range": lambda: rewritten(
        SOURCE.replace('IKET_MARK("plain");', 'IKET_RANGE_PUSH("empty"); IKET_RANGE_POP();')
    ),
    "two-plans": lambda: rewritten().replace("#line 1", _second_plan() + "#line 1", 1),
}


def _second_plan() -> str:
    return "static __device__ __attribute__((used)) unsigned char iket_rewrite_plan_0123456789abcdef[8] = {1};\n"


@pytest.mark.parametrize("rule", BENT)
def test_a_planted_fault_is_found(rule):
    found = rules(BENT[rule]())
    assert rule in found
    allowed = {
        # What one fault brings along.
        "merged-record": {"swapped-stores"},
        "id-range": {"undeclared-event", "unused-event"},
        "mixed-methods": {"id-range"},
        "tilelang-header": set(),
        "undeclared-event": set(),
        "bad-metadata": set(),
        "no-metadata": set(),
        "record-address": set(),
    }
    assert found <= {rule} | allowed.get(rule, set()), found


#: The neighbours: texts close to a planted fault that break nothing.
SOUND = {
    "a condition around the whole of an event": SOURCE.replace(
        'IKET_MARK("plain")', 'if (value > 3) IKET_MARK("plain")'
    ),
    "a range under one condition, opened and closed apart": SOURCE.replace(
        'IKET_RANGE_PUSH("outer");', 'if (threadIdx.x < 32) IKET_RANGE_PUSH("outer");'
    ).replace("IKET_RANGE_POP();", "if (threadIdx.x < 32) IKET_RANGE_POP();"),
    "a loop that opens and closes": SOURCE.replace(
        'IKET_MARK("plain");',
        "for (unsigned i = 0; i < count; ++i) { "
        'IKET_RANGE_PUSH("pass", IKET_U32(i)); tile[i] += 1; IKET_RANGE_POP(); }',
    ),
    "an early exit with nothing open": SOURCE.replace(
        'IKET_RANGE_PUSH("outer");', 'if (value == 77) return;\n  IKET_RANGE_PUSH("outer");'
    ),
    "an early exit that closes first": SOURCE.replace(
        'IKET_MARK("plain");', "if (value == 77) { data[0] = 1; IKET_RANGE_POP(); return; }"
    ),
    "two roles of warps with ranges of their own": SOURCE.replace(
        'IKET_MARK("plain");',
        'if (threadIdx.x < 64) { IKET_RANGE_PUSH("producer"); tile[0] = 1; IKET_RANGE_POP(); } '
        'else { IKET_RANGE_PUSH("consumer"); tile[1] = 2; IKET_RANGE_POP(); }',
    ),
    "a scope that lanes leave early": SOURCE.replace(
        'IKET_MARK("plain");', '{ IKET_RANGE("scope"); if (value == 77) { data[0] = 1; IKET_RANGE_POP(); return; } }'
    ),
    "a range around one store": SOURCE.replace(
        'IKET_MARK("plain");', 'IKET_RANGE_PUSH("store"); data[threadIdx.x + 64] = value; IKET_RANGE_POP();'
    ),
}


@pytest.mark.parametrize("case", SOUND)
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_what_is_close_to_a_fault_and_sound_is_not_found(case, arch):
    assert rules(rewritten(SOUND[case]), arch, strict=True) == set()


def test_a_swapped_pair_is_a_note_and_an_error_under_strict():
    text = rewritten()
    form = f'"@first {STAMP}\\n\\t"\n      "@first {PAYLOAD}\\n\\t"'
    swapped = bend(text, (form, f'"@first {PAYLOAD}\\n\\t"\n      "@first {STAMP}\\n\\t"'))
    assert rules(swapped) == {"swapped-stores"}
    report = iket_rewrite.verify(binary(swapped), strict=True)
    assert not report.ok


def test_a_record_below_sm_90_is_an_error():
    text = rewritten(pre_hopper="rank0")
    assert rules(text, "sm_80") == {"pre-hopper"}
    assert rules(rewritten(), "sm_80") == set()


def test_a_64_bit_stamp_is_right_in_extended_and_a_64_bit_payload_at_8_in_both():
    for method in ("native", "extended"):
        report = iket_rewrite.verify(binary(rewritten(method=method)), strict=True)
        assert report.ok
        wide = [site for site in report.sites if site.name == "span"]
        assert len(wide) == 2
        assert all(any(row[2] == "STS.64" and row[4] == "payload" for row in site.instructions) for site in wide)


def test_a_debug_build_is_judged_but_for_its_graph():
    native = iket_rewrite.verify(nvrtc(rewritten(), debug=True), strict=True)
    assert native.ok
    assert [finding.rule for finding in native.findings] == ["not-decided"]
    extended = iket_rewrite.verify(nvrtc(rewritten(method="extended"), debug=True))
    assert {finding.rule for finding in extended.findings} == {"not-decided", "unoptimised-extended"}


def test_two_ranges_with_one_id_and_an_unknown_architecture_and_ptx_beside_are_found(tmp_path):
    text = rewritten(SOURCE.replace('IKET_MARK("plain");', 'IKET_RANGE_PUSH("inner"); tile[3] += 1; IKET_RANGE_POP();'))
    (outer,) = set(re.findall(r"__iket_range_decl_outer_(\d+)_attrs", text))
    text = bend_array(text, "range_decl_inner", RANGE_ID, word(int(outer)))
    text = bend_array(text, "evt_decl_inner", 20, word(int(outer)))
    assert "range-collision" in rules(text)
    # The architecture stands in the ELF header's flags.
    data = bytearray(binary(rewritten()))
    assert data[49] == 90
    data[49] = 93
    report = iket_rewrite.verify(bytes(data))
    assert {finding.rule for finding in report.findings} >= {"unknown-architecture"} or not report.ok


def test_every_rule_has_its_paragraph_in_the_docs_and_nothing_else_has():
    text = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    headings = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    assert headings == list(RULES)
