# SPDX-License-Identifier: Apache-2.0
"""Parts of messages: what the runtime said, lists of names, indices and signals."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence


def said(messages: Sequence[str]) -> str:
    """Return the runtime's words, each once."""
    return "; ".join(dict.fromkeys(messages)) or "it gave no reason"


def some(names: Sequence[str], most: int = 8) -> str:
    """Return the first names, each once, and how many more there are."""
    shown = list(dict.fromkeys(names))
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def command_line(words: Sequence[str], most: int = 300) -> str:
    """Return a command as a shell takes it, cut where it is a whole script."""
    text = shlex.join(words)
    return text if len(text) <= most else f"{text[:most]}..."


def triple(values: Sequence[int]) -> str:
    """Return indices as the command line takes them."""
    return ",".join(map(str, values))


def signal_name(number: int) -> str:
    """Return a signal's number and name."""
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:
        return str(number)
