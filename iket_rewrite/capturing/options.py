# SPDX-License-Identifier: Apache-2.0
"""What callers ask for, checked once before anything is started."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import abi
from ..errors import OptionError

#: What each choice of postprocess publishes: endings of files.
ENDINGS = {
    "json": (".trace.json",),
    "perfetto": (".pftrace",),
    # The page reads the compressed trace beside it.
    "html": (".html", ".pftrace.gz"),
    "all": (".trace.json", ".pftrace", ".html", ".pftrace.gz"),
    "none": (),
}


def check_postprocess(value: str) -> str:
    """Return a known choice."""
    if value not in ENDINGS:
        raise OptionError(f"unknown postprocess {value!r}", remedy=f"choose one of {', '.join(ENDINGS)}")
    return value


def check_count(value: int | None, name: str, most: int = 2**32 - 1) -> int | None:
    """Return a positive number, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= most):
        raise OptionError(f"{name} must be a whole number above 0, not {value!r}")
    return value


def check_cluster(value: Sequence[int] | None, *, warp_lifetimes_only: bool) -> tuple[int, int, int] | None:
    """Return the index of a cluster, or None."""
    if value is None:
        return None
    if warp_lifetimes_only:
        raise OptionError("one cluster and warp lifetimes only do not go together", remedy="leave one of them out")
    indices = tuple(value)
    fits = len(indices) == 3 and all(isinstance(one, int) and not isinstance(one, bool) for one in indices)
    if not fits or any(not 0 <= one <= most for one, most in zip(indices, abi.CLUSTER_INDEX_HIGHEST, strict=True)):
        raise OptionError(f"a cluster is three indices (x, y, z) from 0, not {value!r}")
    return indices[0], indices[1], indices[2]


def check_timeout(value: float | None) -> float | None:
    """Return a number of seconds, or None for no limit."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise OptionError(f"timeout must be above 0, not {value!r}", remedy="give seconds; in Python None is no limit")
    return value


def check_contexts(values: Sequence[object] | None) -> tuple[int, ...]:
    """Return the addresses of CUDA contexts: numbers, or objects that can be made one or have a `handle`."""
    found = []
    for value in values or ():
        try:
            found.append(int(getattr(value, "handle", value)))  # type: ignore[call-overload]
        except (TypeError, ValueError):
            raise OptionError(f"{value!r} is no CUDA context", remedy="give the address of a CUcontext") from None
    return tuple(found)


def check_command(command: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return a command's words."""
    if isinstance(command, (str, bytes, os.PathLike)):
        raise OptionError(
            "the command is a list of words, not a text for a shell", remedy="for example ['python', 'app.py']"
        )
    words = [os.fspath(word) for word in command]
    if not words or any(not isinstance(word, str) or "\0" in word for word in words):
        raise OptionError("the command is empty, or a word of it is no text")
    return words


def merged(environment: Mapping[str, str | os.PathLike[str]] | None) -> dict[str, str]:
    """Return this process's environment with a caller's changes."""
    return dict(os.environ) | {key: os.fspath(value) for key, value in (environment or {}).items()}


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path that no change of folder moves; links stay."""
    return Path(os.path.abspath(os.path.expanduser(os.fspath(path))))
