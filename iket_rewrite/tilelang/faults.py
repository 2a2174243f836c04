# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a TileLang program and the rewriter.

Each error is an `IketError`, and also the built-in exception that TileLang's own module raises in its place, so that
programs which catch that one keep working.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import IketError, OptionError, ToolError

if TYPE_CHECKING:
    from ..verification.report import Report


class EventError(OptionError, ValueError):
    """A name, a payload or a colour can not form an event, or contradicts how the event was used before."""

    slug = "event"


class PayloadError(OptionError, TypeError):
    """A payload's type can not be told, or its value is no scalar."""

    slug = "payload"


class NestingError(OptionError, RuntimeError):
    """A range is ended that is not the innermost one that is open."""

    slug = "nesting"


class SessionError(OptionError, RuntimeError):
    """A session is used in a way that can not work."""

    slug = "session"


class TileLangError(ToolError, ImportError):
    """This release of TileLang lacks something that this package uses."""

    slug = "tilelang"


class TileLangMissingError(TileLangError, ModuleNotFoundError):
    """TileLang is not installed."""


class VerificationError(IketError):
    """A compiled kernel is not sound, or could not be verified.

    Attributes:
        kernels: names of the kernels that it is about.
        report: what the verifier said, or None where it never saw the binary.
    """

    slug = "verification"
    exit_code = 1

    def __init__(
        self, message: str, *, kernels: tuple[str, ...] = (), report: Report | None = None, remedy: str = ""
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.kernels = kernels
        self.report = report


class IketWarning(UserWarning):
    """Something that stops nothing, and that would otherwise be found out from an empty trace."""
