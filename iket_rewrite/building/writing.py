# SPDX-License-Identifier: Apache-2.0
"""Write an overlay as a folder: the old one stays as it is, or the new one is there whole."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence

from ..errors import OptionError
from .command_line import quoted
from .laying import lay_out
from .layout import Copy, is_below

#: The compiler's options for the overlay; the file also tells an overlay from any other folder.
OPTIONS = "iket-nvcc-options.txt"
#: Numbers of Linux: paths are relative to the working folder; exchange two paths.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def write_overlay(
    copies: Sequence[Copy], output: str, options: Sequence[str], files: Sequence[tuple[str, bytes]] = ()
) -> None:
    """Write the copies into the folder, in place of an overlay that is there, and further files beside it.

    Args:
        copies: the files.
        output: the folder.
        options: what the compiler needs to find them.
        files: (path, content) of what belongs to the overlay but lies elsewhere.

    Raises:
        OptionError: the folder holds sources or anything else that is no overlay, or can not be written.
    """
    output = os.path.normpath(output)
    _check(copies, output)
    with contextlib.ExitStack() as cleaning:
        new = _staged(copies, output, options, cleaning)
        staged = [(_beside(path, data, cleaning), path) for path, data in files]
        with _told(output):
            _exchange(new, output, cleaning)
        for temporary, path in staged:
            with _told(path):
                os.replace(temporary, path)


def write_file(path: str, data: bytes) -> None:
    """Write one file, whole or not at all.

    Raises:
        OptionError: it can not be written.
    """
    with contextlib.ExitStack() as cleaning:
        temporary = _beside(path, data, cleaning)
        with _told(path):
            os.replace(temporary, path)


def differences(copies: Sequence[Copy], output: str, options: Sequence[str]) -> list[str]:
    """Return the paths inside the folder at which something else lies than the overlay would have."""
    wanted = {os.path.join(output, copy.path): copy.data for copy in copies if not copy.link}
    wanted[os.path.join(output, OPTIONS)] = _options_bytes(options)
    links = {os.path.join(output, copy.path): copy.link for copy in copies if copy.link}
    found = {os.path.join(folder, name) for folder, _, names in os.walk(output) for name in names}
    changed = found ^ (wanted.keys() | links.keys())
    changed |= {path for path in wanted.keys() & found if os.path.islink(path) or _content(path) != wanted[path]}
    changed |= {path for path in links.keys() & found if not os.path.islink(path) or os.readlink(path) != links[path]}
    return sorted(changed)


def _options_bytes(options: Sequence[str]) -> bytes:
    return os.fsencode("".join(f"{quoted(option)}\n" for option in options))


def _check(copies: Sequence[Copy], output: str) -> None:
    real = os.path.realpath(output)
    for copy in copies:
        original = os.path.realpath(copy.original) if copy.original else ""
        if original and (is_below(original, real) or os.path.dirname(original) == real):
            raise OptionError(
                f"{output}: the folder for the overlay holds the source {copy.original}",
                remedy="name a folder of its own with -o; originals are never touched",
            )
    if not os.path.lexists(output):
        return
    if not os.path.isdir(output):
        raise OptionError(f"{output}: is no folder", remedy="name the overlay's folder with -o")
    with _told(output):
        if os.listdir(output) and not os.path.isfile(os.path.join(output, OPTIONS)):
            raise OptionError(
                f"{output}: the folder is there already and is no overlay", remedy="name another folder with -o"
            )


def _staged(copies: Sequence[Copy], output: str, options: Sequence[str], cleaning: contextlib.ExitStack) -> str:
    """Write everything into a folder beside the output; return its path."""
    real = os.path.realpath(output)
    with _told(output):
        os.makedirs(os.path.dirname(real), exist_ok=True)
        new = tempfile.mkdtemp(prefix=".iket-", dir=os.path.dirname(real))
        cleaning.callback(shutil.rmtree, new, ignore_errors=True)
        lay_out(copies, new)
        with open(os.path.join(new, OPTIONS), "wb") as file:
            file.write(_options_bytes(options))
        os.chmod(new, 0o777 & ~_umask())
        _keep_times(new, output)
    return new


def _keep_times(new: str, old: str) -> None:
    """Give files that stay the same their old time, so that what is built of them is not built anew."""
    for folder, _, names in os.walk(new):
        for name in names:
            path = os.path.join(folder, name)
            before = os.path.join(old, os.path.relpath(path, new))
            # Another process may put its overlay there at the same time.
            with contextlib.suppress(FileNotFoundError):
                if not os.path.islink(path) and os.path.isfile(before) and _content(path) == _content(before):
                    status = os.stat(before)
                    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _exchange(new: str, output: str, cleaning: contextlib.ExitStack) -> None:
    """Put a folder in the place of another; the old one is then where the new one was, or is gone."""
    real = os.path.realpath(output)
    if not os.path.isdir(real):
        try:
            os.rename(new, real)
            return
        except OSError:
            # Another process may have put its overlay there in the meantime.
            if not os.path.isdir(real):
                raise
    if _swapped(new, real):
        return
    aside = tempfile.mkdtemp(prefix=".iket-", dir=os.path.dirname(real))
    cleaning.callback(shutil.rmtree, aside, ignore_errors=True)
    old = os.path.join(aside, "old")
    os.rename(real, old)
    try:
        os.rename(new, real)
    except OSError:
        os.rename(old, real)
        raise


def _swapped(left: str, right: str) -> bool:
    """Exchange two folders in one step; say whether the system could (Linux, on most file systems)."""
    import ctypes

    try:
        call = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    return bool(call(_AT_FDCWD, os.fsencode(left), _AT_FDCWD, os.fsencode(right), _RENAME_EXCHANGE) == 0)


def _beside(path: str, data: bytes, cleaning: contextlib.ExitStack) -> str:
    """Write a file's new content beside it; return the path."""
    with _told(path):
        handle, temporary = tempfile.mkstemp(prefix=".iket-", dir=os.path.dirname(os.path.abspath(path)))
        cleaning.callback(_remove, temporary)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
    return temporary


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


@contextlib.contextmanager
def _told(path: str) -> Iterator[None]:
    """Turn an error of the system into one of ours."""
    try:
        yield
    except OSError as error:
        raise OptionError(f"{path}: can not be written: {error.strerror or error}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
