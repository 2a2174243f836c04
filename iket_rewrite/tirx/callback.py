# SPDX-License-Identifier: Apache-2.0
"""What stands between TIRx's generated CUDA source and its compiler.

TIRx hands the source of a module to a global function, in the thread that compiles it (where a GPU is at hand; where
none is, when the module is exported or loaded).  Inside `instrumenting` annotations become events; outside they are
stripped, as TIRx strips its own in a regular compilation.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..rewriting.core import Rewrite, rewrite, strip
from . import compat
from .faults import TirxEventError
from .places import in_the_authors_words

#: The call that our events are printed as.
CALLEE = "IKET_EVENT"


class _Rewriting(threading.local):
    """How the thread's present compilation rewrites source, and what it made; None where it strips."""

    options: dict[str, Any] | None = None
    done: dict[str, Rewrite[str]] | None = None


_here = _Rewriting()
_lock = threading.Lock()
_installed: list[Any] = []


def install() -> None:
    """Put our function before the one that compiles; again after somebody else has replaced it.

    Each time it is a new function before whatever is registered, so that one which calls ours in turn makes no ring.
    """
    with _lock:
        registered = compat.get_function(compat.COMPILE)
        if _installed and registered.same_as(_installed[-1]):
            return
        compat.register_function(compat.COMPILE, _before(registered), override=True)
        _installed.append(compat.get_function(compat.COMPILE))


@contextmanager
def instrumenting(runtime_payloads: bool | None) -> Iterator[dict[str, Rewrite[str]]]:
    """Have this thread's compilations rewritten; give, by generated source, what was made of it."""
    outer = _here.options, _here.done
    _here.options, _here.done = {"runtime_payloads": runtime_payloads}, {}
    try:
        yield _here.done
    finally:
        _here.options, _here.done = outer


def made_of(source: str) -> Rewrite[str]:
    """Rewrite generated source as the present compilation wants it, once.

    Raises:
        IketError: the events contradict each other, or TIRx has made others in the same source.
    """
    assert _here.options is not None
    assert _here.done is not None
    if source not in _here.done:
        with in_the_authors_words(source):
            result = rewrite(source, **_here.options)
        if result.instrumented and CALLEE in source:
            raise TirxEventError(
                "this module holds events of this package and events that TIRx lowers itself: two plans in one binary",
                remedy='annotate all its kernels with IketProfiler() or all with IketProfiler(lowering="tirx")',
            )
        _here.done[source] = result
    return _here.done[source]


def _before(following: Any) -> Callable[[Any, Any], Any]:
    def compile_source(code: Any, config: Any) -> Any:
        source = str(code)
        if _here.done is not None:
            source = made_of(source).text
        elif CALLEE in source:
            source = strip(source).text
        return following(source, config)

    return compile_source
