# SPDX-License-Identifier: Apache-2.0
"""Stand in for a method of one of TileLang's classes for a while: for what TileLang calls no callback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Patch:
    """One method that is replaced from `start` to `stop`.  Its users hold the package's lock.

    Args:
        owner: the class.
        name: the method; the class defines it itself.
        instead: what is called in its place: with the method, the object and the arguments.
    """

    def __init__(self, owner: Any, name: str, instead: Callable[..., Any]) -> None:
        self._owner, self._name, self._instead = owner, name, instead
        self._original: Any = None
        self._ours: Any = None

    def start(self) -> None:
        """Replace the method."""
        original, instead = getattr(self._owner, self._name), self._instead

        @functools.wraps(original)
        def method(this: Any, *arguments: Any, **options: Any) -> Any:
            return instead(original, this, *arguments, **options)

        self._original, self._ours = original, method
        setattr(self._owner, self._name, method)

    def stop(self) -> None:
        """Put the method back; where somebody has replaced it since, theirs stays and goes on calling ours."""
        if getattr(self._owner, self._name) is self._ours:
            setattr(self._owner, self._name, self._original)
