# SPDX-License-Identifier: Apache-2.0
"""TileLang's kernel cache: off while a session asks for it, as before when the last such session has ended."""

from __future__ import annotations

from . import compat
from .handover import Handover


def _write(enabled: bool) -> None:
    if enabled:
        compat.CacheState.enable()
    else:
        compat.CacheState.disable()


_state: Handover[bool] = Handover(lambda: bool(compat.CacheState.is_enabled()), _write)


def switch_off(owner: object) -> None:
    """Switch the cache off for a session."""
    _state.start(owner)
    compat.CacheState.disable()


def restore(owner: object) -> None:
    """End what `switch_off` began."""
    _state.end(owner)
