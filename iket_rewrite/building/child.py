# SPDX-License-Identifier: Apache-2.0
"""Run a compiler to its end: what it says is passed on, what is sent to us is sent to it, and its status is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from ..errors import ToolError

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: A shell's way to say that a signal ended a program.
_BY_SIGNAL = 128


class Stopped(BaseException):
    """A signal asks this process to end.

    Attributes:
        number: the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def stopping() -> Iterator[None]:
    """Turn signals that end this process into `Stopped`, so that it cleans up before it ends of the same signal.

    A signal that is ignored, as nohup has it, stays ignored.
    """

    def stop(number: int, _: Any) -> None:
        raise Stopped(number)

    heard = [number for number in _PASSED_ON if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    except Stopped as stopped:
        signal.signal(stopped.number, signal.SIG_DFL)
        os.kill(os.getpid(), stopped.number)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_child(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    data: bytes | None = None,
    complaints: Callable[[bytes], bytes] | None = None,
    output: Callable[[bytes], bytes] | None = None,
) -> int:
    """Run a command; return its exit status, 128 and the signal's number where one has ended it.

    Args:
        command: the program and its arguments.
        environment: the variables.
        data: what it reads from standard input.
        complaints: changes a line that it prints to standard error.
        output: changes all that it prints to standard output.

    Raises:
        ToolError: it can not be started.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        child = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=None if data is None else subprocess.PIPE,
            stdout=None if output is None else subprocess.PIPE,
            stderr=None if complaints is None else subprocess.PIPE,
        )
    except OSError as error:
        raise ToolError(f"{command[0]} can not be started: {error.strerror or error}") from None
    try:
        _pass_on(child, data, complaints, output)
        status = child.wait()
    except BaseException as error:
        child.send_signal(error.number if isinstance(error, Stopped) else signal.SIGTERM)
        child.wait()
        raise
    return status if status >= 0 else _BY_SIGNAL - status


def _pass_on(
    child: subprocess.Popen[bytes],
    data: bytes | None,
    complaints: Callable[[bytes], bytes] | None,
    output: Callable[[bytes], bytes] | None,
) -> None:
    threads = []
    if complaints is not None and child.stderr is not None:
        threads.append(threading.Thread(target=_copy_lines, args=(child.stderr, complaints), daemon=True))
    if data is not None and child.stdin is not None:
        threads.append(threading.Thread(target=_feed, args=(child.stdin, data), daemon=True))
    for thread in threads:
        thread.start()
    if output is not None and child.stdout is not None:
        _write(1, output(child.stdout.read()))
    for thread in threads:
        thread.join()


def _copy_lines(stream: IO[bytes], change: Callable[[bytes], bytes]) -> None:
    for line in stream:
        _write(2, change(line))


def _feed(stream: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), stream:
        stream.write(data)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    with contextlib.suppress(BrokenPipeError):
        while rest:
            rest = rest[os.write(descriptor, rest) :]
