# SPDX-License-Identifier: Apache-2.0
"""What callers ask for, checked once before anything is started."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
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
        above = isinstance(value, int) and value > most
        raise OptionError(f"{name} must be {f'at most {most:,}' if above else 'a whole number above 0'}, not {value!r}")
    return value


def check_cluster(value: Sequence[int] | None, *, warp_lifetimes_only: bool) -> tuple[int, int, int] | None:
    """Return the index of a cluster, or None."""
    if value is None:
        return None
    if warp_lifetimes_only:
        raise OptionError("one cluster and warp lifetimes only do not go together", remedy="leave one of them out")
    indices = tuple(value) if isinstance(value, Iterable) else ()
    fits = len(indices) == 3 and all(isinstance(one, int) and not isinstance(one, bool) for one in indices)
    if not fits or any(not 0 <= one <= most for one, most in zip(indices, abi.CLUSTER_INDEX_HIGHEST, strict=True)):
        highest = ", ".join(f"{one:,}" for one in abi.CLUSTER_INDEX_HIGHEST)
        raise OptionError(
            f"a cluster is three indices (x, y, z) from 0, not {value!r}", remedy=f"the highest are {highest}"
        )
    return indices[0], indices[1], indices[2]


def check_timeout(value: float | None) -> float | None:
    """Return a number of seconds, or None for no limit."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if value is not None and not (number and math.isfinite(value) and value > 0):
        raise OptionError(f"timeout must be above 0, not {value!r}", remedy="give seconds; in Python None is no limit")
    return value


def check_contexts(values: Sequence[object] | None) -> tuple[int, ...]:
    """Return the addresses of CUDA contexts: numbers, or objects that can be made one or have a `handle`."""
    if values is None:
        return ()
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes)):
        raise OptionError(f"contexts is a list, not {values!r}", remedy="contexts=[context]; None is all of them")
    found = [_context(value) for value in values]
    if not found:
        raise OptionError("contexts names none", remedy="contexts=[context]; None is all of them")
    return tuple(found)


def _context(value: object) -> int:
    handle = getattr(value, "handle", value)
    try:
        address = 0 if isinstance(handle, (str, bytes, float)) else int(handle)  # type: ignore[call-overload]  # what it is not for is caught
    except (TypeError, ValueError):
        address = 0
    if not 0 < address < 2**64:
        raise OptionError(f"{value!r} is no CUDA context", remedy="give the address of a CUcontext")
    return address


def check_command(command: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return a command's words."""
    if isinstance(command, (str, bytes, os.PathLike)) or not isinstance(command, Iterable):
        what = "a text for a shell" if isinstance(command, (str, bytes, os.PathLike)) else repr(command)
        raise OptionError(f"the command is a list of words, not {what}", remedy="for example ['python', 'app.py']")
    words = [check_text(word, "a word of the command") for word in command]
    if not words or not words[0]:
        raise OptionError("the command is empty", remedy="for example ['python', 'app.py']")
    return words


def check_text(value: object, what: str) -> str:
    """Return a text, or the text of a path, that can be handed to a program."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or "\0" in text:
        raise OptionError(f"{what} is {value!r}, not a text or a path" + (" without NUL" if "\0" in str(text) else ""))
    return text


def merged(environment: Mapping[str, str | os.PathLike[str]] | None) -> dict[str, str]:
    """Return this process's environment with a caller's changes."""
    changes = {} if environment is None else environment
    if not isinstance(changes, Mapping):
        raise OptionError(
            f"env is a mapping of names to values, not {changes!r}", remedy="for example {'NAME': 'value'}"
        )
    found = {}
    for key, value in changes.items():
        name = check_text(key, "a name in env")
        if not name or "=" in name:
            raise OptionError(f"{name!r} can not be the name of a variable", remedy="names hold no =")
        found[name] = check_text(value, f"{name} in env")
    return dict(os.environ) | found


def absolute(path: str | os.PathLike[str], what: str = "output_dir") -> Path:
    """Return a path that no change of folder moves; links stay."""
    text = check_text(path, what)
    if not text:
        raise OptionError(f"{what} is empty", remedy="name a folder; . is the working folder")
    return Path(os.path.abspath(os.path.expanduser(text)))
