# SPDX-License-Identifier: Apache-2.0
"""Capture inside the process: a `with` block around kernel launches, in a script or a notebook.

The runtime patches kernels that are loaded already, so the block may begin before or after CUDA is initialised and
before or after the kernel is compiled.  Its end waits for the kernels.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .. import abi
from ..errors import CaptureError
from . import budget, checking, failures, keeping, options
from .contents import Contents, look_into
from .devices import ask_driver, require_gpu
from .other_profilers import refuse_others
from .publish import check_file, publish_file
from .runtime import find_runtime
from .session import CallError, Session, load_library, settle

if TYPE_CHECKING:
    from ..tracing.model import Trace
    from ..tracing.tables import Launches

#: The runtime knows one session per process.
_one = threading.Lock()


class Captured:
    """What a capture recorded; there once its block has ended.

    Attributes:
        messages: what the runtime said about it.
    """

    def __init__(self) -> None:
        self._path: Path | None = None
        self._contents: Contents | None = None
        self.messages: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if self._path is None or self._contents is None:
            return "Captured(nothing yet)"
        held = self._contents
        return f"Captured({len(held.kernels)} launches, {held.ranges} ranges, {held.markers} markers, {self._path})"

    @property
    def path(self) -> Path:
        """Return the trace file; one without `output` lives as long as this object."""
        if self._path is None:
            raise failures.not_captured_yet()
        return self._path

    @property
    def contents(self) -> Contents:
        """Return the kernel of each launch, and how many ranges and markers there are, without reading the trace."""
        if self._contents is None:
            raise failures.not_captured_yet()
        return self._contents

    @cached_property
    def trace(self) -> Trace:
        """Return the trace as typed columns, read when it is first asked for."""
        from ..tracing.load import load_trace

        trace = load_trace(self.path)
        budget.warn_of_missing_warps(trace, already=bool(budget.dropped(self.messages)))
        return trace

    @property
    def launches(self) -> Launches:
        """Return the table of launches."""
        return self.trace.launches


class Capture:
    """The context manager that `capture` returns; it serves once."""

    def __init__(
        self,
        *,
        max_events_per_warp: int | None,
        cluster: Sequence[int] | None,
        contexts: Sequence[object] | None,
        warp_lifetimes_only: bool,
        output: str | os.PathLike[str] | None,
        buffer_bytes: int | None,
    ) -> None:
        self._budget = options.check_count(max_events_per_warp, "max_events_per_warp")
        self._buffer = options.check_count(buffer_bytes, "buffer_bytes", 2**63)
        self._cluster = options.check_cluster(cluster, warp_lifetimes_only=warp_lifetimes_only)
        self._contexts = options.check_contexts(contexts)
        self._lifetimes = bool(warp_lifetimes_only)
        self._output = None if output is None else options.absolute(output, "output")
        self._session: Session | None = None
        self._captured: Captured | None = None

    def __enter__(self) -> Captured:
        if self._captured is not None:
            raise failures.already_capturing("this capture was used before")
        if not _one.acquire(blocking=False):
            raise failures.already_capturing("a capture is going on in this process")
        try:
            refuse_others()
            if self._output is not None:
                check_file(self._placed_at("x.trace.json"))
            self._session = self._start()
            keeping.begin()
        except BaseException:
            _one.release()
            raise
        self._captured = Captured()
        return self._captured

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        session, captured = self._session, self._captured
        if session is None or captured is None:
            raise failures.not_captured_yet()
        self._session = None
        keeping.end()
        folder = Path(tempfile.mkdtemp(prefix="iket-"))
        in_place = False
        try:
            path = folder / f"iket_pid_{os.getpid():#x}.trace.json"
            try:
                self._collect(session, path, failed=kind is not None)
            finally:
                _one.release()
            captured.messages = tuple(session.messages)
            if kind is None:
                contents = look_into(path.read_bytes())
                self._judge(contents, captured.messages, path)
                captured._path, captured._contents = self._placed(path), contents
                in_place = captured._path == path
                if in_place:
                    weakref.finalize(captured, shutil.rmtree, folder, True)
        finally:
            if not in_place:
                shutil.rmtree(folder, ignore_errors=True)

    def _start(self) -> Session:
        library = load_library(find_runtime())
        session: Session | None = None
        try:
            values = library.defaults()
            settle(
                values,
                max_events_per_warp=self._budget,
                buffer_bytes=self._buffer,
                cluster=self._cluster,
                contexts=self._contexts,
                warp_lifetimes_only=self._lifetimes,
            )
            session = Session(library, values)
            session.start()
        except CallError as error:
            if session is not None:
                with contextlib.suppress(CallError):
                    session.close()
            raise _start_failure(error) from None
        return session

    def _collect(self, session: Session, path: Path, *, failed: bool) -> None:
        """End the session; after an error of the block nothing is written, and that error is the one to see."""
        try:
            try:
                session.stop()
                if not failed:
                    session.save(path)
            finally:
                session.close()
        except CallError as error:
            if failed:
                return
            if not checking.cuda_is_used():
                raise failures.no_launch_in_block() from None
            if error.result == abi.SESSION_INVALID_EVENT_RECORD:
                raise failures.records_unreadable(str(error)) from None
            raise failures.session_failed(str(error), error.messages) from None

    def _judge(self, contents: Contents, messages: Sequence[str], path: Path) -> None:
        """Refuse a trace that holds nothing, or something else than what was asked for; warn of what is missing."""
        checking.refuse_empty_session(contents, messages, warp_lifetimes_only=self._lifetimes)
        if self._cluster is not None:
            checking.refuse_other_cluster([path.read_bytes()], self._cluster)
        budget.warn_of_dropped(messages)

    def _placed(self, path: Path) -> Path:
        """Put the file where the caller wants it, in one step."""
        if self._output is None:
            return path
        target = self._placed_at(path.name)
        publish_file(path, target)
        return target

    def _placed_at(self, name: str) -> Path:
        assert self._output is not None
        return self._output if self._output.suffix in (".json", ".gz") else self._output / name


def _start_failure(error: CallError) -> CaptureError:
    """Say why a session does not start: the machine is asked now, since a session that starts need not wait for it."""
    try:
        require_gpu(ask_driver())
    except CaptureError as reason:
        return reason
    if error.call == "Start" and any("could not initialize" in line for line in error.messages):
        return failures.driver_unsupported(error.messages)
    return failures.session_failed(str(error), error.messages)


def capture(
    *,
    max_events_per_warp: int | None = None,
    cluster: Sequence[int] | None = None,
    contexts: Sequence[object] | None = None,
    warp_lifetimes_only: bool = False,
    output: str | os.PathLike[str] | None = None,
    buffer_bytes: int | None = None,
) -> Capture:
    """Return a context manager: what kernels record inside it is in the trace afterwards.

        with iket_rewrite.capture() as captured:
            kernel(a, b)
        print(captured.trace)

    Args:
        max_events_per_warp: how many events one warp of one launch may record; None is the runtime's default, 256.  A
            warp with more is missing from the trace, and a `CaptureWarning` says so.
        cluster: index (x, y, z) of the one cluster to record; in a launch without clusters every block is one.
        contexts: the CUDA contexts to record (CUcontext as numbers, or objects with a `handle`); all by default.
        warp_lifetimes_only: record when each warp began and ended, of every kernel, annotated or not.
        output: where the trace is kept: a file (`.json`) or a folder; a temporary one by default.
        buffer_bytes: device memory for records; None is the runtime's default, 512 MiB.

    Raises:
        CaptureError: the session can not start, or nothing was recorded; the slug tells which (docs/capture.md).
        OptionError: an option can not be.
    """
    return Capture(
        max_events_per_warp=max_events_per_warp,
        cluster=cluster,
        contexts=contexts,
        warp_lifetimes_only=warp_lifetimes_only,
        output=output,
        buffer_bytes=buffer_bytes,
    )
