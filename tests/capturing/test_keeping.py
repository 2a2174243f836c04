# SPDX-License-Identifier: Apache-2.0
"""What is alive in a capture stays alive: the runtime reads it again at the next start."""

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
    keeping.begin()
    del captured
    during = Kernel()
    keeping.note(during)
    third = weakref.ref(during)
    del during
    keeping.end()
    after = Kernel()
    keeping.note(after)
    fourth = weakref.ref(after)
    del after
    gc.collect()
    assert first() is not None
    assert second() is None
    assert third() is not None
    assert fourth() is None
