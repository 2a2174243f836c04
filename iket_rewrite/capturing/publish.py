# SPDX-License-Identifier: Apache-2.0
"""Publish a folder in one step: readers see what was there before, or all of the new, never a part."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import OptionError
from . import failures


def check_target(target: Path, *, clobber: bool) -> None:
    """Refuse a folder that must not be replaced, before anything is run.

    Raises:
        CaptureError: it is there and `clobber` is not given, or replacing it would take more than a capture away.
    """
    if not os.path.lexists(target):
        return
    if target.is_symlink() or not target.is_dir():
        raise failures.output_in_the_way(str(target), "is no folder of its own")
    here = Path.cwd().resolve()
    if target.resolve() in (here, *here.parents):
        raise failures.output_in_the_way(str(target), "holds the working folder")
    if not clobber:
        raise failures.output_exists(str(target))


@contextlib.contextmanager
def writing(target: Path) -> Iterator[None]:
    """Tell what can not be written, and why, as an error of ours.

    Raises:
        OptionError: it can not be written.
    """
    try:
        yield
    except OSError as error:
        raise OptionError(
            f"{target}: can not be written: {error.strerror or error}",
            remedy="name a place where files can be made, with room for them",
        ) from None


def check_file(target: Path) -> None:
    """Refuse a file that can not be written, before anything is run; nothing is made.

    Raises:
        OptionError: it can not be written.
    """
    folder = next(one for one in target.parents if os.path.lexists(one))
    with writing(target):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        # It asks the system alone: who may do what is more than the bits of a mode.
        tempfile.TemporaryFile(dir=folder).close()


def publish_file(made: Path, target: Path) -> None:
    """Put a copy of a file in its place, in one step.

    Raises:
        OptionError: it can not be written.
    """
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".iket-", dir=target.parent)
        os.close(handle)
        try:
            shutil.copyfile(made, name)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise


@contextlib.contextmanager
def staging(target: Path) -> Iterator[Path]:
    """Yield a fresh folder on the target's file system; it is gone afterwards, whatever happens."""
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            target.lstat()  # a name that can not be, such as one that is too long
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name[:200]}.", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(made: Path, target: Path, *, clobber: bool) -> None:
    """Put a folder in its place.

    Raises:
        CaptureError: something is there by now, and `clobber` is not given.
        OptionError: it can not be written.
    """
    check_target(target, clobber=clobber)
    with writing(target):
        os.chmod(made, 0o777 & ~_umask())
        _move(made, target)


def _move(made: Path, target: Path) -> None:
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
