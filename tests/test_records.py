# SPDX-License-Identifier: Apache-2.0
"""The tests' own record reader: it reads right sequences, and trips on planted wrong ones."""

from __future__ import annotations

import pytest
from records import Record, parse_listing, records_of

NATIVE_32 = (("STS", 0), ("STS", 4))


def record(*lines: str) -> Record:
    """Return the last record of a kernel whose code is `lines`, each an instruction or a label."""
    text = ['\t.section\t.text.kernel,"ax",@progbits']
    for index, line in enumerate(lines):
        text.append(line if line.endswith(":") else f"        /*{16 * index:04x}*/                   {line} ;")
    return records_of(parse_listing(text)["kernel"])[-1]


STAMP = ("CS2R.32 R3, SR_GLOBALTIMERLO", "LOP3.LUT R3, R3, 0x5, RZ, 0xfc, !PT")


def test_a_right_record_is_read():
    found = record(*STAMP, "@P0 STS [UR4], R3", "@P0 STS [UR4+0x4], R9", "PMTRIG 0x5")
    assert (found.id, found.shape, found.predicates, found.fault) == (5, NATIVE_32, {"P0"}, "")


@pytest.mark.parametrize(
    "stores",
    [
        ("STS [UR5+0x3f0], R3", "STS [UR5+0x3f4], R9"),
        ("STS [R8+0x20], R3", "STS [R8+0x24], R9"),
        ("STS [R8+UR4], R3", "STS [R8+UR4+0x4], R9"),
        ("STS [0x3f0], R3", "STS [0x3f4], R9"),
        ("STS [R8+-0x10], R3", "STS [R8+-0xc], R9"),
    ],
)
def test_only_differences_of_offsets_count(stores):
    assert record(*STAMP, *stores, "PMTRIG 0x5").shape == NATIVE_32


def test_other_instructions_and_stores_of_others_may_stand_between():
    found = record(
        *STAMP,
        "STS [UR4], R3",
        "STS [R4], R9",
        "STS [UR4+0x10], R9",
        "FFMA R9, R9, R9, R9",
        "STS [UR4+0x4], R9",
        "IMAD.MOV.U32 R9, RZ, RZ, 0x1",
        "PMTRIG 0x5",
    )
    assert found.shape == NATIVE_32


def test_the_timestamp_may_pass_through_uniform_registers_and_copies():
    found = record(
        "S2UR UR6, SR_GLOBALTIMERLO",
        "ULOP3.LUT UR6, UR6, 0x5, URZ, 0xfc, !UPT",
        "MOV R2, UR6",
        "STS [UR4], R2",
        "PMTRIG 0x5",
    )
    assert found.shape == (("STS", 0),)


def test_an_extended_record_is_read():
    found = record(
        "CS2R.32 R6, SR_GLOBALTIMERLO", "MOV R7, 0x45", "STS.64 [UR5], R6", "STS [UR5+0x8], R9", "PMTRIG 0x45"
    )
    assert (found.id, found.shape) == (0x45, (("STS.64", 0), ("STS", 8)))


@pytest.mark.parametrize(
    ("wrong", "shape"),
    [
        (("STS.64 [UR4], R3",), (("STS.64", 0),)),
        (("STS [UR4+0x4], R9", "STS [UR4], R3"), (("STS", 4), ("STS", 0))),
        (("STS [UR4], R3", "STS [UR4+0x8], R9"), (("STS", 0), ("STS", 8))),
        (("STS [UR4], R3", "STS [UR5+0x4], R9"), (("STS", 0),)),
        (("STS [UR4], R3", "STS [UR4+0x4], R9", "STS [UR4+0x8], R9"), (("STS", 0), ("STS", 4), ("STS", 8))),
        (("STS [UR4], R3", "STS.64 [UR4+0x4], R8"), (("STS", 0), ("STS.64", 4))),
        (("STS [UR4], R3",), (("STS", 0),)),
    ],
    ids=["merged", "swapped", "wrong offset", "another base", "one too many", "too wide", "no payload"],
)
def test_a_wrong_sequence_has_another_shape(wrong, shape):
    found = record(*STAMP, *wrong, "PMTRIG 0x5")
    assert found.shape != NATIVE_32
    assert (found.shape, found.fault) == (shape, "")


def test_stores_under_different_predicates_are_told():
    found = record(*STAMP, "@P0 STS [UR4], R3", "@P1 STS [UR4+0x4], R9", "PMTRIG 0x5")
    assert found.predicates == {"P0", "P1"}


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (("STS [UR4], R3", "PMTRIG 0x5"), "no timestamp is read before the trigger"),
        ((*STAMP, "STS [UR4], R3", "PMTRIG 0x4", "STS [UR4], R3", "PMTRIG 0x5"), "no timestamp is read between"),
        ((*STAMP, "STS [UR4], R3", ".L_x_1:", "PMTRIG 0x5"), "a jump can lead between"),
        ((*STAMP, "STS [UR4], R3", "@P0 BRA `(.L_x_1)", "PMTRIG 0x5"), "BRA stands between"),
        ((*STAMP, "STS [UR4], R9", "PMTRIG 0x5"), "the timestamp is not stored"),
        ((*STAMP, "IMAD.MOV.U32 R3, RZ, RZ, 0x1", "STS [UR4], R3", "PMTRIG 0x5"), "the timestamp is not stored"),
        ((*STAMP, "STS [UR4], R3", "STS [UR4+0x8], R3", "PMTRIG 0x5"), "the timestamp is stored 2 times"),
        (
            (*STAMP, "@P0 STS [UR4], R3", "ISETP.NE.AND P0, PT, R9, RZ, PT", "@P0 STS [UR4+0x4], R9", "PMTRIG 0x5"),
            "ISETP.NE.AND changes the address or the predicate",
        ),
        ((*STAMP, "STS [R4], R3", "VIADD R4, R4, 0x40", "STS [R4+0x4], R9", "PMTRIG 0x5"), "VIADD changes the address"),
        (
            (*STAMP, "STS [R5], R3", "LDC.64 R4, c[0x0][0x210]", "STS [R5+0x4], R9", "PMTRIG 0x5"),
            "LDC.64 changes the address",
        ),
    ],
)
def test_a_broken_sequence_is_a_fault(lines, fault):
    found = record(*lines)
    assert fault in found.fault
    assert found.stores == ()
