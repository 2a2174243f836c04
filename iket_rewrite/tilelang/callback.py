# SPDX-License-Identifier: Apache-2.0
"""The one callback of the process, which TileLang calls with every CUDA source that it generates.

It decides nothing: it looks up the sessions that the calling thread is in and rewrites as they say.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from ..rewriting.annotation import Annotation, SiteKind, SourcePosition
from ..rewriting.core import Rewrite, rewrite
from . import active, compat
from .active import Settings
from .balance import imbalances
from .faults import SessionError
from .ffi import GlobalFunction, carrying
from .places import tell
from .records import KernelRecord, in_words

_ARCHITECTURE = re.compile(r"sm_\d+[af]?\Z")
_ENDS = {SiteKind.PUSH: SiteKind.POP, SiteKind.START: SiteKind.END}
_SEPARATORS = re.compile(r"[\s;]*\Z")
#: The rewriter says so of every payload that it can not see through; that payloads are not recorded was asked for.
_DROPPED = "payload-dropped"
#: What the search for ranges that do not pair up says with more words.
_SAID = frozenset(["pop-without-push"])
_PAIR_UP = (
    "end it on every path; token_start and token_end may stand on several, for example before a break.  Warp "
    "specialisation ends a range around a whole pipelined loop in the warps that compute only: put it inside the loop"
)

_depth = 0
_chain = False


def enable(*, override: bool = True, chain: bool = False) -> None:
    """Rewrite every CUDA source that TileLang generates from now on, until `disable` was called as often.

    Args:
        override: whether a callback that is registered already may be replaced.
        chain: whether that callback runs first, on what TileLang generated.

    Raises:
        SessionError: a callback is registered, and `override` is False.
    """
    global _depth, _chain  # noqa: PLW0603  (TileLang has one callback per process)
    with active.lock:
        if _depth == 0:
            _function.install(override=override)
        _depth += 1
        _chain = _chain or chain


def disable(*, restore: bool = True) -> None:
    """Undo one `enable`; the last one restores the callback that was registered before, or its absence.

    Args:
        restore: False leaves no callback behind.
    """
    global _depth, _chain  # noqa: PLW0603
    with active.lock:
        if _depth == 0:
            return
        _depth -= 1
        if _depth == 0:
            _chain = False
            _function.restore(previous=restore)


def is_enabled() -> bool:
    """Say whether TileLang's sources are rewritten."""
    with active.lock:
        return _depth > 0


def replaced() -> bool:
    """Say whether somebody registered another callback over ours."""
    with active.lock:
        return _depth > 0 and not _function.in_place


def _postprocess(code: str, target: Any) -> str:
    """Rewrite one source: what TileLang calls."""
    scopes, settings = active.scopes(), active.settings()
    _warn_of_rivals()
    with active.lock:
        previous = _function.previous
        chained = previous is not None and (_chain or any(scope.chain for scope in scopes))
    if chained:
        code = previous(code, target)
        if not isinstance(code, str):
            raise SessionError(
                f"the chained callback returned {type(code).__name__}, not source", remedy="let it return the source"
            )
    record = _record(str(code), target, settings)
    with active.lock:
        for scope in scopes:
            scope.kernels.append(record)
    _warn(record)
    for scope in reversed(scopes):
        if scope.on_source is not None:
            scope.on_source(record)
    return record.source


_function = GlobalFunction(compat.POSTPROC, carrying(_postprocess))


def _record(code: str, target: Any, settings: Settings) -> KernelRecord:
    architecture = _architecture(target)
    result = rewrite(
        code,
        target=architecture or None,
        runtime_payloads=settings.runtime_payloads,
        pre_hopper=settings.pre_hopper,
    )
    return KernelRecord(
        code,
        result,
        architecture,
        settings.runtime_payloads,
        empty_ranges=_empty_ranges(result),
        unbalanced=tuple(imbalances(result.plan.annotations)),
    )


def _architecture(target: Any) -> str:
    found = str(getattr(target, "attrs", {}).get("arch", ""))
    return found if _ARCHITECTURE.match(found) else ""


def _empty_ranges(result: Rewrite[str]) -> dict[str, int]:
    """Return how often the two ends of a range stand side by side, with at most other events between them, by name."""
    annotations = result.plan.annotations
    text = annotations[0].call.source.logical if annotations else ""
    empty: Counter[str] = Counter()
    #: Ranges that were started, with nothing but events behind them so far.
    pending: list[Annotation] = []
    end = 0
    for item in annotations:
        if not _SEPARATORS.match(text, end, item.call.start):
            pending.clear()
        end = item.call.end
        if item.kind in _ENDS:
            pending.append(item)
            continue
        for index, start in reversed(list(enumerate(pending))):
            if item.kind is _ENDS[start.kind] and item.name in (None, start.name):
                empty[start.name or ""] += 1
                del pending[index]
                break
    return dict(empty)


def _warn(record: KernelRecord) -> None:
    kernels = ", ".join(record.kernels) or "a kernel"
    _pass_on(record, kernels)
    for one in record.unbalanced:
        name = "a range" if one.name is None else f"the range {one.name!r}"
        at = in_words([one.place] if one.place else [])
        tell(
            f"{name}{at} {one.fault}, in the source that TileLang generated for {kernels}\n  fix: {_PAIR_UP}", one.place
        )
    for name, count in record.empty_ranges.items():
        places, starts = record.places_of(name), record.starts_of(name)
        message = (
            f"the range {name!r}{in_words(places)} encloses nothing in the source that "
            f"TileLang generated for {kernels}{f', at {count} of its {starts} places' if starts > count else ''}: "
            "pipelining and warp specialisation move statements such as T.copy elsewhere"
        )
        tell(message, next(iter(places), None))


def _pass_on(record: KernelRecord, kernels: str) -> None:
    """Warn of what the rewriter has noticed, once for all annotations of which it says the same."""
    said: dict[str, dict[SourcePosition, None]] = {}
    for notice in record.warnings:
        if notice.slug not in _SAID and (record.runtime_payloads or notice.slug != _DROPPED):
            place = record.place_of(notice)
            said.setdefault(notice.message, {}).update({place: None} if place else {})
    for message, places in said.items():
        tell(f"{kernels}: {message}{in_words(places)}", next(iter(places), None))


def _warn_of_rivals() -> None:
    """Warn once where a worker may belong to any of several threads, whose sessions want different things."""
    with active.lock:
        rivals = active.rivals()
        wanted = {
            (scope.settings.runtime_payloads, scope.settings.pre_hopper, scope.chain, scope.verify) for scope in rivals
        }
        if len(wanted) < 2 or rivals[0].warned:
            return
        rivals[0].warned = True
    tell(
        "a thread without a session of its own compiles while several threads have sessions that differ: it uses the "
        "outermost one; open a session in the thread that compiles, or run one such session at a time"
    )


__all__ = ["disable", "enable", "is_enabled", "replaced"]
