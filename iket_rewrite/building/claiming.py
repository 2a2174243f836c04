# SPDX-License-Identifier: Apache-2.0
"""A folder for one compilation: always of the same name, and never two compilations' at once.

What a process that was killed has left behind is taken over; what another one still uses is not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from .laying import clear

#: Locked while its folder is in use; the system unlocks it when the process ends, however it ends.
_LOCK = ".iket-lock"
#: So many compilations may want one name at once: `nvcc -M a/k.cu` and `nvcc -M b/k.cu`, say.
_NAMES = 16


@contextlib.contextmanager
def claimed(wanted: str) -> Iterator[str]:
    """Yield an empty folder of the wanted name, or of one beside it where that is in use; remove it in the end.

    Where no folder can be made there, it lies in the system's folder for temporary files.
    """
    for path in (wanted, *(f"{wanted}-{number}" for number in range(2, _NAMES))):
        try:
            lock = _locked(path)
        except OSError:
            break
        if lock is not None:
            try:
                clear(path, but=_LOCK)
                yield path
            finally:
                clear(path, but=_LOCK)
                _release(path, lock)
            return
    from tempfile import mkdtemp

    path = mkdtemp(prefix="iket-")
    try:
        yield path
    finally:
        clear(path)


def _locked(path: str) -> int | None:
    """Make a folder and lock it; return the open lock, or None where another process has it.

    Raises:
        OSError: there can be no such folder, or no lock.
    """
    name = os.path.join(path, _LOCK)
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
        if os.path.islink(path):
            raise NotADirectoryError(path)  # what it leads to is not ours to clear
        try:
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            if os.path.isdir(path) or not os.path.lexists(path):
                continue  # its last user has removed it just now
            raise
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.stat(name)):
                return lock
        except BlockingIOError:
            os.close(lock)
            return None
        except FileNotFoundError:
            pass
        except OSError:
            os.close(lock)
            raise
        os.close(lock)


def _release(path: str, lock: int) -> None:
    # The lock goes last: from then on the folder may be somebody else's.
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(path, _LOCK))
        os.rmdir(path)
    os.close(lock)
