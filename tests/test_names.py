# SPDX-License-Identifier: Apache-2.0
"""Names: hashes with known answers, and the boundaries of the record's field."""

from __future__ import annotations

import pytest

from iket_rewrite import names

# From the FNV reference pages (draft-eastlake-fnv, test vectors).
KNOWN = {
    b"": (0x811C9DC5, 0xCBF29CE484222325),
    b"a": (0xE40C292C, 0xAF63DC4C8601EC8C),
    b"foobar": (0xBF9CF968, 0x85944171F73967E8),
}


@pytest.mark.parametrize("data", KNOWN)
def test_hashes_have_their_known_answers(data):
    assert (names.fnv1a32(data), names.fnv1a64(data)) == KNOWN[data]


def test_hashes_are_of_bytes_above_127_too():
    assert names.fnv1a32("é".encode()) == ((((0x811C9DC5 ^ 0xC3) * 0x01000193) ^ 0xA9) * 0x01000193) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("name", "inline"),
    [
        ("a" * 31, True),
        ("a" * 32, True),
        ("a" * 33, False),
        ("é" * 16, True),
        ("é" * 16 + "a", False),
        ("🚀" * 8, True),
    ],
)
def test_an_inline_name_fills_up_to_32_bytes(name, inline):
    assert names.fits_inline(name) is inline


@pytest.mark.parametrize("name", ["a", "a" * 31, "a" * 32, "é" * 16])
def test_an_inline_name_has_no_nul(name):
    data = name.encode("utf-8")
    assert names.encode(name, long_names=False) == names.EncodedName(data, len(data))


@pytest.mark.parametrize("name", ["a", "a" * 31, "é" * 15 + "a"])
def test_among_long_names_one_of_31_bytes_stays_in_its_record_with_a_nul(name):
    data = name.encode("utf-8")
    assert names.encode(name, long_names=True) == names.EncodedName(data, len(data) + 1)


@pytest.mark.parametrize("name", ["a" * 32, "a" * 33, "é" * 16, "x" * 100_000])
def test_among_long_names_one_of_32_bytes_is_replaced_by_its_hash(name):
    data = name.encode("utf-8")
    encoded = names.encode(name, long_names=True)
    key = f"h{names.fnv1a64(data):016x}"
    assert encoded == names.EncodedName(key.encode(), len(data) + 1, key, data + b"\0")
    assert len(encoded.field) == 17


@pytest.mark.parametrize(
    ("name", "word"),
    [("a/b c.d", "a_b_c_d"), ("é", "__"), ("_A9z", "_A9z"), ("中", "___"), ("a\nb", "a_b")],
)
def test_a_symbol_has_an_underline_for_every_other_byte(name, word):
    assert names.symbol_word(name, long_names=False) == word
    assert names.symbol_word(name, long_names=True) == "id"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("", "the name is empty"),
        ("a\0", "the name holds a NUL"),
        ("\ud800", "the name is not valid UTF-8"),
        (" ", None),
        ("\n", None),
        ("中" * 1000, None),
    ],
)
def test_a_name_is_any_text_but_three(name, fault):
    assert names.fault_of(name) == fault
