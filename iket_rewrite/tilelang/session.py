# SPDX-License-Identifier: Apache-2.0
"""A session: the stretch of a program in which TileLang's kernels get events.

Everything that it changes is put back when it ends, also by an exception.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

from ..errors import OptionError
from ..rewriting.core import PRE_HOPPER
from . import active, cache, callback, events, output, verifying, watching
from .active import Scope, Settings
from .faults import SessionError
from .places import author, tell
from .records import KernelRecord


class Session:
    """What `session` returns: a context manager.

    Attributes:
        kernels: a record of each source that was compiled in it, in order; it can be read after the end.
    """

    def __init__(
        self,
        *,
        reset_events: bool,
        override: bool,
        disable_on_exit: bool,
        output_dir: str | os.PathLike[str] | None,
        runtime_payloads: bool | None,
        disable_cache: bool,
        chain: bool,
        verify: bool,
        on_source: Callable[[KernelRecord], object] | None,
        source_locations: bool | None,
        pre_hopper: str | None,
    ) -> None:
        if pre_hopper is not None and pre_hopper not in PRE_HOPPER:
            raise OptionError(f"unknown pre_hopper {pre_hopper!r}", remedy=f"choose one of {', '.join(PRE_HOPPER)}")
        if on_source is not None and not callable(on_source):
            raise OptionError(
                f"on_source is {type(on_source).__name__}, which can not be called",
                remedy="give a function of a record",
            )
        self._reset_events, self._override, self._disable_on_exit = reset_events, override, disable_on_exit
        self._output_dir, self._runtime_payloads, self._disable_cache = output_dir, runtime_payloads, disable_cache
        self._chain, self._verify, self._on_source = chain, verify, on_source
        self._source_locations, self._pre_hopper = source_locations, pre_hopper
        self._scope: Scope | None = None
        self._undo = ExitStack()
        self.kernels: list[KernelRecord] = []

    def __enter__(self) -> Session:
        with active.lock:
            if self._scope is not None:
                raise SessionError(
                    "the session is active already", remedy="make another one, or enter it again when it has ended"
                )
            self._scope = scope = active.make_scope(
                fresh=self._reset_events,
                chain=self._chain,
                verify=self._verify,
                on_source=self._on_source,
                place=author(),
            )
            with ExitStack() as undo:
                undo.callback(setattr, self, "_scope", None)
                self._begin(scope, undo)
                self._undo = undo.pop_all()
        self.kernels = scope.kernels
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        scope = self._scope
        if scope is None:
            raise SessionError("the session is not active")
        with active.lock:
            replaced = callback.replaced()
            self._undo.close()
        if kind is None:
            self._warn(scope, replaced)

    def _begin(self, scope: Scope, undo: ExitStack) -> None:
        """Change what the session changes, innermost last; the lock is held."""
        self._settle(scope.settings)
        output.start(scope, scope.settings, self._output_dir)
        undo.callback(output.stop, scope)
        watching.start()
        undo.callback(watching.stop)
        if self._verify:
            verifying.start()
            undo.callback(verifying.stop)
        if self._disable_cache:
            cache.switch_off(scope)
            undo.callback(cache.restore, scope)
        callback.enable(override=self._override)
        keep = ExitStack()
        keep.callback(callback.disable)
        undo.push(lambda kind, *_: keep.close() if self._disable_on_exit or kind is not None else None)
        # Nothing fails from here on.
        stack = active.enter(scope)
        undo.callback(active.leave, stack, scope)
        if self._reset_events:
            events.reset()

    def _settle(self, settings: Settings) -> None:
        """Decide what the caller has decided; all else is as outside."""
        if self._runtime_payloads is not None:
            settings.runtime_payloads = bool(self._runtime_payloads)
        if self._source_locations is not None:
            settings.source_locations = bool(self._source_locations)
        if self._pre_hopper is not None:
            settings.pre_hopper = self._pre_hopper

    def _warn(self, scope: Scope, replaced: bool) -> None:
        """Warn where there is nothing that a capture could show."""
        if scope.held or any(record.instrumented for record in scope.kernels):
            return
        if replaced:
            why = "another callback was registered over the session's"
        elif scope.kernels:
            names = dict.fromkeys(name for record in scope.kernels for name in record.kernels)
            why = f"no annotation is in what was compiled: {', '.join(names)}"
        elif scope.stale:
            why = f"what it met was compiled before: {', '.join(dict.fromkeys(scope.stale))}"
        elif scope.plain:
            why = f"no annotation is in what it met: {', '.join(dict.fromkeys(scope.plain))}"
        elif self._disable_on_exit:
            why = "no kernel was compiled in it"
        else:
            return
        tell(f"nothing was instrumented in this session: {why}", scope.place)


def session(
    *,
    reset_events: bool = True,
    override: bool = True,
    disable_on_exit: bool = True,
    output_dir: str | os.PathLike[str] | None = None,
    runtime_payloads: bool | None = None,
    disable_cache: bool = True,
    chain: bool = False,
    verify: bool = False,
    on_source: Callable[[KernelRecord], object] | None = None,
    source_locations: bool | None = None,
    pre_hopper: str | None = None,
) -> Session:
    """Return a context manager; kernels that TileLang compiles inside get their events.

    Args:
        reset_events: start with an empty event table; kernels that exist keep their events.
        override: replace a postproc callback that is registered; False refuses to.
        disable_on_exit: restore that callback at the end; False leaves ours on, until `disable`.
        output_dir: the folder for traces in the meantime, which is made.
        runtime_payloads: whether events record their payloads; None leaves it as it is, which is off unless somebody
            turned it on.
        disable_cache: pass by TileLang's kernel cache, whose kernels were compiled in another mode.
        chain: run the postproc callback that is registered first, and rewrite what it returns.
        verify: judge each compiled binary as `iket-verify` does, and raise where it is not sound; ranges that enclose
            nothing or do not pair up are warnings.
        on_source: called with a `KernelRecord` of each source, before it is compiled.
        source_locations: whether events carry file and line of their annotation; None leaves it as it is, which is on.
        pre_hopper: what an event is below sm_90: "off" is nothing, "rank0" the form that TileLang emits, which
            overwrites the kernel's shared memory; None leaves it as it is, which is off.

    Raises:
        SessionError: on entering: the session is active already, or a callback is registered and `override` is False.
        TileLangError: on entering: this release of TileLang can not be watched.
        OptionError: an option is unknown, or `on_source` can not be called.
        VerificationError: on compiling, with `verify`.
    """
    return Session(
        reset_events=reset_events,
        override=override,
        disable_on_exit=disable_on_exit,
        output_dir=output_dir,
        runtime_payloads=runtime_payloads,
        disable_cache=disable_cache,
        chain=chain,
        verify=verify,
        on_source=on_source,
        source_locations=source_locations,
        pre_hopper=pre_hopper,
    )
