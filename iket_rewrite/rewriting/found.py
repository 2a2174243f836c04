# SPDX-License-Identifier: Apache-2.0
"""What a pass over CUDA C++ text finds: calls, and the kernels, macros and includes around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..source import Source
from .tokens import Arguments


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `__global__` function with a body: its name, the span of its parameters, the offset of its `{`."""

    name: str
    parameters: tuple[int, int]
    body: int


@dataclass(frozen=True, slots=True)
class Macro:
    """A `#define`: its name, its parameters (None for an object-like one), and where its line ends."""

    name: str
    parameters: tuple[str, ...] | None
    start: int
    end: int


@dataclass(frozen=True, eq=False, slots=True)
class Spelling:
    """What calls of the same letters have in common.  They share one object, which is told by its identity.

    Attributes:
        callee: the name.
        arguments: the arguments, in offsets from the start of the call.
        source: the text that they stand in.
    """

    callee: str
    arguments: Arguments
    source: Source


class Include(NamedTuple):
    """One include of a file.

    Attributes:
        start: where its directive starts.
        name: the file's name as it is spelled; empty where a macro holds it.
        angled: it stands in angle brackets.
        next: it is an `#include_next`.
    """

    start: int
    name: str
    angled: bool
    next: bool


class Call(NamedTuple):
    """One call of a name that was looked for.

    Attributes:
        start: where its name starts.
        spelling: what it shares with calls of the same letters.
        kernel: the kernel that encloses it, where that is known.
        macro: the `#define` in whose body it stands, or None.
        blocks: offsets of the `{` that are open around it, outermost first.
    """

    start: int
    spelling: Spelling
    kernel: Kernel | None
    macro: Macro | None
    blocks: tuple[int, ...]

    @property
    def callee(self) -> str:
        """Return its name."""
        return self.spelling.callee

    @property
    def source(self) -> Source:
        """Return the text that it stands in, which its offsets count in."""
        return self.spelling.source

    @property
    def end(self) -> int:
        """Return the offset behind its closing parenthesis."""
        return self.start + self.spelling.arguments.end

    @property
    def arguments(self) -> Arguments:
        """Return its arguments."""
        return self.spelling.arguments.moved(self.start)


@dataclass(slots=True)
class Scan:
    """What one pass found.

    Attributes:
        calls: the calls, in the order of the text.
        uncalled: spans of names without parentheses, where such are allowed.
        kernel_ends: by the offset of a kernel's `{`, the offset of its `}`.
        named: the names that stand in code, called or not.
        macros: the names of all macros that the text defines.
        includes: the includes, in the order of the text.
    """

    calls: list[Call] = field(default_factory=list)
    uncalled: list[tuple[int, int]] = field(default_factory=list)
    kernel_ends: dict[int, int] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    macros: set[str] = field(default_factory=set)
    includes: list[Include] = field(default_factory=list)
