# SPDX-License-Identifier: Apache-2.0
"""A value of the process that several sessions change, in whatever order they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Handover(Generic[Value]):
    """Restores a value when the sessions that change it have ended.  Its users hold the package's lock.

    A session that ends before one that started later hands the value that it found to that one, so that the last to
    end restores what the first has found.

    Args:
        read, write: how the value is read and set.
    """

    def __init__(self, read: Callable[[], Value], write: Callable[[Value], object]) -> None:
        self._read, self._write = read, write
        self._found: list[tuple[object, Value]] = []

    def start(self, owner: object) -> None:
        """Keep the value as the owner finds it."""
        self._found.append((owner, self._read()))

    def end(self, owner: object) -> None:
        """Restore what the owner found, or hand it over."""
        index = next(index for index, (one, _) in enumerate(self._found) if one is owner)
        value = self._found.pop(index)[1]
        if index == len(self._found):
            self._write(value)
        else:
            self._found[index] = (self._found[index][0], value)
