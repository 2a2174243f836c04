# SPDX-License-Identifier: Apache-2.0
"""Which sessions are active, and which of them a thread is in.

A thread is in the sessions that it has entered.  A thread without one, such as a worker of `tilelang.par_compile` or
of the autotuner, is in those of the thread that entered the outermost active session.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..rewriting.annotation import SourcePosition
from .records import KernelRecord
from .registry import Registry

#: Guards what is one per process: the lists here, and what sessions change in TileLang.  Nothing of TileLang's or of
#: the user's runs under it.
lock = threading.RLock()


@dataclass
class Settings:
    """What a session decides and an inner session takes over.

    Attributes:
        runtime_payloads: whether events record their payloads.
        source_locations: whether events carry file and line of their annotation.
        output_dir: where traces go, or None where nobody said.
        pre_hopper: what events are below sm_90, see `iket_rewrite.rewrite`.
    """

    runtime_payloads: bool = False
    source_locations: bool = True
    output_dir: Path | None = None
    pre_hopper: str = "off"


@dataclass(eq=False)
class Scope:
    """One session while it is active.

    Attributes:
        settings, registry: see there.
        chain: whether the callback that was registered before runs first.
        verify: whether binaries are verified.
        on_source: called with each record, or None.
        kernels: the records.
        stale: names of kernels that came from a cache, or were compiled elsewhere, with other events or none.
        held: names of kernels that came from there with the events that the session asks for.
        plain: names of kernels that came from there and are not annotated.
        judged: kernels that were looked at.
        warned: whether it was said that workers can not be told apart.
        place: the line that entered it.
    """

    settings: Settings
    registry: Registry
    chain: bool = False
    verify: bool = False
    on_source: Callable[[KernelRecord], object] | None = None
    kernels: list[KernelRecord] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    judged: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    warned: bool = False
    place: SourcePosition | None = None


#: What holds outside of sessions.
_process = Settings()
_registry = Registry()
#: The sessions of each thread that has some, innermost last; the thread that entered the outermost one comes first.
_stacks: list[list[Scope]] = []


class _Thread(threading.local):
    """The sessions that this thread has entered."""

    def __init__(self) -> None:
        self.stack: list[Scope] = []


_thread = _Thread()


def scopes() -> list[Scope]:
    """Return the sessions that this thread is in, innermost last."""
    with lock:
        if _thread.stack:
            return list(_thread.stack)
        return list(_stacks[0]) if _stacks else []


def rivals() -> list[Scope]:
    """Return the innermost sessions of all threads, for a thread that is in none of its own; else an empty list."""
    with lock:
        return [] if _thread.stack else [stack[-1] for stack in _stacks]


def settings() -> Settings:
    """Return what holds for this thread."""
    inside = scopes()
    return inside[-1].settings if inside else _process


def registry() -> Registry:
    """Return the table in which this thread notes its events."""
    inside = scopes()
    return inside[-1].registry if inside else _registry


def make_scope(*, fresh: bool, **values: Any) -> Scope:
    """Return a session that starts with what holds for this thread; all sessions of a thread share one registry.

    Args:
        fresh: whether the first session of a thread has a registry of its own, not the one from outside.
        values: further fields of the session.
    """
    with lock:
        outside = Registry() if fresh else _registry
        return Scope(replace(settings()), _thread.stack[-1].registry if _thread.stack else outside, **values)


def enter(scope: Scope) -> list[Scope]:
    """Make a session the innermost one of this thread; return the thread's sessions, for `leave`."""
    stack = _thread.stack
    with lock:
        if not stack:
            _stacks.append(stack)
        stack.append(scope)
    return stack


def leave(stack: list[Scope], scope: Scope) -> None:
    """End a session of a thread.  What its outermost one noted can still be asked for outside."""
    global _registry  # noqa: PLW0603  (the table outside of sessions is one per process)
    with lock:
        stack.remove(scope)
        if not stack:
            # Two empty lists are equal, and only one of them is meant.
            del _stacks[next(index for index, one in enumerate(_stacks) if one is stack)]
            _registry = scope.registry
