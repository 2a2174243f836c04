# SPDX-License-Identifier: Apache-2.0
"""Compile annotated source at run time: rewrite it, compile it with NVRTC, and judge the cubin.  No GPU is needed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import CompileError, CubinError, OptionError, ToolError
from ..rewriting import targets
from ..rewriting.core import rewrite
from ..rewriting.notice import Notice
from ..rewriting.plan import Plan
from ..verification.core import verify as judge
from ..verification.report import Report
from ..verification.rules import Severity
from .laying import lay_out
from .program import Program, Settings, program_of
from .reached import Tree
from .search import Search

_INSTALL = "pip install 'iket-rewrite[nvrtc]'"


class CompiledCubin(bytes):
    """A cubin: its bytes, and what is known of them.

    Attributes:
        plan: the events with their ids.
        warnings: what the source's author should know.
        report: the verdict of `verify`, or None where it was not asked for.
        log: what NVRTC said.
    """

    plan: Plan
    warnings: tuple[Notice, ...]
    report: Report | None
    log: str


def compile_cubin(
    source: str | bytes,
    *,
    arch: str,
    path: str | os.PathLike[str] | None = None,
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    options: Sequence[str] = (),
    verify: bool = True,
    runtime_payloads: bool | None = None,
    method: str = "auto",
    pre_hopper: str = "off",
) -> CompiledCubin:
    """Rewrite CUDA C++ source, compile it with NVRTC, and judge the result.

    Args:
        source: the text.
        arch: the architecture, for example "sm_90a".
        path: the file that the text comes from, for messages and for quoted includes.
        include_dirs: where includes are looked for; annotated headers are rewritten too.  Our own header is found.
        options: further options of NVRTC, for example "--std=c++20" (without one, C++17).  Folders of -I among them
            are looked into behind `include_dirs`.
        verify: judge the cubin, which needs nvdisasm; its errors are raised, its warnings are in `report`.
        runtime_payloads, method, pre_hopper: those of `rewrite`.

    Returns:
        The cubin's bytes, which carry the plan, the warnings and the report.

    Raises:
        AnnotationError: an annotation can not be understood.
        PlanError: annotations contradict each other.
        CompileError: NVRTC refuses the source.
        CubinError: the runtime could not patch the cubin.
        TargetError: the architecture is none.
        ToolError: NVRTC or nvdisasm is missing.
    """
    targets.cuda_arch(arch)
    name = os.fsdecode(path) if path is not None else "<source>"
    more, options = _folders_of(options)
    folders = [*(os.fspath(folder) for folder in include_dirs), *more]
    data = source.encode("utf-8", "surrogateescape") if isinstance(source, str) else source
    settings = Settings(arch, runtime_payloads, method, pre_hopper)
    program = _program(name, data, folders, settings)
    if all(copy.original in ("", name) for copy in program.copies):
        # Nothing but the source itself: its text holds everything.
        result = rewrite(
            data, target=arch, path=path, runtime_payloads=runtime_payloads, method=method, pre_hopper=pre_hopper
        )
        text, plan, warnings = result.text, result.plan, result.warnings
        cubin, log = _compile(text, name, arch, [os.path.dirname(name) or ".", *folders], options)
    else:
        plan, warnings = program.plan, program.warnings
        cubin, log = _compile_overlaid(program, name, data, arch, options)
    compiled = CompiledCubin(cubin)
    compiled.plan, compiled.warnings, compiled.log = plan, warnings, log
    compiled.report = _judged(cubin) if verify else None
    return compiled


def _folders_of(options: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split NVRTC's options into the folders that they name, and all others."""
    folders, others = [], []
    words = iter(options)
    for word in words:
        lead = next((lead for lead in ("--include-path=", "-I=", "-I") if word.startswith(lead)), None)
        if lead is not None or word == "--include-path":
            folders.append(word.removeprefix(lead or word) or next(words, ""))
        else:
            others.append(word)
    return [folder for folder in folders if folder], others


def _program(name: str, data: bytes, folders: Sequence[str], settings: Settings) -> Program:
    for folder in folders:
        if not os.path.isdir(folder):
            raise OptionError(f"{folder}: is no folder", remedy="name the folders of the headers")
    tree = Tree(Search((), folders), {name: data})
    return program_of(tree, [(tree.add(name),)], (name,), settings)[0]


def _compile_overlaid(program: Program, name: str, data: bytes, arch: str, options: Sequence[str]) -> tuple[bytes, str]:
    with tempfile.TemporaryDirectory(prefix="iket-nvrtc-") as overlay:
        lay_out(program.copies, overlay)
        text, here = data, name
        own = program.copy_of(name)
        if own is not None:
            # NVRTC looks for quoted includes beside the file that it is told to compile.
            here = os.path.join(overlay, own)
            text = next(copy.data for copy in program.copies if copy.path == own)
        # It knows no folders for quoted includes only; the originals' come last, so that copies are found first.
        pairs = program.folders.pairs
        folders = [os.path.join(overlay, inside) for inside, _ in pairs if inside is not None]
        folders += [folder for _, folder in pairs] + list(program.folders.quoted)
        originals = {os.path.join(overlay, copy.path): copy.original for copy in program.copies if copy.original}
        return _compile(text, here, arch, folders, options, originals)


def _judged(cubin: bytes) -> Report:
    report = judge(cubin)
    errors = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    if errors:
        first = errors[0]
        raise CubinError(f"the runtime can not patch this cubin: {first.message} ({first.rule})", remedy=first.remedy)
    return report


def _compile(
    text: bytes,
    name: str,
    arch: str,
    folders: Sequence[str],
    options: Sequence[str],
    originals: Mapping[str, str] | None = None,
) -> tuple[bytes, str]:
    """Compile with NVRTC; return the cubin and what NVRTC said, with originals in place of copies."""
    from .. import include_dir

    nvrtc = _nvrtc()
    words = [f"--gpu-architecture={arch}", *(f"-I{folder}" for folder in dict.fromkeys((*folders, include_dir())))]
    if not any(option.lstrip("-").startswith("std") for option in options):
        words.append("--std=c++17")
    words += options
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(text, os.fsencode(name), 0, [], []))
    try:
        (code,) = nvrtc.nvrtcCompileProgram(program, len(words), [os.fsencode(word) for word in words])
        said = _fetched(nvrtc, program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace").strip()
        for copy, original in (originals or {}).items():
            said = said.replace(copy, original)
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise CompileError(f"NVRTC refuses the source:\n{said}" if said else f"NVRTC: {_words(nvrtc, code)}")
        return _fetched(nvrtc, program, "CUBIN"), said
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise ToolError(f"NVRTC can not be loaded: {error}", remedy=_INSTALL) from None
    return nvrtc


def _fetched(nvrtc: Any, program: Any, what: str) -> bytes:
    """Return what NVRTC holds of a program."""
    size = _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program))
    # NVRTC writes into the object.  One byte more, since the whole interpreter shares each bytes object of one byte:
    # an empty log's NUL would stand in the place of every b" " from then on.
    data = bytes(size + 1)
    _checked(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, data))
    return data[:size]


def _checked(nvrtc: Any, result: tuple[Any, ...]) -> Any:
    code, *values = result
    if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"NVRTC: {_words(nvrtc, code)}")
    return values[0] if values else None


def _words(nvrtc: Any, code: Any) -> str:
    _, text = nvrtc.nvrtcGetErrorString(code)
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
