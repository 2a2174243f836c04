# SPDX-License-Identifier: Apache-2.0
"""Trace files: which there are, whose process they are, and their bytes."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Sequence

from ..errors import TraceError

#: One file or folder, or several.
Paths = str | os.PathLike[str] | Sequence["str | os.PathLike[str]"]
#: What a folder is searched for: what the runtime's own converter writes, and compressed copies.
_ENDINGS = (".trace.json", ".trace.json.gz")
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


def find_files(paths: Paths) -> list[str]:
    """Return the trace files that are named, and those in the folders that are named.

    Raises:
        TraceError: there is none.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    files: list[str] = []
    for given in paths:
        path = os.fspath(given)
        files += _in_folder(path) if os.path.isdir(path) else [path]
    if not files:
        raise TraceError("no trace is named", remedy="name a .trace.json file or the folder that run-iket wrote")
    real = [os.path.realpath(path) for path in files]
    for path, where in zip(files, real, strict=True):
        if real.count(where) > 1:
            raise TraceError(f"{path}: is named twice", remedy="name every process's file once")
    return files


def read_file(path: str) -> bytes | bytearray:
    """Return a file's content, unpacked where it is compressed.

    Raises:
        TraceError: it can not be read, or the compressed data is damaged or cut short.
    """
    try:
        with open(path, "rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            data = _unpack(file) if packed else file.read()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(
            f"{path}: the compressed file is damaged or cut short: {error}", remedy="copy or compress it again"
        ) from None
    except OSError as error:
        raise TraceError(f"{path}: can not be read: {error.strerror or error}") from None
    if not data.strip():
        raise TraceError(f"{path}: is empty", remedy="the capture did not end; look at what run-iket printed")
    return data


def pid_of(path: str) -> str:
    """Return the process id that is part of the file's name, or ""."""
    found = re.search(r"pid[_-]?(0x[0-9a-fA-F]+|\d+)", os.path.basename(path))
    return found.group(1) if found else ""


def labels_of(paths: Sequence[str]) -> list[str]:
    """Return a name for each file: its pid, else its stem; made unique by a number."""
    labels: list[str] = []
    for path in paths:
        pid = pid_of(path)
        stem = os.path.basename(path)
        for ending in (".gz", ".json", ".trace"):
            stem = stem.removesuffix(ending)
        label = wanted = f"pid {pid}" if pid else stem
        number = 2
        while label in labels:
            label, number = f"{wanted} #{number}", number + 1
        labels.append(label)
    return labels


def _in_folder(path: str) -> list[str]:
    found = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        # A compressed copy beside its original is the same process.
        if name.endswith(_ENDINGS) and not (name.endswith(".gz") and name.removesuffix(".gz") in names)
    )
    if not found:
        raise TraceError(
            f"{path}: no trace is in this folder", remedy="capture with --postprocess json or all, or name a file"
        )
    return found


def _unpack(file: object) -> bytearray:
    data = bytearray()
    with gzip.GzipFile(fileobj=file) as packed:  # type: ignore[call-overload]
        while chunk := packed.read(_CHUNK):
            data += chunk
    return data
