# SPDX-License-Identifier: Apache-2.0
"""How iket-trace prints: times, and the bar for steps that take long."""

from __future__ import annotations

import io
import sys

import pytest

from iket_rewrite.cli import tables


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (32, "32 ns"),
        (33.375, "33.4 ns"),
        (9_999, "9,999 ns"),
        (10_000, "10.0 µs"),
        (392_128, "392.1 µs"),
        (12_345_678, "12.3 ms"),
        (61_234_567_890, "61.23 s"),
        (-640, "-640 ns"),
    ],
)
def test_times(ns, text):
    assert tables.duration(ns) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "long", "shown"), [(Terminal, -1, True), (io.StringIO, -1, False), (Terminal, 99, False)]
)
def test_a_bar_is_shown_on_terminals_where_a_step_takes_long(monkeypatch, stream, long, shown):
    monkeypatch.setattr(tables, "_LONG_S", long)
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setenv("TERM", "xterm")
    with tables.progress("reading") as advance:
        for step in range(5):
            advance(step / 4)
    assert ("reading" in sys.stderr.getvalue()) == shown
