# SPDX-License-Identifier: Apache-2.0
"""What to know of TVM's FFI: how a registered function is replaced and put back, and how errors cross it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..errors import IketError
from . import compat
from .faults import SessionError


class GlobalFunction:
    """One function of TVM's registry, which we replace for a while.  Its users hold the package's lock.

    Args:
        name: the name in the registry.
        function: what stands there in the meantime.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        self.previous: Any = None
        self._ours: Any = None

    def install(self, *, override: bool = True) -> None:
        """Register ours and keep what was registered before.

        Raises:
            SessionError: something is registered and must not be replaced.
        """
        previous = compat.get_function(self.name, allow_missing=True)
        if previous is not None and not override:
            raise SessionError(
                f"another function is registered as {self.name}",
                remedy="leave override at True to replace it for the session, with chain=True to run it first",
            )
        compat.register_function(self.name, f=self.function, override=True)
        self.previous, self._ours = previous, compat.get_function(self.name)

    @property
    def in_place(self) -> bool:
        """Whether ours is what is registered now."""
        return self._ours is not None and bool(compat.get_function(self.name, allow_missing=True) == self._ours)

    def restore(self, *, previous: bool = True) -> None:
        """Put back what was registered before, or its absence; without `previous`, remove ours only."""
        before, self.previous, self._ours = self.previous, None, None
        if previous and before is not None:
            compat.register_function(self.name, f=before, override=True)
        else:
            compat.remove_function(self.name)


_last = threading.local()


class Carried(Exception):
    """An error on its way through the FFI, which knows errors by a registered name and a message only.

    Raised in a callback, it arrives on the other side as a call of this class with the message; in place of an object
    of its own that call returns the error that was put in.
    """

    def __new__(cls, content: BaseException | str) -> Any:  # noqa: D102
        if isinstance(content, BaseException):
            _last.error = content
            return super().__new__(cls, content)
        error = getattr(_last, "error", None)
        return error if error is not None and str(error) == content else IketError(content)

    def __str__(self) -> str:
        return str(self.args[0])


compat.register_error("iket_rewrite.Carried", Carried)


def carrying(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callback whose errors arrive as they were raised."""

    def callback(*arguments: Any) -> Any:
        _last.error = None
        try:
            return function(*arguments)
        except Exception as error:
            # An error that came out of the FFI already finds its way by itself.
            if hasattr(error, "__tvm_ffi_error__"):
                raise
            raise Carried(error) from error

    return callback
