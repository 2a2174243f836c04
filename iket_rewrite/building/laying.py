# SPDX-License-Identifier: Apache-2.0
"""Lay the files of an overlay into a folder, and remove such a folder.

Every compilation of an annotated source does both, so the standard library's larger modules stay out of it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from .layout import Copy


def lay_out(copies: Sequence[Copy], folder: str) -> None:
    """Write the copies into a folder that is nobody else's.

    Raises:
        OSError: they can not be written.
    """
    made: set[str] = set()
    for copy in copies:
        path = os.path.join(folder, copy.path)
        parent = os.path.dirname(path)
        if parent not in made:
            os.makedirs(parent, exist_ok=True)
            made.add(parent)
        if copy.link:
            os.symlink(copy.link, path)
        else:
            with open(path, "wb") as file:
                file.write(copy.data)


def clear(folder: str, but: str | None = None) -> None:
    """Remove a folder and what is in it, as far as that goes; where a name is to stay, what is beside it."""
    for inner, folders, files in os.walk(folder, topdown=False):
        for name in files:
            if name == but:
                continue
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(inner, name))
        for name in folders:
            path = os.path.join(inner, name)
            with contextlib.suppress(OSError):
                os.unlink(path) if os.path.islink(path) else os.rmdir(path)
    if but is None:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
