# SPDX-License-Identifier: Apache-2.0
"""Whether events record their payloads; a session restores it at its end."""

from __future__ import annotations

from . import active


def enable_runtime_payloads() -> None:
    """Record payloads in what is compiled from now on."""
    active.settings().runtime_payloads = True


def disable_runtime_payloads() -> None:
    """Record no payloads in what is compiled from now on; events stay."""
    active.settings().runtime_payloads = False


def runtime_payloads_enabled() -> bool:
    """Say whether payloads are recorded."""
    return active.settings().runtime_payloads
