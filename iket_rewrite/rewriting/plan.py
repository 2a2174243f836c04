# SPDX-License-Identifier: Apache-2.0
"""Decide once for the whole module: which events there are, their ids, the method, and the form of each site.

Everything that concerns two annotations at a time is checked here.  The plan is frozen; later stages only read it.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from .. import names
from ..abi import EventKind, Method, PayloadType
from ..errors import OptionError, Place, PlanError
from ..source import Source
from .annotation import Annotation, Origin, SiteKind, SourcePosition
from .payloads import Effects, SteadyParameters, judge
from .scan import Call, Kernel

METHODS = ("auto", *(method.value for method in Method))


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the module.

    Attributes:
        id: the number in its record and trigger.
        kind: mark, range, or token range.
        name: its name.
        payload: the type that its records carry, or None.
        declared: the type that its annotations declare, captured or not.
        range_id: FNV-1a of the name for a range, 0 for a mark.
        color: 0xRRGGBB, or None for the viewer's choice.
    """

    id: int
    kind: EventKind
    name: str
    payload: PayloadType | None
    declared: PayloadType | None
    range_id: int
    color: int | None


class PayloadForm(enum.Enum):
    """How the stores of one site's payload are guarded."""

    #: The first active lane alone stores, so that its value is the one recorded.
    ELECTED = "elected"
    #: Every lane stores the same value, which spares the election; for constants and values uniform over the warp.
    UNIFORM = "uniform"
    #: The payload is not captured; its expression is named where nothing evaluates it.
    UNUSED = "unused"


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


@dataclass(frozen=True, slots=True)
class Warning_:
    """Something that the author should know and that stops nothing."""

    message: str
    place: Place | None = None

    def __str__(self) -> str:
        if self.place is None:
            return f"warning: {self.message}"
        return f"{self.place}: warning: {self.message}\n{self.place.excerpt()}"


@dataclass(frozen=True)
class Plan:
    """What was decided for a module.

    Attributes:
        method: NativeDump or ExtendedNativeDump.
        events: the events in the order of their ids.
        sites: the sites in the order of the text; a wrapper macro's uses are its sites.
        warnings: what the author should know.
    """

    method: Method
    events: tuple[Event, ...]
    sites: tuple[Site, ...]
    warnings: tuple[Warning_, ...] = ()

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


EMPTY = Plan(Method.NATIVE, (), ())


@dataclass(frozen=True, slots=True)
class NamedAnnotation:
    """An annotation whose name is known: itself, or one use of the wrapper macro that holds it.

    Attributes:
        annotation: the annotation.
        name: the event's name; None for a pop.
        start, end: the logical span that shows the name: the literal, or the use of the wrapper.
        kernel: the enclosing kernel, of the use where there is one.
        use: the use of the wrapper, or None.
        spelling: string literals that spell the name as the wrapper's use does, empty without a wrapper.
    """

    annotation: Annotation
    name: str | None
    start: int
    end: int
    kernel: Kernel | None
    use: Call | None = None
    spelling: str = ""


def make_plan(
    source: Source,
    annotations: Sequence[NamedAnnotation],
    steady: SteadyParameters,
    *,
    method: str = "auto",
    runtime_payloads: bool | None = None,
) -> Plan:
    """Decide everything about the module.

    Args:
        source: the text, for places.
        annotations: in the order of the text.
        steady: knows which parameters of kernels keep their value.
        method: "auto", "native" or "extended".
        runtime_payloads: whether payloads are captured; None leaves it to each kind of annotation.

    Raises:
        PlanError: annotations contradict each other, or exceed the method.
        OptionError: the method is unknown.
    """
    return _Planner(source, annotations, steady, runtime_payloads).plan(method)


