# SPDX-License-Identifier: Apache-2.0
"""Keep captured kernels loaded.

Runtime 4.8.1 remembers every module that was loaded while a session started or ran, and reads it again when the next
session starts.  Where the driver has unloaded it in between, the process dies with SIGSEGV (seen on an H200 with
TIRx kernels that were compiled, captured and dropped in turn).  So frontends of ours tell what they have compiled, and
a capture holds on to what is alive when it starts and to what is told of before it ends.
"""

from __future__ import annotations

import threading
import weakref

_lock = threading.Lock()
_known: weakref.WeakSet[object] = weakref.WeakSet()
_kept: dict[int, object] = {}
_active = False


def note(kernel: object) -> None:
    """Tell of an object whose life is that of a loaded module."""
    with _lock:
        _known.add(kernel)
        if _active:
            _kept[id(kernel)] = kernel


def begin() -> None:
    """Hold on, until the process ends, to what was told of and is alive, and to what is told of from now on."""
    global _active  # noqa: PLW0603  (the runtime's sessions are one per process, too)
    with _lock:
        _active = True
        _kept.update((id(kernel), kernel) for kernel in _known)


def end() -> None:
    """Hold on to nothing new."""
    global _active  # noqa: PLW0603  (as in `begin`)
    with _lock:
        _active = False
