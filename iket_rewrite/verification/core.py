# SPDX-License-Identifier: Apache-2.0
"""The public verifier: a file in, a report out.  It composes the stages and judges nothing itself."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from fnmatch import fnmatchcase

from ..errors import IketError, OptionError
from .check import judge_image
from .containers import Container, Image, opened
from .cubin import read_cubin
from .disassembly import show
from .report import Report, make_finding
from .toolchain import RunningTool, version_of


def verify(
    path_or_bytes: str | os.PathLike[str] | bytes,
    *,
    strict: bool = False,
    kernel: str | None = None,
    official: bool = False,
) -> Report:
    """Judge whether NVIDIA's IKET runtime will be able to patch and capture a binary.  No GPU is needed.

    Args:
        path_or_bytes: a cubin, a fatbin, an object file, a shared library or an executable.
        strict: ask for exactly the form that iket-rewrite emits, and for ranges that pair up on every path.
        kernel: judge only functions whose mangled name matches this pattern (`*`, `?`).
        official: compare with NVIDIA's own parser; needs the wheel `nvidia-cutlass-dsl-libs-base`.

    Returns:
        The report; `report.ok` says whether there is neither an error nor a warning.

    Raises:
        CubinError: the file holds nothing that can be judged, or is damaged.
        ToolError: nvdisasm or cuobjdump is missing, failed, or did not end in time.
        OptionError: the file can not be read.
    """
    if isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        data = bytes(path_or_bytes)
        with tempfile.TemporaryDirectory(prefix="iket-verify-") as folder:
            path = os.path.join(folder, "image")
            with open(path, "wb") as file:
                file.write(data)
            return _verify("<bytes>", path, data, strict, kernel, official, None)
    path = os.fspath(path_or_bytes)
    return _verify(path, path, read(path), strict, kernel, official, None)


def read(path: str) -> bytes:
    """Read a file.

    Raises:
        OptionError: it can not be read, or is a device or a pipe.
    """
    try:
        # A device may have no end, and the tools read a file once more.
        if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
            raise OptionError(f"{path}: is no regular file", remedy="write it to a file first")
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise OptionError(f"{path}: can not be read: {error.strerror or error}") from None


def verify_started(
    path: str, data: bytes, started: RunningTool | None, *, strict: bool, kernel: str | None, official: bool
) -> Report:
    """Do what `verify` does for a file that was read, and on which nvdisasm may run already."""
    return _verify(path, path, data, strict, kernel, official, started)


def _verify(
    name: str, path: str, data: bytes, strict: bool, kernel: str | None, official: bool, started: RunningTool | None
) -> Report:
    report = Report(name)
    try:
        with opened(path, data) as container:
            for image in container.images:
                _judge(report, image, strict, kernel, official, started)
            _note_ptx(report, container, strict)
    except IketError as error:
        # Every message says which file it is about.
        if not error.message.startswith(name):
            error.args = (f"{name}: {error.message}",)
            error.message = f"{name}: {error.message}"
        raise
    finally:
        if started is not None:
            started.stop()
    return report


def _judge(
    report: Report, image: Image, strict: bool, kernel: str | None, official: bool, started: RunningTool | None
) -> None:
    cubin = read_cubin(image.data)
    report.images += 1
    if cubin.ptxas:
        report.tools.setdefault("ptxas", cubin.ptxas)
    matches: Callable[[str], bool] = (lambda name: fnmatchcase(name, kernel)) if kernel else (lambda name: True)
    chosen = tuple(function for function in cubin.functions if matches(function.name))
    cubin.partial, cubin.functions = len(chosen) < len(cubin.functions), chosen
    functions = [function for function in cubin.functions if function.triggers]
    if functions:
        report.tools.setdefault("nvdisasm", version_of("nvdisasm"))
    failures: dict[str, str] = {}
    shown = show(image.path, cubin, functions, started, failures) if functions else ()
    result = judge_image(cubin, shown, failures, file=report.file, image=image.name, strict=strict)
    report.findings += result.findings
    report.kernels += result.kernels
    report.events += result.events
    report.sites += result.sites
    if official:
        from .official import compare

        differences = compare(image, cubin, result, file=report.file, strict=strict)
        report.findings += differences
        report.tools["NVIDIA's parser"] = "differs" if differences else report.tools.get("NVIDIA's parser", "agrees")


def _note_ptx(report: Report, container: Container, strict: bool) -> None:
    if container.ptx:
        message = f"embedded PTX is not judged: {', '.join(container.ptx)}"
        report.findings.append(make_finding("ptx-not-judged", message, strict=strict, file=report.file))
