# SPDX-License-Identifier: Apache-2.0
"""Run a program and all that it starts as one group: read what it prints as it comes, and end all of it at once."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_CHUNK = 1 << 16
#: How often the caller gets to look, and how long a group may take to end when it is asked to.
_TICK_S = 0.1
_GRACE_S = 5.0


class StartError(Exception):
    """A program can not be started; the message says which, and why."""


class Group:
    """A program that was started, in a group and session of its own.

    Args:
        command: its words.
        pipe: a named pipe that its parts write into.
        folder, environment: where and with what it runs; None is as here.
    """

    def __init__(
        self, command: Sequence[str], *, pipe: Path, folder: Path | None, environment: Mapping[str, str]
    ) -> None:
        # Opened for both, the pipe never ends, whoever comes and goes at its other end.
        self._pipe = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        try:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException as error:
            os.close(self._pipe)
            if isinstance(error, OSError):
                raise StartError(f"{command[0]}: {error.strerror}") from None
            raise

    def __enter__(self) -> Group:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        # What a program that ended well has left running is its own affair.
        if kind is not None or self._process.poll() is None:
            self.end()
        if self._process.stdout is not None:
            self._process.stdout.close()
        os.close(self._pipe)

    def follow(
        self,
        *,
        timeout: float | None,
        on_pipe: Callable[[bytes], None],
        on_output: Callable[[bytes], object],
        on_tick: Callable[[], None],
    ) -> int | None:
        """Hand on what comes until the program ends; return its status, or None where the time is over."""
        assert self._process.stdout is not None
        deadline = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._pipe, selectors.EVENT_READ, on_pipe)
            selector.register(self._process.stdout.fileno(), selectors.EVENT_READ, on_output)
            while True:
                ended = self._process.poll() is not None
                # The named pipe first: what the program printed stands before what run-iket says of it.
                events = sorted(selector.select(0 if ended else _TICK_S), key=lambda event: event[0].fd != self._pipe)
                if not [key for key, _ in events if self._hand_on(selector, key)] and ended:
                    return self._process.returncode
                on_tick()
                if deadline is not None and time.monotonic() > deadline and not ended:
                    return None

    def _hand_on(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> bool:
        """Read what is there; say whether there was something."""
        try:
            data = os.read(key.fd, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            selector.unregister(key.fd)
            return False
        key.data(data)
        return True

    def end(self) -> None:
        """End every process of the group: first ask, then make."""
        for request, patience in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
            if not self._signal(request):
                break
            until = time.monotonic() + patience
            while self._signal(0) and time.monotonic() < until:
                self._process.poll()
                time.sleep(0.02)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE_S)

    def _signal(self, number: int) -> bool:
        """Signal the group; say whether there is one."""
        self._process.poll()
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True
