# SPDX-License-Identifier: Apache-2.0
"""Every error that leaves this package, grouped by who has to act.

`IketError` is the one base.  A message is complete: what is wrong, where, and the way out.  Errors about
source text keep their position as data and draw the caret only when they are printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class IketError(Exception):
    """Base of every error this package raises on purpose.

    Attributes:
        slug: stable identifier of the kind of error; it is the anchor of its paragraph in the documentation.
        remedy: the way out, or an empty string where the message says it already.
        exit_code: what a command returns when this error ends it.
    """

    slug = "iket"
    exit_code = 2

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message + (f"\n  fix: {self.remedy}" if self.remedy else "")


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a source text.

    Attributes:
        path: the file as the caller named it, or `<source>` for text without a file.
        line: 1-based physical line.
        column: 1-based column, counted in characters.
        text: the physical line, without its line end; of a long one the part around the column.
        skipped: how many characters of the line stand before `text`.
        width: how many characters the caret underlines, at least 1.
    """

    path: str
    line: int
    column: int
    text: str = field(default="", repr=False)
    skipped: int = field(default=0, repr=False)
    width: int = field(default=1, repr=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    def excerpt(self) -> str:
        """Return the line and a caret under the position."""
        # A tab keeps its own width in the caret line, so that the caret stands right whatever the tab stop.
        lead = "".join("\t" if char == "\t" else " " for char in self.text[: self.column - 1 - self.skipped])
        width = max(1, min(self.width, len(self.text) - len(lead)))
        return f"  {self.text}\n  {lead}{'^' * width}"


class SourceError(IketError):
    """An error at one or more places of a source text; the kernel's author has to act.

    Attributes:
        place: where it is wrong.
        others: further places that take part, each with a word on its role.
    """

    exit_code = 1

    def __init__(
        self, message: str, place: Place, *, remedy: str = "", others: tuple[tuple[str, Place], ...] = ()
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.place = place
        self.others = others

    def __str__(self) -> str:
        parts = [f"{self.place}: {self.message}", self.place.excerpt()]
        for role, place in self.others:
            parts += [f"{place}: {role}", place.excerpt()]
        if self.remedy:
            parts.append(f"  fix: {self.remedy}")
        return "\n".join(parts)


class AnnotationError(SourceError):
    """One annotation can not be understood."""

    slug = "annotation"


class PlanError(SourceError):
    """The annotations are understood one by one but contradict each other or exceed the method's room."""

    slug = "plan"


class OptionError(IketError):
    """The caller passed an option that does not exist or does not fit; the caller has to act."""

    slug = "option"


class TargetError(OptionError):
    """The caller named an architecture that can not be read."""

    slug = "target"


class MetadataError(IketError):
    """Instrumented source or a binary holds IKET records that can not be decoded; its producer has to act."""

    slug = "metadata"


class CubinError(IketError):
    """A binary can not be read; its producer has to act."""

    slug = "cubin"


class TraceError(IketError):
    """A trace or an event table can not be read; its producer has to act."""

    slug = "trace"


class CompileError(IketError):
    """A compiler refuses the source; the kernel's author has to act."""

    slug = "compile"
    exit_code = 1


class ToolError(IketError):
    """A program or an optional package is missing or failed; the environment has to change."""

    slug = "tool"


class ToolTimeoutError(ToolError):
    """A tool was ended, since it took too long."""


class CaptureWarning(UserWarning):
    """A capture is there, but something is missing from it."""


class CaptureError(IketError):
    """No trace could be captured; each way in which that happens has its own slug (docs/capture.md lists them).

    Attributes:
        output: the end of what the profiled program printed, or an empty string.
    """

    slug = "capture"

    def __init__(self, message: str, *, slug: str, remedy: str = "", exit_code: int = 2, output: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.slug = slug
        self.exit_code = exit_code
        self.output = output

    def __str__(self) -> str:
        parts = [self.message]
        if self.output:
            parts += ["  the end of its output:", *(f"  | {line}" for line in self.output.splitlines())]
        if self.remedy:
            parts.append(f"  fix: {self.remedy}")
        return "\n".join(parts)
