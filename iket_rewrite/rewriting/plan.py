# SPDX-License-Identifier: Apache-2.0
"""What is decided for a whole module: its events and their ids, the method, and the form of each site.

A plan is frozen; later stages only read it.
"""

from __future__ import annotations

import enum
import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property

from .. import names
from ..abi import Method
from ..errors import Place
from .annotation import Annotation, SiteKind, SourcePosition
from .event import Event
from .notice import Notice


class PayloadForm(enum.Enum):
    """How the stores of one site's payload are guarded."""

    #: The first active lane alone stores, so that its value is the one recorded.
    ELECTED = "elected"
    #: Every lane stores the same value, which spares the election; for constants and values uniform over the warp.
    UNIFORM = "uniform"
    #: The payload is not captured; its expression is named where nothing evaluates it.
    UNUSED = "unused"


@dataclass(frozen=True, eq=False, slots=True)
class Decision:
    """What was decided for an annotation.  Annotations of the same letters share one object, or two by uniformity.

    Attributes:
        event: its event; None for a pop.
        expression: text of its payload, or None.
        form: how the payload is stored; None where there is no payload.
        constant, uniform: what is known of the payload's value.
    """

    event: Event | None
    expression: str | None = None
    form: PayloadForm | None = None
    constant: bool = False
    uniform: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """One annotation with what was decided for it.

    Attributes:
        kind: what it does.
        event: its event; None for a pop.
        place: where it stands in the rewritten source.
        kernel: name of the enclosing kernel, where that is known.
        expression: text of its payload, or None.
        form: how the payload is stored; None where there is no payload.
        constant, uniform: what is known of the payload's value.
        position: where a code generator's user wrote it, or None.
    """

    kind: SiteKind
    event: Event | None
    place: Place
    kernel: str | None
    expression: str | None
    form: PayloadForm | None
    constant: bool
    uniform: bool
    position: SourcePosition | None


@dataclass(frozen=True, eq=False)
class Plan:
    """What was decided for a module.

    Attributes:
        method: NativeDump or ExtendedNativeDump.
        events: the events in the order of their ids.
        warnings: what the author should know.
        annotations: the annotations in the order of the text, one for each use of a wrapper macro.
        decisions: what was decided for each.
    """

    method: Method
    events: tuple[Event, ...] = ()
    warnings: tuple[Notice, ...] = ()
    annotations: tuple[Annotation, ...] = field(default=(), repr=False)
    decisions: tuple[Decision, ...] = field(default=(), repr=False)

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """The sites in the order of the text; a wrapper macro's uses are its sites."""
        # Places take time, and rewriting needs none.
        return tuple(
            Site(
                annotation.kind,
                decision.event,
                annotation.place,
                annotation.at.kernel.name if annotation.at.kernel else None,
                decision.expression,
                decision.form,
                decision.constant,
                decision.uniform,
                annotation.meaning.position,
            )
            for annotation, decision in zip(self.annotations, self.decisions, strict=True)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((self.method, self.events))

    def _values(self) -> tuple[object, ...]:
        return self.method, self.events, self.warnings, self.sites

    @cached_property
    def long_names(self) -> bool:
        """Whether some name does not fit its record, which changes the encoding of every name of the module."""
        return not all(names.fits_inline(event.name) for event in self.events)

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits that two plans share only if they give the same ids to the same events."""
        content = [self.method.value] + [
            [event.id, event.kind.value, event.name, event.payload.name if event.payload else None, event.color]
            for event in self.events
        ]
        return hashlib.sha256(json.dumps(content).encode("utf-8")).hexdigest()[:16]


EMPTY = Plan(Method.NATIVE)
