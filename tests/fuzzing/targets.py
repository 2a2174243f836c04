# SPDX-License-Identifier: Apache-2.0
"""What is fuzzed: how an input is drawn, and what may come of it.

A target takes any bytes and returns, or raises an error that is documented; anything else is a fault.
"""

from __future__ import annotations

import functools
import random
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fuzzing.mutating import mutated
from fuzzing.scanning import difference, text_of
from toolbox import FIXTURES, nvdisasm
from verify.planted import binary, rewritten

import iket_rewrite
from iket_rewrite import IketError, abi
from iket_rewrite.tracing.summary import summarize
from iket_rewrite.verification.check import judge_image
from iket_rewrite.verification.cubin import read_cubin
from iket_rewrite.verification.sass import listings

#: Seconds of processor time that one input may take.
LONGEST = 10


class TookTooLong(BaseException):
    """An input takes too long; no reader catches it."""


@dataclass(frozen=True, slots=True)
class Target:
    """One reader under test."""

    draw: Callable[[random.Random], bytes]
    read: Callable[[bytes], None]


def faults(name: str, data: bytes) -> str:
    """Read an input; return what went wrong, or an empty string."""
    try:
        with _bounded():
            TARGETS[name].read(data)
    except IketError:
        return ""
    except (Exception, TookTooLong) as error:
        return f"{type(error).__name__}: {error}"[:1000]
    return ""


@contextmanager
def _bounded() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# --- Text -----------------------------------------------------------------------------------------------------


def _scan(data: bytes) -> None:
    found = difference(data.decode("utf-8", "replace"))
    assert not found, found


def _rewrite(data: bytes) -> None:
    for read in (iket_rewrite.rewrite, iket_rewrite.strip):
        result = read(data)
        assert isinstance(result.text, bytes)


def _source(source: random.Random) -> bytes:
    files = _files("cuda/*.cu", "tilelang/*.cu", "tirx/*.cu", "macros/*.cu")
    data = source.choice(files)
    # A part of a long text: most of it is of no interest here.
    start = source.randrange(max(1, len(data) - 3000))
    return mutated(data[start : start + 3000], source, text=True)


def _token(source: random.Random) -> bytes:
    kind = source.choice(("mark", "range_push", "range_start", "range_end"))
    payload = source.choice((None, *abi.PAYLOADS))
    token = iket_rewrite.encode_event(kind, "é" * source.randrange(1, 9), payload=payload, file="a.py", line=3)
    return mutated(token.encode(), source, text=False)


def _decode(data: bytes) -> None:
    token = data.decode("utf-8", "replace")
    found = iket_rewrite.decode_event(token)
    again = iket_rewrite.encode_event(
        found.kind,
        found.name,
        payload=found.payload,
        color=found.color,
        file=found.file,
        line=found.line,
        column=found.column,
    )
    assert iket_rewrite.decode_event(again) == found


@functools.cache
def _files(*patterns: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for pattern in patterns for path in sorted(FIXTURES.glob(pattern)))


# --- Binaries -------------------------------------------------------------------------------------------------


@functools.cache
def _cubins() -> tuple[bytes, ...]:
    return tuple(binary(rewritten(method=method)) for method in ("native", "extended"))


@functools.cache
def _shown() -> tuple[bytes, ...]:
    """Return what nvdisasm prints of the first cubin, as JSON and as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.cubin")
        path.write_bytes(_cubins()[0])
        forms = (["--emit-json"], ["-c"])
        runs = [subprocess.run([nvdisasm(), *form, str(path)], capture_output=True, check=True) for form in forms]
        return tuple(done.stdout for done in runs)


def _cubin(data: bytes) -> None:
    judge_image(read_cubin(data), (), {}, file="k", image="", strict=True)


def _sass(data: bytes) -> None:
    middle = len(data) // 2
    judge_image(_read(), listings([data[:middle], data[middle:]]), {}, file="k", image="", strict=True)


@functools.cache
def _read():
    return read_cubin(_cubins()[0])


# --- Traces ---------------------------------------------------------------------------------------------------


def _trace(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "k.trace.json")
        path.write_bytes(data)
        summarize(iket_rewrite.load_trace(path))


def _traced(source: random.Random) -> bytes:
    return mutated(
        source.choice(_files("trace/native*.json", "trace/tirx*.json", "trace/ext*.json")), source, text=True
    )


TARGETS = {
    "scanner": Target(lambda source: text_of(source).encode(), _scan),
    "rewriter": Target(_source, _rewrite),
    "tokens": Target(_token, _decode),
    "cubin": Target(lambda source: mutated(source.choice(_cubins()), source, text=False), _cubin),
    "sass": Target(lambda source: mutated(source.choice(_shown()), source, text=True), _sass),
    "trace": Target(_traced, _trace),
}
