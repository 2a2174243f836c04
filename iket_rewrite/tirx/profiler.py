# SPDX-License-Identifier: Apache-2.0
"""`IketProfiler`: what a TIRx kernel is annotated with.

Each method prints one call of `IKET_EVENT` with a self-contained token into the kernel.  The CUDA source that TIRx
generates from it is what the rewriter reads.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from ..errors import OptionError
from ..rewriting.token_format import encode_event
from . import callback, payloads
from .compat import IRBuilder, T, meta_class
from .compiling import Instrumented, compile_events
from .faults import TirxEventError
from .token_ranges import SENTINEL, Loop, TokenRanges, ranges_of

#: Packages whose lines tell the author nothing.
_INNER = ("iket_rewrite.", "tvm_tirx.", "tvm_ffi.", "contextlib.")
_LOOPS = ("ForFrame", "WhileFrame")
_FUNCTION = "FunctionFrame"
#: Types that a token can have in a kernel; Python's own is for the values that methods return.
_TOKENS = ("int", "int32", "uint32", "int64", "uint64")
LOWERINGS = ("tokens", "tirx")


@meta_class
class IketProfiler:
    """Events in TIRx kernels, for NVIDIA's IKET runtime.

    Args:
        lowering: "tokens" has this package make the events: names of any length, f16, bf16 and pointer payloads, and
            colours.  "tirx" leaves it to TIRx's own lowering, with TIRx's limits.
        source_locations: whether events carry the file and line of their annotation ("tokens" only).
    """

    def __init__(self, *, lowering: str = "tokens", source_locations: bool = True) -> None:
        if lowering not in LOWERINGS:
            raise OptionError(f"unknown lowering {lowering!r}", remedy=f"choose one of {', '.join(LOWERINGS)}")
        self._own = lowering == "tokens"
        self._source_locations = source_locations
        # Whatever compiles this kernel from now on, TIRx's own `compile` included, must know what its calls mean.
        callback.install()

    def mark(self, name: str, payload: Any = None, *, color: int | None = None) -> None:
        """Put a checkpoint here.

        Args:
            name: any text; one name is one event, wherever it stands.
            payload: a value to record with it, a TIRx expression or a Python number.
            color: 0xRRGGBB.

        Raises:
            TirxEventError: the name, the payload or the colour can not form an event.
        """
        if self._own:
            self._event("mark", name, payload, color)
        else:
            T.evaluate(T.cuda.iket.mark(name, *_theirs(payload, color)))

    def range_push(self, name: str, payload: Any = None, *, color: int | None = None) -> None:
        """Begin a range; `range_pop` ends the innermost one of the warp.  Arguments are those of `mark`.

        Raises:
            TirxEventError: the name, the payload or the colour can not form an event.
        """
        if self._own:
            self._event("range_push", name, payload, color)
        else:
            T.evaluate(T.cuda.iket.range_push(name, *_theirs(payload, color)))

    def range_pop(self) -> None:
        """End the innermost range that `range_push` began."""
        if self._own:
            self._event("range_pop", None, None, None)
        else:
            T.evaluate(T.cuda.iket.range_pop())

    def range_start(self, name: str, payload: Any = None, *, color: int | None = None) -> Any:
        """Begin a range that need not nest, and return the token that ends it.  Arguments are those of `mark`.

        Returns:
            A uint32: `token: T.uint32 = profiler.range_start("load")` keeps it in a variable of the kernel.

        Raises:
            TirxEventError: the name, the payload or the colour can not form an event, or the name is new to a
                `range_end` before it in the same loop.
        """
        if not self._own:
            return T.cuda.iket.range_start(name, *_theirs(payload, color))
        value, kind = (None, None) if payload is None else payloads.typed(payload)
        token = _ranges().start(name, kind, _open_loops())
        self._emit("range_start", name, value, kind, color)
        return T.uint32(token)

    def range_end(self, token: Any, payload: Any = None) -> None:
        """End the range of a token; the token of no range ends none.

        Args:
            token: what `range_start` or `sentinel_token` returned, or a variable that holds it.
            payload: a value to record at the end, of the type of that at the start.

        Raises:
            TirxEventError: no range can have this token, or none with such a payload.
        """
        if not self._own:
            T.evaluate(T.cuda.iket.range_end(token, *_theirs(payload, None)))
            return
        value, kind = (None, None) if payload is None else payloads.typed(payload)
        number = _number(token)
        if number == SENTINEL:
            return
        for one, name in _ranges().ends(kind, _open_loops(), number):
            if number is not None:
                self._emit("range_end", name, value, kind, None)
                continue
            with T.if_(token == T.uint32(one)), T.then_():
                self._emit("range_end", name, value, kind, None)

    def sentinel_token(self, name: str, *, dtype: Any = None) -> Any:
        """Return the token of no range, for a variable that a later `range_start(name)` fills.

        Args:
            name: the range's name.
            dtype: the type of its payload, for example "int32", where an end stands before the start in a loop and
                the first end there is not this range's.

        Raises:
            TirxEventError: there is no such type.
        """
        if not self._own:
            return T.cuda.iket.sentinel_token(name)
        kind = None if dtype is None else payloads.named(str(dtype))
        _encoded("range_start", name)
        return T.uint32(_ranges().sentinel(name, kind, told=dtype is not None))

    def compile(
        self, mod: Any, target: Any = None, *, tir_pipeline: str = "tirx", runtime_payloads: bool | None = None
    ) -> Instrumented:
        """Compile a kernel or a module with its events.

        Args:
            mod: a TIRx function or IRModule, annotated with this class or with TIRx's own profiler.
            target: as for TIRx's own `compile`; None takes the GPU at hand.
            tir_pipeline: as for TIRx's own `IketProfiler.compile`.
            runtime_payloads: False leaves payloads out.

        Returns:
            What is called like TIRx's own executable; unlike it, it runs without a capture as well.

        Raises:
            IketError: the events contradict each other.
            TypeError: `mod` is neither.
        """
        return compile_events(mod, target, tir_pipeline, runtime_payloads)

    def _event(self, kind: str, name: str | None, payload: Any, color: int | None) -> None:
        value, type_name = (None, None) if payload is None else payloads.typed(payload)
        self._emit(kind, name, value, type_name, color)

    def _emit(self, kind: str, name: str | None, value: Any, type_name: str | None, color: int | None) -> None:
        file, line = _author() if self._source_locations else (None, None)
        token = _encoded(kind, name, payload=type_name, color=color, file=file, line=line)
        _kernel()
        T.evaluate(T.call_extern(callback.CALLEE, token, *([] if value is None else [value])))


def _encoded(kind: str, name: str | None, **values: Any) -> str:
    """Return an event's token.

    Raises:
        TirxEventError: the name or the colour can not form an event.
    """
    try:
        return encode_event(kind, name, **values)
    except OptionError as error:
        raise TirxEventError(error.message.removeprefix("no event token: "), remedy=error.remedy) from None


def _theirs(payload: Any, color: int | None) -> tuple[Any, ...]:
    """Return the optional arguments of TIRx's own events.

    Raises:
        OptionError: TIRx's events have no colour.
    """
    if color is not None:
        raise OptionError("TIRx's own lowering has no colours", remedy='use IketProfiler(lowering="tokens")')
    return () if payload is None else (payload,)


def _number(token: Any) -> int | None:
    """Return the value of a token that is a number already, or None of one that is a value of the kernel.

    Raises:
        TirxEventError: it is no token.
    """
    constant = getattr(token, "value", token)
    kind = str(getattr(token, "ty", type(token).__name__))
    if kind not in _TOKENS:
        raise TirxEventError(
            f"a token is what range_start or sentinel_token returned, or a variable of the kernel with it, not {kind}",
            remedy='token: T.uint32 = profiler.range_start("load") keeps it in a variable',
        )
    return constant if isinstance(constant, int) else None


def _kernel() -> Any:
    """Return the kernel that is being built.

    Raises:
        TirxEventError: there is none.
    """
    frames = IRBuilder.current().frames if IRBuilder.is_in_scope() else ()
    functions = [frame for frame in frames if type(frame).__name__ == _FUNCTION]
    if not functions:
        raise TirxEventError(
            "no kernel is being built here", remedy="call this in a function under @T.function, or that one calls"
        )
    return functions[-1]


def _ranges() -> TokenRanges:
    return ranges_of(_kernel())


def _open_loops() -> list[Loop]:
    """Return the loops of the kernel that are being built around this line, outermost first."""
    builder = IRBuilder.current()
    return [frame for frame in builder.frames if type(frame).__name__ in _LOOPS]


def _author() -> tuple[str | None, int | None]:
    """Return the file and line of the annotation."""
    frame = sys._getframe(1)
    while f"{frame.f_globals.get('__name__', '')}.".startswith(_INNER):
        if frame.f_back is None:
            return None, None
        frame = frame.f_back
    file = frame.f_code.co_filename
    return (file if file.startswith("<") else os.path.abspath(file)), frame.f_lineno
