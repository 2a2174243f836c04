# SPDX-License-Identifier: Apache-2.0
"""From a file to the cubins in it: the file itself, or what cuobjdump takes out of a fatbin or a host binary."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..errors import CubinError
from .cubin import is_cubin
from .toolchain import run_tool

_FATBIN_MAGIC = b"\x50\xed\x55\xba"
_HOST_MAGICS = (b"\x7fELF", b"!<arch>\n")
_HOST_SECTIONS = (b".nv_fatbin", b".nvFatBinSegment", b"__nv_relfatbin")
_ARCH = re.compile(r"\.(sm_\d+[af]?)\.")
_PTX = re.compile(rb"^\s*\.version\s+\d", re.MULTILINE)
_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Image:
    """One cubin of a file.

    Attributes:
        name: what tells it from its siblings, or "" where the file is a cubin.
        path: a file that holds exactly it.
        data: its bytes.
    """

    name: str
    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Container:
    """What a file holds: its cubins, and the names of the PTX texts beside them."""

    images: tuple[Image, ...]
    ptx: tuple[str, ...] = ()


def looks_judgeable(data: bytes) -> bool:
    """Say whether a file can hold cubins, by its first bytes; for picking files out of a folder."""
    return is_cubin(data) or data[:4] == _FATBIN_MAGIC or _is_host_binary(data)


def _is_host_binary(data: bytes) -> bool:
    return data.startswith(_HOST_MAGICS) and any(section in data for section in _HOST_SECTIONS)


@contextmanager
def opened(path: str, data: bytes) -> Iterator[Container]:
    """Open a file; what is taken out of it lives as long as the context.

    Raises:
        CubinError: it holds nothing that can be judged.
        ToolError: cuobjdump is missing or failed.
    """
    if is_cubin(data):
        yield Container((Image("", path, data),))
        return
    if not data:
        raise CubinError("the file is empty")
    if not (data[:4] == _FATBIN_MAGIC or _is_host_binary(data)):
        if _PTX.search(data[:_HEAD_BYTES]):
            raise CubinError("this is PTX: there is no machine code to judge; compile it first")
        raise CubinError("this is no cubin, no fatbin, and no host binary with device code in it")
    folder = tempfile.mkdtemp(prefix="iket-verify-")
    try:
        yield _extracted(path, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _in_order(name: str) -> list[int | str]:
    """Sort file 10 behind file 9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _extracted(path: str, folder: str) -> Container:
    # cuobjdump writes into the folder it runs in, and names files after the architecture.
    whole = os.path.abspath(path)
    listed = run_tool("cuobjdump", ["--list-elf", "--list-ptx", whole], folder).decode("utf-8", "replace")
    ptx = tuple(name for name in re.findall(r"PTX file\s+\d+:\s*(\S+)", listed))
    if not re.search(r"ELF file\s+\d+:", listed):
        if ptx:
            raise CubinError("the file holds PTX only: there is no machine code to judge")
        raise CubinError("no device code is in the file")
    run_tool("cuobjdump", ["--extract-elf", "all", whole], folder)
    images = []
    for number, name in enumerate(sorted(os.listdir(folder), key=_in_order), 1):
        extracted = os.path.join(folder, name)
        with open(extracted, "rb") as file:
            data = file.read()
        arch = _ARCH.search(name)
        images.append(Image(f"{arch.group(1) if arch else name} #{number}", extracted, data))
    return Container(tuple(images), ptx)