class _Planner:
    def __init__(
        self,
        source: Source,
        annotations: Sequence[NamedAnnotation],
        steady: SteadyParameters,
        runtime_payloads: bool | None,
    ) -> None:
        self.source, self.annotations, self.steady = source, annotations, steady
        self.runtime_payloads = runtime_payloads
        self.warnings: dict[tuple[str, int], Warning_] = {}

    def plan(self, method: str) -> Plan:
        groups = self._groups()
        chosen = self._method(method, groups)
        events, by_key = [], {}
        range_ids: dict[int, NamedAnnotation] = {}
        for index, (key, group) in enumerate(groups.items()):
            event = self._event(chosen.facts.first_id + index, key[0], group)
            if event.range_id:
                self._check_range_id(range_ids, event, group[0])
            events.append(event)
            by_key[key] = event
        sites = tuple(self._site(item, by_key) for item in self.annotations)
        warnings = tuple(self.warnings.values())
        return Plan(chosen, tuple(events), sites, warnings)

    def _groups(self) -> dict[tuple[EventKind, str], list[NamedAnnotation]]:
        """Return the annotations of each event, in the order of first appearance."""
        groups: dict[tuple[EventKind, str], list[NamedAnnotation]] = {}
        ranges: dict[str, tuple[EventKind, NamedAnnotation]] = {}
        for item in self.annotations:
            kind = item.annotation.kind.event
            if kind is None or item.name is None:
                continue
            if kind is not EventKind.MARK:
                first_kind, first = ranges.setdefault(item.name, (kind, item))
                if first_kind is not kind:
                    raise self._clash(
                        item,
                        first,
                        f"{item.name!r} is used as a push/pop range and as a token range",
                        "used the other way here",
                        "give one of the two another name: they would share one range id and one symbol",
                    )
            groups.setdefault((kind, item.name), []).append(item)
        return groups

    def _clash(self, item: NamedAnnotation, first: NamedAnnotation, message: str, role: str, remedy: str) -> PlanError:
        return PlanError(message, self._place(item), remedy=remedy, others=((role, self._place(first)),))

    def _place(self, item: NamedAnnotation) -> Place:
        return self.source.place(item.start, item.end)

    def _method(self, method: str, groups: dict[tuple[EventKind, str], list[NamedAnnotation]]) -> Method:
        if method not in METHODS:
            raise OptionError(f"unknown method {method!r}", remedy=f"choose one of {', '.join(METHODS)}")
        native = len(groups) <= Method.NATIVE.facts.capacity
        chosen = (Method.NATIVE if native else Method.EXTENDED) if method == "auto" else Method(method)
        capacity = chosen.facts.capacity
        if len(groups) > capacity:
            excess = list(groups.values())[capacity][0]
            remedy = "use fewer distinct names, or put what differs into a payload"
            if chosen is Method.NATIVE:
                remedy = "choose the method auto or extended, or use fewer distinct names"
            raise PlanError(
                f"{len(groups)} events, but {chosen.facts.title} has room for {capacity}; this is the first too many",
                self._place(excess),
                remedy=remedy,
            )
        return chosen

    def _event(self, number: int, kind: EventKind, group: list[NamedAnnotation]) -> Event:
        first = group[0]
        name = first.name or ""
        payload = first.annotation.payload
        declared = payload.type if payload else None
        captured = self._captured(first)
        color, colored = first.annotation.color, first
        for item in group[1:]:
            other = item.annotation.payload
            if (other.type if other else None) is not declared:
                raise self._payload_clash(kind, item, first)
            if declared is not None and self._captured(item) is not captured:
                raise self._clash(
                    item,
                    first,
                    f"the payload of {name!r} is captured in one place and not in another",
                    "the other place",
                    "set runtime_payloads to true or false for the whole source",
                )
            other_color = item.annotation.color
            if other_color is not None and color is not None and other_color != color:
                raise self._clash(
                    item,
                    colored,
                    f"{name!r} has two colours",
                    "the other colour is given here",
                    "give one colour, at one place or at all",
                )
            if color is None and other_color is not None:
                color, colored = other_color, item
        if kind is EventKind.MARK and color is not None:
            self._warn("a mark has no colour in the runtime's records; the event table keeps it", colored)
        range_id = 0 if kind is EventKind.MARK else names.fnv1a32(name.encode("utf-8"))
        return Event(number, kind, name, declared if captured else None, declared, range_id, color)

    def _payload_clash(self, kind: EventKind, item: NamedAnnotation, first: NamedAnnotation) -> PlanError:
        def words(one: NamedAnnotation) -> str:
            return one.annotation.payload.type.name if one.annotation.payload else "no payload"

        if kind is EventKind.TOKEN_RANGE and "no payload" in (words(item), words(first)):
            message = f"the token range {item.name!r} has a payload at one end only"
            remedy = "give both ends a payload of one type, or neither"
        else:
            message = f"the event {item.name!r} has two payload types: {words(item)} here, {words(first)} before"
            remedy = "use one type at every place, or another name"
        return self._clash(item, first, message, f"{words(first)} here", remedy)

    def _captured(self, item: NamedAnnotation) -> bool:
        if item.annotation.payload is None:
            return False
        if self.runtime_payloads is None:
            # TileLang documents capture as opt-in; a payload written by hand, or declared to us, is meant.
            return item.annotation.origin is not Origin.TILELANG
        return self.runtime_payloads

    def _check_range_id(self, seen: dict[int, NamedAnnotation], event: Event, item: NamedAnnotation) -> None:
        other = seen.setdefault(event.range_id, item)
        if other.name != event.name:
            raise self._clash(
                item,
                other,
                f"the ranges {event.name!r} and {other.name!r} have one range id, {event.range_id:#010x}",
                "the other range",
                "rename one of them: the id is a hash of the name, and these two collide",
            )

    def _warn(self, message: str, item: NamedAnnotation) -> None:
        self.warnings.setdefault((message, item.annotation.call.start), Warning_(message, self._place(item)))

    def _site(self, item: NamedAnnotation, events: dict[tuple[EventKind, str], Event]) -> Site:
        annotation, call = item.annotation, item.annotation.call
        kind = annotation.kind.event
        event = events[kind, item.name] if kind is not None and item.name is not None else None
        kernel = item.kernel
        if annotation.payload is None:
            return Site(
                annotation.kind,
                event,
                self._place(item),
                kernel.name if kernel else None,
                None,
                None,
                False,
                False,
                annotation.position,
            )
        expression = self.source.logical[annotation.payload.start : annotation.payload.end].strip()
        verdict = judge(expression, lambda name: self.steady.holds(kernel, name))
        # A macro's parameters stand for anything.
        constant = verdict.constant
        uniform = verdict.uniform and (constant or call.macro is None)
        if event is None or event.payload is None:
            form = PayloadForm.UNUSED
            self._check_dropped(item, verdict.effects)
        else:
            form = PayloadForm.UNIFORM if uniform else PayloadForm.ELECTED
            if verdict.effects is Effects.CERTAIN:
                self._warn("the payload changes something, and only where events are recorded", item)
        return Site(
            annotation.kind,
            event,
            self._place(item),
            kernel.name if kernel else None,
            expression,
            form,
            constant,
            uniform,
            annotation.position,
        )

    def _check_dropped(self, item: NamedAnnotation, effects: Effects) -> None:
        payload = item.annotation.payload
        if effects is Effects.NONE or payload is None:
            return
        place = self.source.place(payload.start, payload.end)
        if effects is Effects.CERTAIN:
            raise PlanError(
                "the payload has a side effect, but payloads are not captured, so it would not happen",
                place,
                remedy="move the side effect to a statement of its own, or capture payloads (--runtime-payloads)",
            )
        message = "the payload is not captured and is dropped; whether it has a side effect is not known"
        self.warnings.setdefault((message, payload.start), Warning_(message, place))
