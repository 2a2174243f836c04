# SPDX-License-Identifier: Apache-2.0
"""What is alive when a capture starts or ends stays alive: the runtime reads it again at the next start."""

from __future__ import annotations

import gc
import weakref

from iket_rewrite.capturing import keeping


class Kernel:
    """Stands for a loaded module."""


def test_what_was_alive_at_a_capture_stays_and_nothing_else():
    captured, dropped = Kernel(), Kernel()
    keeping.note(captured)
    keeping.note(dropped)
    first, second = weakref.ref(captured), weakref.ref(dropped)
    del dropped
    gc.collect()
    keeping.keep()
    del captured
    gc.collect()
    assert first() is not None
    assert second() is None
