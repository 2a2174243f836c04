# SPDX-License-Identifier: Apache-2.0
"""Notice kernels that a session meets but did not compile: they hold other events than it asks for, or none.

TileLang keeps kernels in three places: in its kernel cache (memory and disk), in each function decorated with
`tilelang.jit`, and in the autotuner.  The callback is called for none of those.
"""

from __future__ import annotations

import threading
from typing import Any

from ..capturing import keeping
from ..errors import MetadataError
from ..rewriting.annotation import SourcePosition
from ..rewriting.readback import read_events
from ..rewriting.scan import holds_metadata
from ..rewriting.token_format import PREFIX, TILELANG_PREFIX, EventToken, TokenError, read_tilelang_token, read_token
from ..source import Source
from . import active, compat
from .active import Scope
from .faults import VerificationError
from .fragments import misread
from .patching import Patch
from .places import tell
from .records import KernelRecord, in_words

_users = 0
#: How many events a message names.
_SHOWN = 4


def start() -> None:
    """Begin, or note one more session.  Callers hold the package's lock."""
    global _users  # noqa: PLW0603  (classes of TileLang are one per process)
    if _users == 0:
        for patch in _PATCHES:
            patch.start()
    _users += 1


def stop() -> None:
    """Note one session less, and end with the last.  Callers hold the package's lock."""
    global _users  # noqa: PLW0603
    _users -= 1
    if _users == 0:
        for patch in reversed(_PATCHES):
            patch.stop()


def tokens_of(program: Any) -> list[EventToken]:
    """Return what the annotations in a program's IR say, ours and TileLang's, each once."""
    found: dict[str, EventToken] = {}

    def see(node: Any) -> None:
        if not isinstance(node, compat.StringImm):
            return
        text = str(node.value)
        read = read_token if text.startswith(PREFIX) else read_tilelang_token
        if text.startswith((PREFIX, TILELANG_PREFIX)) and text not in found:
            try:
                found[text] = read(text)
            except TokenError:
                # Whoever compiles it is told.
                return

    body = getattr(program, "body", None)
    if body is not None:
        compat.visit(body, see)
    return list(found.values())


# --- What stands in for TileLang's methods ----------------------------------------------------------------------


def _from_cache(original: Any, cache: Any, *arguments: Any, **options: Any) -> Any:
    scopes = active.scopes()
    before = len(scopes[-1].kernels) if scopes else 0
    if scopes:
        _tell_of_fragments(options["func"] if "func" in options else next(iter(arguments), None))
    kernel = original(cache, *arguments, **options)
    if not scopes:
        return kernel
    # A kernel that a later capture meets must stay loaded from then on.
    keeping.note(kernel)
    records = _compiled_here(scopes[-1], before)
    if records:
        _tell_of_lost(kernel, records)
    else:
        _judge(kernel, scopes, "it came from TileLang's kernel cache", "leave disable_cache at True")
        if any(scope.verify for scope in scopes) and tokens_of(kernel.prim_func) and not _verified(kernel, scopes):
            raise VerificationError(
                f"the kernel {_name(kernel)} came from TileLang's kernel cache: its binary was not verified",
                kernels=(_name(kernel),),
                remedy="leave disable_cache at True",
            )
    return kernel


def _called(original: Any, function: Any, *arguments: Any, **options: Any) -> Any:
    result = original(function, *arguments, **options)
    if isinstance(result, compat.JITKernel):
        _judge_kept(result)
    return result


def _launched(original: Any, kernel: Any, *arguments: Any, **options: Any) -> Any:
    _judge_kept(kernel)
    return original(kernel, *arguments, **options)


_PATCHES = [
    Patch(compat.KernelCache, "cached", _from_cache),
    Patch(compat.JITImpl, "__call__", _called),
    Patch(compat.JITKernel, "__call__", _launched),
]


def _tell_of_fragments(program: Any) -> None:
    """Warn of payloads that change the layout of a fragment, before TileLang may refuse it."""
    for token, fragment in misread(program):
        tell(
            f"the payload of {token.name!r}{in_words([token.position] if token.position else [])} reads the fragment "
            f"{fragment} outside of the T.Parallel loop over it: TileLang gives every thread a copy of the fragment, "
            "or refuses the kernel\n  fix: mark it in that loop, at the loop's own index",
            token.position,
        )


def _verified(kernel: Any, scopes: list[Scope]) -> bool:
    text = str(kernel.kernel_source or "")
    return any(record.source == text and record.report is not None for record in scopes[-1].kernels)


def _compiled_here(scope: Scope, before: int) -> list[KernelRecord]:
    """Return what this thread has compiled since the session had so many records."""
    here = threading.get_ident()
    return [record for record in scope.kernels[before:] if record.thread == here]


def _tell_of_lost(kernel: Any, records: list[KernelRecord]) -> None:
    """Warn of annotations of a program that are not in the source which was generated from it."""
    if any(record.rewrite.instrumented and not record.plan.events for record in records):
        return
    found = {(event.kind, event.name) for record in records for event in record.plan.events}
    lost: dict[str, dict[SourcePosition, None]] = {}
    for token in tokens_of(kernel.prim_func):
        if token.name is not None and (token.site_kind.event, token.name) not in found:
            lost.setdefault(token.name, {}).update({token.position: None} if token.position else {})
    for name, places in lost.items():
        tell(
            f"the event {name!r}{in_words(places)} is not in the source that TileLang generated for {_name(kernel)}: "
            "it stands outside of T.Kernel, or in code that is never reached",
            next(iter(places), None),
        )


def _judge_kept(kernel: Any) -> None:
    scopes = active.scopes()
    if scopes:
        _judge(
            kernel,
            scopes,
            "it was compiled outside of this session; a function decorated with tilelang.jit, and the autotuner, keep "
            "what they have compiled",
            "compile inside the session",
        )


def _judge(kernel: Any, scopes: list[Scope], why: str, remedy: str) -> None:
    """Warn where a kernel holds other events than its session asks for."""
    scope = scopes[-1]
    with active.lock:
        if kernel in scope.judged:
            return
        scope.judged.add(kernel)
        compiled = {record.source for record in scope.kernels}
    text = str(kernel.kernel_source or "")
    if text in compiled:
        return
    tokens = tokens_of(kernel.prim_func)
    fault = _fault(text, tokens, scope.settings.runtime_payloads) if tokens else ""
    with active.lock:
        for one in scopes:
            (one.stale if fault else one.held if tokens else one.plain).append(_name(kernel))
    if fault:
        tell(f"the kernel {_name(kernel)} {fault}: {why}\n  fix: {remedy}")


def _fault(text: str, tokens: list[EventToken], payloads: bool) -> str:
    """Say what is wrong with the events of a kernel's source, or return an empty string."""
    source = Source(text, "<kernel>")
    if not holds_metadata(source):
        names = list(dict.fromkeys(token.name for token in tokens if token.name is not None))
        shown = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
        return f"is annotated with {shown}, and has no events"
    if not any(token.payload for token in tokens):
        return ""
    try:
        recorded = any(event.payload for event in read_events(source)[1])
    except MetadataError:
        return "has events that can not be read"
    if recorded == payloads:
        return ""
    return f"{'records' if recorded else 'does not record'} payloads, other than this session"


def _name(kernel: Any) -> str:
    attributes = getattr(getattr(kernel, "prim_func", None), "attrs", None)
    return str(attributes.get("global_symbol", "<unnamed>")) if attributes else "<unnamed>"
