# SPDX-License-Identifier: Apache-2.0
"""Damage real files in the ways in which files are damaged, and in those that find faults in readers."""

from __future__ import annotations

import random

#: Words that sizes, offsets and counts break at.
_WORDS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 64) - 1)
_TEXTS = (b"null", b"-1", b"1e999", b'""', b"[]", b"{}", b"18446744073709551616", b"true", b'"\\ud800"', b"\xff", b"\0")


def mutated(data: bytes, source: random.Random, *, text: bool) -> bytes:
    """Return the data with one to a few faults."""
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 3, 8))):
        _ONE[source.randrange(len(_ONE))](changed, source, text)
        if not changed:
            break
    return bytes(changed)


def _place(data: bytearray, source: random.Random) -> int:
    # Heads decide what the rest means.
    return source.randrange(min(len(data), source.choice((64, 1024, len(data)))) or 1)


def _flip(data: bytearray, source: random.Random, text: bool) -> None:
    at = _place(data, source)
    data[at : at + 1] = bytes([data[at] ^ 1 << source.randrange(8)]) if at < len(data) else b""


def _set(data: bytearray, source: random.Random, text: bool) -> None:
    at, size = _place(data, source), source.choice((1, 2, 4, 8))
    if text:
        _replace_value(data, source)
    else:
        data[at : at + size] = (source.choice(_WORDS) & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _replace_value(data: bytearray, source: random.Random) -> None:
    """Put another value behind a colon or a comma."""
    at = max(data.find(b":", _place(data, source)), data.find(b",", _place(data, source)))
    if at >= 0:
        end = at + 1
        while end < len(data) and data[end] not in b",}]":
            end += 1
        data[at + 1 : end] = source.choice(_TEXTS)


def _cut(data: bytearray, source: random.Random, text: bool) -> None:
    at = _place(data, source)
    del data[at : at + source.choice((1, 4, 16, 256))]


def _truncate(data: bytearray, source: random.Random, text: bool) -> None:
    del data[source.randrange(len(data) + 1) :]


def _repeat(data: bytearray, source: random.Random, text: bool) -> None:
    at = _place(data, source)
    piece = data[at : at + source.choice((1, 8, 64, 1024))]
    data[at:at] = piece * source.choice((1, 2, 10))


def _swap(data: bytearray, source: random.Random, text: bool) -> None:
    left, right, size = _place(data, source), _place(data, source), source.choice((1, 4, 8, 24, 64))
    first, second = bytes(data[left : left + size]), bytes(data[right : right + size])
    data[left : left + size], data[right : right + size] = second, first


def _digit(data: bytearray, source: random.Random, text: bool) -> None:
    """Change a number, so that text stays what it is otherwise."""
    at = _place(data, source)
    while at < len(data) and data[at] not in b"0123456789":
        at += 1
    if at < len(data):
        data[at : at + 1] = source.choice((b"0", b"1", b"9", b"-1", b"99999", b"0.5"))


_ONE = (_digit, _digit, _flip, _set, _set, _set, _cut, _truncate, _repeat, _swap)
