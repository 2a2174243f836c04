# SPDX-License-Identifier: Apache-2.0
"""Payloads: raw bits become values of their type, without loss."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iket_rewrite import abi
from iket_rewrite.tracing import payloads

CODES = {kind.name: kind.code for kind in abi.PAYLOADS.values() if kind.name != "bool"}


@pytest.mark.parametrize(
    ("name", "bits", "value", "text"),
    [
        ("i8", 248, -8, "-8"),
        ("i8", 127, 127, "127"),
        ("u8", 255, 255, "255"),
        ("i16", 0x8000, -32768, "-32768"),
        ("u16", 0xFFFF, 65535, "65535"),
        ("i32", 0xFFFFFFFF, -1, "-1"),
        ("u32", 0xFFFFFFFF, 4294967295, "4294967295"),
        ("i64", 2**63, -(2**63), "-9223372036854775808"),
        ("u64", 2**64 - 1, 2**64 - 1, "18446744073709551615"),
        ("f16", 0x3C00, 1.0, "1.0"),
        ("f16", 0x2E66, 0.0999755859375, "0.1"),
        ("bf16", 0x3F80, 1.0, "1"),
        ("bf16", 0x3DCD, 0.10009765625, "0.1"),
        ("bf16", 0xC2F7, -123.5, "-123.5"),
        ("f32", 1124073472, 128.0, "128.0"),
        ("f32", 0x3DCCCCCD, 0.10000000149011612, "0.1"),
        ("f64", 0x3FB999999999999A, 0.1, "0.1"),
        ("pointer", 0x7F0000001000, "0x7f0000001000", "0x7f0000001000"),
    ],
)
def test_a_value_of_each_type(name, bits, value, text):
    assert payloads.decode(CODES[name], bits) == value
    assert payloads.text(CODES[name], bits) == text
    assert payloads.type_name(CODES[name]) == name
    assert payloads.decode_all(np.array([CODES[name]], np.uint8), np.array([bits], np.uint64))[0] == value


def test_no_payload_and_an_unknown_type():
    assert payloads.decode(0, 0) is None
    assert payloads.text(0, 0) == ""
    assert payloads.type_name(0) is None
    assert payloads.decode(9, 255) == "0xff"
    assert payloads.type_name(9) == "type 9"


def test_not_a_number_and_infinity():
    assert math.isnan(payloads.decode(CODES["f32"], 0x7FC00000))
    assert payloads.decode(CODES["f16"], 0xFC00) == -math.inf
    assert payloads.text(CODES["bf16"], 0x7F80) == "inf"
    assert payloads.text(CODES["bf16"], 0x7FC0) == "nan"


@given(st.integers(0, 2**64 - 1), st.sampled_from(sorted(CODES)))
def test_columns_and_single_values_agree(bits, name):
    bits &= (1 << abi.PAYLOADS[name].bits) - 1
    value = payloads.decode(CODES[name], bits)
    column = payloads.decode_column(CODES[name], np.array([bits], np.uint64))
    found = f"{int(column[0]):#x}" if name == "pointer" else column[0].item()
    assert found == value or (math.isnan(found) and math.isnan(value))


@given(st.integers(0, 2**16 - 1))
def test_the_text_of_a_bf16_gives_its_bits_back(bits):
    value = payloads.decode(CODES["bf16"], bits)
    if not math.isfinite(value):
        return
    again = struct.unpack("<I", struct.pack("<f", float(payloads.text(CODES["bf16"], bits))))[0]
    # Rounded to nearest, as a conversion to bf16 does.
    assert (again + 0x7FFF + (again >> 16 & 1)) >> 16 == bits
