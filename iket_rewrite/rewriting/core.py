# SPDX-License-Identifier: Apache-2.0
"""The public rewriter: text in, text and plan out.  It composes the stages and decides nothing itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ..errors import OptionError
from ..source import Source, splice
from . import scopes, targets
from .annotation import Annotation
from .dialects import CALLEE_HINT, CALLEES, OWN_CALLEES, SECOND_PREFIX_CALLEES, read_all
from .found import Scan
from .notice import Notice
from .parameters import SteadyParameters
from .plan import EMPTY, Plan
from .planning import METHODS, make_plan
from .render import rewrite_edits, strip_edits
from .scan import defines, holds_metadata, scan
from .wrappers import resolve

#: With this the header leaves its first names to whoever defined them before: calls of those are not ours.
ONLY_SECOND_PREFIX = "IKETR_ONLY"
#: Byte order marks of encodings that no compiler of CUDA reads.
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
PRE_HOPPER = ("off", "rank0")

Text = TypeVar("Text", str, bytes)


@dataclass(frozen=True)
class Rewrite(Generic[Text]):
    """What `rewrite` made of a source.

    Attributes:
        text: the result, of the input's type.
        changed: whether it differs from the input.
        plan: the method, the events with their ids, and the sites.
        warnings: what the author should know; each prints with its place.
        instrumented: the source held IKET metadata already and was left as it is.
    """

    text: Text
    changed: bool
    plan: Plan
    warnings: tuple[Notice, ...] = field(default=())
    instrumented: bool = False


def rewrite(
    source: Text,
    *,
    target: str | None = None,
    runtime_payloads: bool | None = None,
    method: str = "auto",
    pre_hopper: str = "off",
    path: str | os.PathLike[str] | None = None,
) -> Rewrite[Text]:
    """Turn the annotations of CUDA C++ source into events that NVIDIA's IKET runtime can record.

    Args:
        source: the text, or its bytes; bytes that are not UTF-8 survive.
        target: an architecture such as "sm_90a", for warnings only: it never changes the text.
        runtime_payloads: whether events record their payloads.  None captures those of hand-written marks and of our
            own tokens, and leaves out those of TileLang's tokens, for which TileLang documents capture as opt-in.
        method: "auto" takes NativeDump up to 30 events and ExtendedNativeDump up to 4,031; "native" and "extended"
            insist.
        pre_hopper: "off" makes events nothing below sm_90; "rank0" emits the documented form there, which overwrites
            the user's shared memory (see the documentation).
        path: the file that the text comes from, for messages and the `#line` directive.

    Returns:
        The rewritten text with its plan.  Without annotations the text is the input, byte for byte.

    Raises:
        AnnotationError: an annotation can not be understood.
        PlanError: annotations contradict each other, or exceed the method.
        OptionError: an option is unknown.
    """
    target_warnings = check_options(method, pre_hopper, target)
    text = _open(source, path)
    if holds_metadata(text):
        return Rewrite(source, False, EMPTY, _instrumented(text), instrumented=True)
    scanned, annotations = find(text)
    named, doubts = resolve(text, annotations)
    if not named:
        notices = doubts + _unread(source, text.path)
        return Rewrite(source, False, EMPTY, notices)
    scopes.check(named)
    steady = {text: SteadyParameters(text.logical, scanned.kernel_ends)}
    plan = make_plan(named, steady, method=method, runtime_payloads=runtime_payloads)
    edits = rewrite_edits(text, plan, pre_hopper=pre_hopper == "rank0")
    result = text.encode(splice(text.text, edits))
    # `encode` gives the type of the source, which mypy can not know.
    return Rewrite(result, True, plan, target_warnings + doubts + plan.warnings)  # type: ignore[arg-type]


def check_options(method: str, pre_hopper: str, target: str | None) -> tuple[Notice, ...]:
    """See that the options exist; return what there is to say about the target.

    Raises:
        OptionError: an option is unknown.
    """
    if method not in METHODS:
        raise OptionError(f"unknown method {method!r}", remedy=f"choose one of {', '.join(METHODS)}")
    if pre_hopper not in PRE_HOPPER:
        raise OptionError(f"unknown pre_hopper {pre_hopper!r}", remedy=f"choose one of {', '.join(PRE_HOPPER)}")
    return targets.warnings(target, pre_hopper=pre_hopper == "rank0") if target is not None else ()


def strip(source: Text, *, path: str | os.PathLike[str] | None = None) -> Rewrite[Text]:
    """Remove every annotation: each call becomes an empty expression, everything else stays as it is.

    Raises:
        AnnotationError: an annotation can not be understood.
    """
    text = _open(source, path)
    if holds_metadata(text):
        return Rewrite(source, False, EMPTY, instrumented=True)
    annotations = find(text)[1]
    if not annotations:
        return Rewrite(source, False, EMPTY)
    result = text.encode(splice(text.text, strip_edits(text, annotations)))
    return Rewrite(result, True, EMPTY)  # type: ignore[arg-type]


def _unread(source: str | bytes, path: str) -> tuple[Notice, ...]:
    """Return why nothing may have been found in a source."""
    if isinstance(source, bytes) and source.startswith(_WIDE_MARKS):
        return (Notice(f"{path} seems to be UTF-16 or UTF-32, in which nothing is found; save it as UTF-8"),)
    return ()


def _instrumented(text: Source) -> tuple[Notice, ...]:
    """Return what to say of text that holds metadata: that it stays, and which annotations were added since."""
    notes = [Notice(f"{text.path} is instrumented already and stays as it is")]
    # TileLang keeps its calls and defines them; ours are gone once they are rewritten.
    left = [call for call in scan(text, OWN_CALLEES, strict=False).calls if call.macro is None]
    if left:
        place = text.place(left[0].start, left[0].start + len(left[0].callee))
        notes.append(Notice(f"{len(left)} annotations in it are not instrumented: rewrite the original source", place))
    return tuple(notes)


def find(source: Source, *, second_prefix: bool = False) -> tuple[Scan, Sequence[Annotation]]:
    """Return the scan and the annotations of a source; without a look at the code where its letters rule them out.

    Args:
        source: the text.
        second_prefix: the header's first names are left to somebody else, whatever the text itself says.
    """
    if not source.holds(CALLEE_HINT):
        return Scan(), ()
    scanned = scan(source, SECOND_PREFIX_CALLEES if second_prefix or leaves_first_names(source) else CALLEES)
    return scanned, read_all(source, scanned.calls)


def leaves_first_names(source: Source) -> bool:
    """Say whether the text leaves the header's first names to somebody else."""
    return defines(source, ONLY_SECOND_PREFIX)


def _open(source: str | bytes, path: str | os.PathLike[str] | None) -> Source:
    if not isinstance(source, (str, bytes)):
        raise OptionError(f"the source is {type(source).__name__}, not str or bytes")
    if path is not None and not isinstance(path, (str, bytes, os.PathLike)):
        raise OptionError(f"the path is {type(path).__name__}, not the name of a file")
    return Source(source, os.fsdecode(path) if path is not None else None)


__all__ = ["PRE_HOPPER", "Rewrite", "find", "leaves_first_names", "rewrite", "strip"]
