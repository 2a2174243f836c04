# SPDX-License-Identifier: Apache-2.0
"""Decide once for the whole module: which events there are, their ids, the method, and the form of each site.

Everything that concerns two annotations at a time is checked here.  The plan is frozen; later stages only read it.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from .. import names
from ..abi import EventKind, Method, PayloadType
from ..errors import OptionError, Place, PlanError
from ..source import Source
from .annotation import Annotation, Meaning, Origin, SiteKind, SourcePosition
from .notice import Notice
from .payloads import Effects, SteadyParameters, judge

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
        source: the source; None for the empty plan.
        annotations: the annotations in the order of the text, one for each use of a wrapper macro.
        decisions: what was decided for each.
    """

    method: Method
    events: tuple[Event, ...] = ()
    warnings: tuple[Notice, ...] = ()
    source: Source | None = field(default=None, repr=False)
    annotations: tuple[Annotation, ...] = field(default=(), repr=False)
    decisions: tuple[Decision, ...] = field(default=(), repr=False)

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """The sites in the order of the text; a wrapper macro's uses are its sites."""
        # Places take time, and rewriting needs none.
        if self.source is None:
            return ()
        return tuple(
            Site(
                annotation.kind,
                decision.event,
                self.source.place(annotation.start, annotation.end),
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


def make_plan(
    source: Source,
    annotations: Sequence[Annotation],
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


class _Choice(NamedTuple):
    """What can be decided for annotations of the same letters.

    Attributes:
        effects: whether the payload changes anything.
        varying: what holds where the payload is not known to be uniform.
        steady: what holds where each of its names is a kernel's parameter that keeps its value.
    """

    effects: Effects
    varying: Decision
    steady: Decision


class _Planner:
    def __init__(
        self,
        source: Source,
        annotations: Sequence[Annotation],
        steady: SteadyParameters,
        runtime_payloads: bool | None,
    ) -> None:
        self.source, self.annotations, self.steady = source, annotations, steady
        self.runtime_payloads = runtime_payloads
        self.warnings: dict[tuple[str, int], Notice] = {}
        self.events: dict[tuple[EventKind, str], Event] = {}
        self.choices: dict[Meaning, _Choice] = {}

    def plan(self, method: str) -> Plan:
        groups = self._groups()
        chosen = self._method(method, groups)
        range_ids: dict[int, Annotation] = {}
        for index, (key, group) in enumerate(groups.items()):
            event = self._event(chosen.facts.first_id + index, key[0], group)
            if event.kind is not EventKind.MARK:
                self._check_range_id(range_ids, event, group[0])
            self.events[key] = event
        self._warn_of_pops()
        decisions = tuple([self._decide(item) for item in self.annotations])
        warnings = tuple(self.warnings.values())
        return Plan(chosen, tuple(self.events.values()), warnings, self.source, tuple(self.annotations), decisions)

    def _warn_of_pops(self) -> None:
        """A pop without any push in the text ends a range of somebody else's, if any."""
        kinds = {meaning.kind for meaning in {item.meaning for item in self.annotations}}
        if SiteKind.POP in kinds and not kinds & {SiteKind.PUSH, SiteKind.SCOPE}:
            first = next(item for item in self.annotations if item.kind is SiteKind.POP)
            self._warn("a range is popped here, and none is pushed in this text", first)

    def _groups(self) -> dict[tuple[EventKind, str], list[Annotation]]:
        """Return the annotations of each event, in the order of first appearance.

        Of calls of the same letters the first stands for all: no other can contradict it, or anything else first.
        """
        groups: dict[tuple[EventKind, str], list[Annotation]] = {}
        ranges: dict[str, tuple[EventKind, Annotation]] = {}
        seen: set[Meaning] = set()
        for item in self.annotations:
            meaning = item.meaning
            if item.use is None:
                if meaning in seen:
                    continue
                seen.add(meaning)
            kind = meaning.kind.event
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

    def _clash(self, item: Annotation, first: Annotation, message: str, role: str, remedy: str) -> PlanError:
        return PlanError(message, self._place(item), remedy=remedy, others=((role, self._place(first)),))

    def _place(self, item: Annotation) -> Place:
        return self.source.place(item.start, item.end)

    def _method(self, method: str, groups: dict[tuple[EventKind, str], list[Annotation]]) -> Method:
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

    def _event(self, number: int, kind: EventKind, group: list[Annotation]) -> Event:
        first = group[0]
        name = first.name or ""
        payload = first.payload
        declared = payload.type if payload else None
        captured = self._captured(first)
        color, colored = first.meaning.color, first
        for item in group[1:]:
            other = item.payload
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
            other_color = item.meaning.color
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

    def _payload_clash(self, kind: EventKind, item: Annotation, first: Annotation) -> PlanError:
        def words(one: Annotation) -> str:
            return one.payload.type.name if one.payload else "no payload"

        if kind is EventKind.TOKEN_RANGE and "no payload" in (words(item), words(first)):
            message = f"the token range {item.name!r} has a payload at one end only"
            remedy = "give both ends a payload of one type, or neither"
        else:
            message = f"the event {item.name!r} has two payload types: {words(item)} here, {words(first)} before"
            remedy = "use one type at every place, or another name"
        return self._clash(item, first, message, f"{words(first)} here", remedy)

    def _captured(self, item: Annotation) -> bool:
        if item.payload is None:
            return False
        if self.runtime_payloads is None:
            # TileLang documents capture as opt-in; a payload written by hand, or declared to us, is meant.
            return item.meaning.origin is not Origin.TILELANG
        return self.runtime_payloads

    def _check_range_id(self, seen: dict[int, Annotation], event: Event, item: Annotation) -> None:
        if not event.range_id:
            raise PlanError(
                f"the range {event.name!r} has the range id 0, which means no range",
                self._place(item),
                remedy="rename it: the id is a hash of the name",
            )
        other = seen.setdefault(event.range_id, item)
        if other.name != event.name:
            raise self._clash(
                item,
                other,
                f"the ranges {event.name!r} and {other.name!r} have one range id, {event.range_id:#010x}",
                "the other range",
                "rename one of them: the id is a hash of the name, and these two collide",
            )

    def _warn(self, message: str, item: Annotation) -> None:
        self.warnings.setdefault((message, item.call.start), Notice(message, self._place(item)))

    def _decide(self, item: Annotation) -> Decision:
        choice = self.choices.get(item.meaning) if item.use is None else None
        if choice is None:
            choice = self.choices[item.meaning] = self._choice(item)
        effects, varying, steady = choice
        if effects is not Effects.NONE:
            self._check_effects(item, varying, effects)
        if varying is steady:
            return varying
        kernel = item.at.kernel
        verdict = judge(varying.expression or "", lambda name: self.steady.holds(kernel, name))
        return steady if verdict.uniform else varying

    def _choice(self, item: Annotation) -> _Choice:
        kind, payload = item.kind.event, item.payload
        event = self.events[kind, item.name] if kind is not None and item.name is not None else None
        if payload is None:
            decision = Decision(event)
            return _Choice(Effects.NONE, decision, decision)
        expression = self.source.logical[payload.start : payload.end].strip()
        least, most = judge(expression), judge(expression, lambda name: True)
        constant = least.constant

        def decision_if(uniform: bool) -> Decision:
            form = PayloadForm.UNIFORM if uniform else PayloadForm.ELECTED
            if event is None or event.payload is None:
                form = PayloadForm.UNUSED
            return Decision(event, expression, form, constant, uniform)

        # A macro's parameters stand for anything.
        if item.call.macro is not None or least.uniform is most.uniform:
            decision = decision_if(least.uniform and (constant or item.call.macro is None))
            return _Choice(least.effects, decision, decision)
        return _Choice(least.effects, decision_if(False), decision_if(True))

    def _check_effects(self, item: Annotation, decision: Decision, effects: Effects) -> None:
        if decision.form is PayloadForm.UNUSED:
            self._check_dropped(item, effects)
        elif effects is Effects.CERTAIN:
            self._warn("the payload changes something, and only where events are recorded", item)

    def _check_dropped(self, item: Annotation, effects: Effects) -> None:
        payload = item.payload
        if payload is None:
            return
        place = self.source.place(payload.start, payload.end)
        if effects is Effects.CERTAIN:
            raise PlanError(
                "the payload has a side effect, but payloads are not captured, so it would not happen",
                place,
                remedy="move the side effect to a statement of its own, or capture payloads (--runtime-payloads)",
            )
        message = "the payload is not captured and is dropped; whether it has a side effect is not known"
        self.warnings.setdefault((message, payload.start), Notice(message, place))
