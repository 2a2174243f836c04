# SPDX-License-Identifier: Apache-2.0
"""Annotations of a TileLang kernel.  Each is a call in the kernel's IR that says all about its event in a token."""

from __future__ import annotations

import threading
from typing import Any

from .. import abi, names
from ..rewriting.annotation import SiteKind, SourcePosition
from ..rewriting.token_format import encode_event
from . import active, compat
from .faults import EventError, NestingError
from .payloads import as_spec
from .places import caller

_CALLEE = "IKET_EVENT"
#: By raising these TileLang leaves the body of a loop that runs while the kernel is built: the kernel goes on.
_LOOP_CONTROL = frozenset(["PythonLoopBreak", "PythonLoopContinue"])


class _Thread(threading.local):
    """The ranges that are open in the kernel that this thread builds, and that kernel's builder."""

    def __init__(self) -> None:
        self.builder: Any = None
        self.ranges: list[str] = []


_thread = _Thread()


def mark(name: str, payload: Any = None, *, color: int | None = None) -> Any:
    """Note an instant.

    Args:
        name: any text.
        payload: a value to record: what `payload` returns, a TileLang expression, or a Python number.
        color: 0xRRGGBB; the event table keeps it, the runtime's records have none for marks.

    Raises:
        EventError: the name, the payload or the colour can not be, or contradicts an earlier use.
        PayloadError: the payload's type can not be told.
    """
    return _event(SiteKind.MARK, name, payload, color)


def range_push(name: str, payload: Any = None, *, color: int | None = None) -> Any:
    """Start a range; the innermost one that is open ends first.

    Args:
        name, payload: as for `mark`.
        color: 0xRRGGBB, or None for the viewer's choice.

    Raises:
        EventError, PayloadError: as for `mark`.
    """
    call = _event(SiteKind.PUSH, name, payload, color)
    _open_ranges().append(name)
    return call


def range_pop(name: str | None = None) -> Any:
    """End the innermost range.

    Args:
        name: the range that is meant; None is whichever it is.

    Raises:
        NestingError: none is open, or another one is the innermost.
    """
    _end(name)
    return _event(SiteKind.POP, None, None, None)


def range_start(name: str, payload: Any = None, *, color: int | None = None) -> Any:
    """Do what `range_push` does.  A range that need not nest is `token_start`."""
    return range_push(name, payload, color=color)


def range_end(name: str | None = None) -> Any:
    """Do what `range_pop` does.  A range that need not nest is `token_end`."""
    return range_pop(name)


def token_start(name: str, payload: Any = None, *, color: int | None = None) -> Any:
    """Start a range that is ended by its name, and so need not nest.

    Args:
        name: a name that no push/pop range has.
        payload: as for `mark`; both ends carry one type, or neither carries a payload.
        color: 0xRRGGBB, or None for the viewer's choice.

    Raises:
        EventError, PayloadError: as for `mark`.
    """
    return _event(SiteKind.START, name, payload, color)


def token_end(name: str, payload: Any = None, *, color: int | None = None) -> Any:
    """End a range of `token_start`; arguments and errors are the same."""
    return _event(SiteKind.END, name, payload, color)


class _Range:
    """What `range` returns."""

    def __init__(self, name: str, payload: Any, color: int | None, place: SourcePosition | None) -> None:
        self.name, self.payload, self.color, self.place = name, payload, color, place
        self._depth = 0

    def __enter__(self) -> _Range:
        if not compat.IRBuilder.is_in_scope():
            raise NestingError(
                f"the range {self.name!r} stands outside of a kernel", remedy="write it around statements of a kernel"
            )
        self._depth = len(_open_ranges())
        _event(SiteKind.PUSH, self.name, self.payload, self.color, self.place)
        _open_ranges().append(self.name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        if kind is not None and kind.__name__ not in _LOOP_CONTROL:
            # The kernel is not finished: printing into it would hide the error.
            del _open_ranges()[self._depth :]
            return
        _end(self.name)
        _event(SiteKind.POP, None, None, None, self.place)


def range(name: str, payload: Any = None, *, color: int | None = None) -> _Range:
    """Return a context manager that is a range around the statements in it.

    Args:
        name, payload: as for `mark`; the payload belongs to the start.
        color: 0xRRGGBB, or None for the viewer's choice.
    """
    return _Range(name, payload, color, _place())


def event_table() -> list[dict[str, Any]]:
    """Return the events that were annotated since the last reset, in the order of their first use.

    Keys: `name`, `event_id` (a number in this table), `kind` ("mark", "range" or "token_range"), `range_id`,
    `payload_type` and `payload_iket_id` (as declared), `runtime_payload_iket_id` (0 where payloads are not recorded),
    `color`, and `places`: (file, line) of each annotation.
    """
    return active.registry().rows(runtime_payloads=active.settings().runtime_payloads)


def reset() -> None:
    """Forget the table of events, and the ranges that this thread has left open.  Kernels keep their events."""
    active.registry().clear()
    _thread.ranges.clear()


def _event(
    kind: SiteKind, name: str | None, payload: Any, color: int | None, place: SourcePosition | None = None
) -> Any:
    """Print the call that stands for an event into the kernel that is being built; return what is left to evaluate.

    It is printed here and not by who evaluates the result, since nobody does where a function of the program, an
    assignment or a list stands between.
    """
    if compat.in_condition():
        raise EventError(
            "no event: it stands in a condition or in an expression with one, where it would happen in any case",
            remedy="write it as a statement under an if",
        )
    spec, place = as_spec(payload), place or _place()
    value = spec.expression() if spec else None
    if kind.event is not None:
        name = _checked(name, color)
        active.registry().add(kind.event, name, spec, color, place)
    token = encode_event(
        kind.value,
        name,
        payload=spec.type if spec else None,
        color=color,
        file=place.file if place else None,
        line=place.line if place else None,
    )
    call = compat.call_extern("handle", _CALLEE, token, *([] if value is None else [value]))
    if not compat.IRBuilder.is_in_scope():
        return call
    compat.evaluate(call)
    return compat.const(0, "int32")


def _checked(name: Any, color: Any) -> str:
    fault = names.fault_of(name) if isinstance(name, str) else f"the name is {name!r}, not text"
    if fault:
        raise EventError(f"no event: {fault}")
    if color is not None and (type(color) is not int or not 0 <= color <= abi.COLOR_HIGHEST):
        raise EventError(f"no event: the colour is {color!r}, not a number from 0 to 0xFFFFFF")
    return str(name)


def _place() -> SourcePosition | None:
    """Return the line of the annotation, unless lines are left out."""
    return caller() if active.settings().source_locations else None


def _open_ranges() -> list[str]:
    """Return the ranges that are open in the kernel under construction; those of a kernel that failed are forgotten."""
    builder = compat.IRBuilder.current() if compat.IRBuilder.is_in_scope() else None
    known = _thread.builder
    if builder is not known and (builder is None or known is None or not builder.same_as(known)):
        _thread.builder, _thread.ranges = builder, []
    return _thread.ranges


def _end(name: str | None) -> None:
    ranges = _open_ranges()
    if not ranges:
        raise NestingError("a range is ended, but none is open", remedy="start it with range_push first")
    if name is not None and name != ranges[-1]:
        raise NestingError(
            f"the range {name!r} is ended, but {ranges[-1]!r} is the innermost one that is open",
            remedy="end the inner range first, or use token_start and token_end, which need not nest",
        )
    ranges.pop()
