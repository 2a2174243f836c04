# SPDX-License-Identifier: Apache-2.0
"""Write a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile

from ..errors import OptionError


def write_atomically(path: str, data: bytes) -> None:
    """Replace the file by `data` in one step: readers see the old content or the new, never a part.

    Raises:
        OptionError: it can not be written.
    """
    folder = os.path.dirname(os.path.abspath(path))
    temporary = None
    try:
        # A link stays a link: what it names is replaced.
        path = os.path.realpath(path)
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(prefix=".iket-", dir=os.path.dirname(path) or folder)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise OptionError(f"{path}: can not be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
