# SPDX-License-Identifier: Apache-2.0
"""Publish a folder in one step: readers see what was there before, or all of the new, never a part."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import failures


def check_target(target: Path, *, clobber: bool) -> None:
    """Refuse a folder that must not be replaced, before anything is run.

    Raises:
        CaptureError: it is there and `clobber` is not given, or replacing it would take more than a capture away.
    """
    if not os.path.lexists(target):
        return
    if not clobber:
        raise failures.output_exists(str(target))
    if target.is_symlink() or not target.is_dir():
        raise failures.output_exists(str(target), "is no folder of its own, and is not replaced")
    here = Path.cwd().resolve()
    if target.resolve() in (here, *here.parents):
        raise failures.output_exists(str(target), "holds the working folder, and is not replaced")


@contextlib.contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Yield a fresh folder on the target's file system; it is gone afterwards, whatever happens."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(made: Path, target: Path, *, clobber: bool) -> None:
    """Put a folder in its place.

    Raises:
        CaptureError: something is there by now, and `clobber` is not given.
    """
    os.chmod(made, 0o777 & ~_umask())
    check_target(target, clobber=clobber)
    if not os.path.lexists(target):
        os.rename(made, target)
        return
    # The old folder waits inside the staging area, which is cleared when the new one is in place.
    aside = made.with_name(f"{made.name}.before")
    os.rename(target, aside)
    try:
        os.rename(made, target)
    except BaseException:
        os.rename(aside, target)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
