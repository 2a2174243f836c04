# SPDX-License-Identifier: Apache-2.0
"""Find the line of the author's program that is being run, and warn at it."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from ..rewriting.annotation import SourcePosition
from . import active
from .faults import IketWarning

_HERE = (__name__.rpartition(".")[0],)
#: Packages whose lines tell the author nothing.
_INNER = (__name__.partition(".")[0], "tilelang", "tvm", "tvm_ffi", "concurrent", "threading", "contextlib")
#: What was warned of; how often a warning is repeated is up to the author's filters.
_told: dict[Any, Any] = {}


def caller() -> SourcePosition | None:
    """Return the line that called this package."""
    return _outside(_HERE)


def author() -> SourcePosition | None:
    """Return the line that called TileLang or this package; None in a thread where no other line runs."""
    return _outside(_INNER)


def tell(message: str, place: SourcePosition | None = None) -> None:
    """Warn at a place; without one, at the author's line that is being run, or at that of the session."""
    scopes = active.scopes()
    place = place or author() or (scopes[-1].place if scopes else None) or SourcePosition("<TileLang>", 1)
    warnings.warn_explicit(message, IketWarning, place.file, place.line, registry=_told)


def _outside(packages: tuple[str, ...]) -> SourcePosition | None:
    frame = sys._getframe(1)
    while any(f"{frame.f_globals.get('__name__', '')}.".startswith(f"{package}.") for package in packages):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    file = frame.f_code.co_filename
    return SourcePosition(file if file.startswith("<") else os.path.abspath(file), frame.f_lineno)
