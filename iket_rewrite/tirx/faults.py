# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a TIRx program and the rewriter."""

from __future__ import annotations

from ..errors import OptionError, ToolError


class TirxEventError(OptionError, ValueError):
    """A name, a payload, a colour or a token can not form an event."""

    slug = "tirx-event"


class TirxError(ToolError, ImportError):
    """This release of TIRx lacks something that this package uses."""

    slug = "tirx"


class TirxMissingError(TirxError, ModuleNotFoundError):
    """TIRx is not installed."""
