# SPDX-License-Identifier: Apache-2.0
"""Write files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence

from ..errors import OptionError


def write_atomically(path: str, data: bytes) -> None:
    """Replace the file by `data` in one step: readers see the old content or the new, never a part.

    Raises:
        OptionError: it can not be written.
    """
    write_all([(path, data)])


def write_all(files: Sequence[tuple[str, bytes]]) -> None:
    """Write several files, `-` being standard output; all are laid ready before the first is put in its place.

    Raises:
        OptionError: one can not be written; then the others stay as they are.
    """
    staged: list[_Staged] = []
    try:
        staged.extend(_Staged(path, data) for path, data in files)
        for item in staged:
            item.commit()
    finally:
        for item in staged:
            item.discard()


class _Staged:
    """The new content of one file, ready beside it."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path, self.data = path, data
        self.temporary: str | None = None
        with _told(path):
            if path != "-" and not _is_special(path):
                self._stage()

    def _stage(self) -> None:
        # A link stays a link: what it names is replaced.
        path = os.path.realpath(self.path)
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
        handle, self.temporary = tempfile.mkstemp(prefix=".iket-", dir=os.path.dirname(path))
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(self.temporary, mode)
        except OSError:
            self.discard()
            raise

    def commit(self) -> None:
        with _told(self.path):
            if self.path == "-":
                _to_standard_output(self.data)
            elif self.temporary is None:
                with open(self.path, "wb") as file:
                    file.write(self.data)
            else:
                os.replace(self.temporary, os.path.realpath(self.path))
                self.temporary = None

    def discard(self) -> None:
        if self.temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.temporary)
            self.temporary = None


def _is_special(path: str) -> bool:
    """Say whether the path is a device or a pipe: it is written into, never replaced."""
    if os.path.isdir(path):
        raise OptionError(f"{path}: is a folder", remedy="name a file")
    return os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode)


def _to_standard_output(data: bytes) -> None:
    if sys.stdout is None:
        raise OptionError("standard output is closed")
    sys.stdout.flush()
    # Unbuffered (PYTHONUNBUFFERED) it may take a part only.
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) or 0 :]
    sys.stdout.buffer.flush()


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn an error of the system into one of ours."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if path == "-" else path
        raise OptionError(f"{name}: can not be written: {error.strerror or error}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
