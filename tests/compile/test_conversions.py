# SPDX-License-Identifier: Apache-2.0
"""What bits a payload's value becomes, read from the PTX of constants; GPU tests see the same bits in captures."""

from __future__ import annotations

import functools
import re
import struct

import pytest
from builds import ptx

import iket_rewrite


def f32(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f64(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


#: Annotation's payload, and the word that the record must hold: narrow values zero-extended.  With the table below
#: these are 30, as many as a NativeDump module has room for.
CASES = {
    "IKET_BOOL(3)": 1,
    "IKET_BOOL(0.0)": 0,
    "IKET_I8(-8)": 248,
    "IKET_I8(130)": 130,
    "IKET_U8(-1)": 255,
    "IKET_U8(300)": 44,
    "IKET_I16(-16)": 65520,
    "IKET_U16(70000)": 4464,
    "IKET_I32(-1)": 2**32 - 1,
    "IKET_I32(2.9)": 2,
    "IKET_U32(-2)": 2**32 - 2,
    "IKET_I64(-3)": 2**64 - 3,
    "IKET_I64(1u << 31)": 2**31,
    "IKET_U64(-1)": 2**64 - 1,
    "IKET_F32(1)": f32(1.0),
    "IKET_F32(-3.25)": f32(-3.25),
    "IKET_F64(6.5f)": f64(6.5),
    "IKET_PTR(nullptr)": 0,
    "IKET_F16((unsigned short)0x3800)": 0x3800,
    "IKET_F16((short)-2)": 0xFFFE,
    "IKET_BF16((unsigned short)0xBF80)": 0xBF80,
    "-7": 2**32 - 7,
    "2.5f": f32(2.5),
    "1e3": f32(1000.0),
}
#: Conversions that the machine makes at run time: payload, and the instruction before the store.
CONVERTED = {
    "IKET_F16(value)": "cvt.rn.f16.f32",
    "IKET_F16(wide)": "cvt.rn.f16.f32",
    "IKET_F16(number)": "cvt.rn.f16.f32",
    "IKET_BF16(value)": "cvt.rn.bf16.f32",
    "IKET_F16(small)": None,
    "IKET_BF16(small)": None,
}


@functools.cache
def records(method: str) -> list[tuple[int, str]]:
    """Return (id, PTX up to its trigger) of every event, in the order of the two tables."""
    marks = [f'    IKET_MARK("{index}", {payload});' for index, payload in enumerate((*CASES, *CONVERTED))]
    text = "#include <iket_rewrite/iket.cuh>\n"
    text += 'extern "C" __global__ void kernel(float value, double wide, int number, short small)\n{\n'
    code = ptx(iket_rewrite.rewrite(text + "\n".join(marks) + "\n}\n", method=method).text).split(".entry")[1]
    pieces = re.split(r"pmevent\.mask (\d+);", code)
    return [(int(number), piece) for piece, number in zip(pieces[::2], pieces[1::2], strict=False)]


def stored(index: int, method: str) -> tuple[str, str]:
    """Return the PTX of one record and the register that its payload is stored from."""
    _, piece = records(method)[index]
    return piece, re.findall(r"st\.volatile\.shared\.b(?:32|64) \[address\+\d+\], (%\w+);", piece)[-1]


@pytest.mark.parametrize("method", ["native", "extended"])
@pytest.mark.parametrize("payload", CASES)
def test_a_constant_becomes_these_bits(payload, method):
    _, register = stored(list(CASES).index(payload), method)
    before = "".join(piece for _, piece in records(method)[: list(CASES).index(payload) + 1])
    value = re.findall(rf"mov\.\w+\s+{re.escape(register)}, (\S+);", before)[-1]
    bits = 64 if register.startswith(("%rd", "%fd")) else 32
    word = int(value[2:], 16) if value.startswith(("0f", "0d")) else int(value, 0) % 2**bits
    assert word == CASES[payload]


@pytest.mark.parametrize("payload", CONVERTED)
def test_a_half_is_converted_or_taken_as_it_is(payload):
    piece, _ = stored(len(CASES) + list(CONVERTED).index(payload), "native")
    assert re.findall(r"cvt\.rn\.b?f16\.f32", piece) == ([CONVERTED[payload]] if CONVERTED[payload] else [])
