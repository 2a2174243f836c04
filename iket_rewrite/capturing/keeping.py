# SPDX-License-Identifier: Apache-2.0
"""Keep captured kernels loaded.

Runtime 4.8.1 remembers every module that was loaded while a session started or ran, and reads it again when the next
session starts.  Where the driver has unloaded it in between, the process dies with SIGSEGV (seen on an H200 with
TIRx kernels that were compiled, captured and dropped in turn).  So frontends of ours tell what they have compiled, and
a capture holds on to what is alive then.
"""

from __future__ import annotations

import threading
import weakref

_lock = threading.Lock()
_known: weakref.WeakSet[object] = weakref.WeakSet()
_kept: dict[int, object] = {}


def note(kernel: object) -> None:
    """Tell of an object whose life is that of a loaded module."""
    with _lock:
        _known.add(kernel)


def keep() -> None:
    """Hold on to everything that was told of and is alive, until the process ends."""
    with _lock:
        _kept.update((id(kernel), kernel) for kernel in _known)
