# SPDX-License-Identifier: Apache-2.0
"""Verify what TileLang compiles, in sessions that ask for it.

Each execution backend leaves its binary elsewhere: tvm_ffi takes a cubin from a registered callback, cython leaves a
shared library with cubins in it, nvrtc a cubin file.  Any other backend is refused, never skipped.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from ..rewriting.annotation import SourcePosition
from ..verification.core import verify
from ..verification.report import Finding, Report
from . import active, compat, watching
from .active import Scope
from .faults import VerificationError
from .ffi import GlobalFunction, carrying
from .patching import Patch
from .places import tell
from .records import KernelRecord, in_words, kernel_names

#: These tell where TileLang has moved code, not that the binary is unsound: they warn.
_ABOUT_RANGES = frozenset(["empty-range", "unbalanced-range"])
#: The backend whose binaries come through the callback.
_CALLBACK_BACKEND = "tvm_ffi"
#: How many findings a message shows.
_SHOWN = 5

_users = 0
_patches: list[Patch] = []
_backends: frozenset[str] = frozenset()


def start() -> None:
    """Begin, or note one more session.  Callers hold the package's lock.

    Raises:
        TileLangError: this release of TileLang can not be watched.
    """
    global _users, _backends  # noqa: PLW0603  (TileLang's callback and classes are one per process)
    if _users == 0:
        generators = compat.library_generators()
        _backends = frozenset([_CALLBACK_BACKEND, *generators])
        _patches[:] = [Patch(owner, "compile_lib", _library) for owner in generators.values()]
        _patches.append(Patch(compat.JITKernel, "__init__", _kernel))
        for patch in _patches:
            patch.start()
        _function.install()
    _users += 1


def stop() -> None:
    """Note one session less, and end with the last.  Callers hold the package's lock."""
    global _users  # noqa: PLW0603
    _users -= 1
    if _users == 0:
        _function.restore()
        for patch in reversed(_patches):
            patch.stop()


def _verifying() -> list[Scope]:
    """Return the sessions that this thread is in, where one of them verifies."""
    scopes = active.scopes()
    return scopes if any(scope.verify for scope in scopes) else []


# --- What stands in for TileLang's functions ---------------------------------------------------------------------


def _compile(code: str, *arguments: Any) -> Any:
    """Compile a source for the tvm_ffi backend."""
    binary = _function.previous(code, *arguments)
    if scopes := _verifying():
        _judge(bytes(binary), str(code), scopes)
    return binary


_function = GlobalFunction(compat.COMPILE, carrying(_compile))


def _library(original: Any, generator: Any, *arguments: Any, **options: Any) -> Any:
    """Compile a source for one of the other backends."""
    result = original(generator, *arguments, **options)
    scopes = _verifying()
    if scopes and _is_cuda(generator.target):
        _judge(os.fspath(generator.libpath), str(generator.lib_code), scopes)
    return result


def _kernel(original: Any, kernel: Any, *arguments: Any, **options: Any) -> None:
    """Compile a kernel and load it; the binary must have been seen in between."""
    scopes = _verifying()
    if not scopes or options.get("from_database"):
        original(kernel, *arguments, **options)
        return
    before = len(scopes[-1].kernels)
    # What the caller asked for is resolved here already; older releases pass on the result alone.
    context, backend, target = (options.get(key) for key in ("backend_context", "execution_backend", "target"))
    if context is not None:
        backend, target = context.execution_backend.name, context.target
    if backend not in (None, "auto"):
        _check_backend(backend, target, options.get("func"))
    original(kernel, *arguments, **options)
    _check_backend(kernel.execution_backend, kernel.target, kernel.prim_func)
    here = threading.get_ident()
    for record in scopes[-1].kernels[before:]:
        if record.thread == here and record.report is None:
            raise VerificationError(
                f"{_words(record.kernels)}: the execution backend {kernel.execution_backend} of TileLang "
                f"{compat.release()} compiled it where it could not be verified",
                kernels=record.kernels,
                remedy="use another backend, or a session without verify=True",
            )


def _check_backend(backend: str, target: Any, program: Any) -> None:
    """Refuse a backend whose binaries are not seen; what is not for CUDA needs no look unless it is annotated."""
    if str(backend) not in _backends and (_is_cuda(target) or watching.tokens_of(program)):
        raise VerificationError(
            f"kernels of the execution backend {backend} can not be verified",
            remedy=f"use one of {', '.join(sorted(_backends))}, or a session without verify=True",
        )


def _is_cuda(target: Any) -> bool:
    return str(getattr(getattr(target, "kind", None), "name", target)).startswith("cuda")


# --- Judgement ----------------------------------------------------------------------------------------------


def _judge(binary: str | bytes, code: str, scopes: list[Scope]) -> None:
    """Verify a binary, and note the report with the source that it was compiled from.

    Raises:
        VerificationError: something is found.
    """
    report = verify(binary)
    record = next((one for one in reversed(scopes[-1].kernels) if one.source in code), None)
    if record is not None:
        record.report = report
    kernels = kernel_names(code)
    failing = [finding for finding in report.findings if finding.fails]
    _warn([finding for finding in failing if finding.rule in _ABOUT_RANGES], kernels, record)
    _refuse([finding for finding in failing if finding.rule not in _ABOUT_RANGES], kernels, report)


def _refuse(findings: list[Finding], kernels: tuple[str, ...], report: Report) -> None:
    if not findings:
        return
    named = tuple(dict.fromkeys(finding.kernel for finding in findings if finding.kernel)) or kernels
    lines = [f"  {finding.rule}: {finding.message}" for finding in findings[:_SHOWN]]
    if len(findings) > _SHOWN:
        lines.append(f"  and {len(findings) - _SHOWN} more")
    raise VerificationError(
        "\n".join([f"{_words(named)}: the compiled binary is not sound", *lines]),
        kernels=named,
        report=report,
        remedy=findings[0].remedy,
    )


def _warn(findings: list[Finding], kernels: tuple[str, ...], record: KernelRecord | None) -> None:
    """Warn once for each rule, kernel and range; what the source showed of a range was said."""
    said: set[tuple[str, str | None, str | None]] = set()
    for finding in findings:
        named = [event.name for event in record.plan.events if repr(event.name) in finding.message] if record else []
        name = max(named, key=len, default=None)
        known = record is not None and _was_said(record, finding.rule, name)
        if known or (finding.rule, finding.kernel, name) in said:
            continue
        said.add((finding.rule, finding.kernel, name))
        places: tuple[SourcePosition, ...] = ()
        if record is not None:
            places = record.places_of(name) if name is not None else record.places_at(finding.line)
        kernel = _words((finding.kernel,) if finding.kernel else kernels)
        tell(f"{kernel}: {finding.rule}: {finding.message}{in_words(places)}", next(iter(places), None))


def _was_said(record: KernelRecord, rule: str, name: str | None) -> bool:
    """Say whether the generated source has shown the same of a range, so that it was warned of."""
    if rule == "empty-range":
        return name in record.empty_ranges
    return any(one.name == name for one in record.unbalanced)


def _words(kernels: tuple[str, ...]) -> str:
    if not kernels:
        return "a kernel"
    return f"the kernel{'s' if len(kernels) > 1 else ''} {', '.join(kernels)}"
