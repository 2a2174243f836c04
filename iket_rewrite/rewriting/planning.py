# SPDX-License-Identifier: Apache-2.0
"""Decide once for the whole module: which events there are, their ids, the method, and the form of each site.

Everything that concerns two annotations at a time is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .. import names
from ..abi import EventKind, Method
from ..errors import OptionError, PlanError
from ..source import Source
from .annotation import Annotation, Meaning, Origin, SiteKind
from .event import NOTHING_KEPT, Event, KeptPlan
from .notice import Notice
from .parameters import SteadyParameters
from .payloads import Effects, judge
from .plan import Decision, PayloadForm, Plan

METHODS = ("auto", *(method.value for method in Method))


def make_plan(
    annotations: Sequence[Annotation],
    steady: Mapping[Source, SteadyParameters],
    *,
    method: str = "auto",
    runtime_payloads: bool | None = None,
    kept: KeptPlan = NOTHING_KEPT,
) -> Plan:
    """Decide everything about the module.

    Args:
        annotations: in the order of the text, or of the program's texts.
        steady: for each text, knows which parameters of kernels keep their value.
        method: "auto", "native" or "extended".
        runtime_payloads: whether payloads are captured; None leaves it to each kind of annotation.
        kept: what an earlier plan has fixed.

    Raises:
        PlanError: annotations contradict each other, or exceed the method.
        OptionError: the method is unknown.
    """
    return _Planner(annotations, steady, runtime_payloads, kept).plan(method)


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
        annotations: Sequence[Annotation],
        steady: Mapping[Source, SteadyParameters],
        runtime_payloads: bool | None,
        kept: KeptPlan,
    ) -> None:
        self.annotations, self.steady = annotations, steady
        self.runtime_payloads, self.kept = runtime_payloads, kept
        self.warnings: dict[tuple[str, object, int], Notice] = {}
        self.events: dict[tuple[EventKind, str], Event] = {}
        self.choices: dict[Meaning, _Choice] = {}

    def plan(self, method: str) -> Plan:
        groups = self._groups()
        chosen = self._method(method, groups)
        self.events = {event.key: event for event in self.kept.events}
        number = self.kept.next_id()
        for key, group in groups.items():
            known = self.events.get(key)
            event = self._event(known.id if known else number, key[0], group)
            self.events[key] = event if known is None else self._kept(known, event, group)
            number += known is None
        self._check_range_ids(groups)
        self._warn_of_pops()
        decisions = tuple([self._decide(item) for item in self.annotations])
        warnings = tuple(self.warnings.values())
        return Plan(chosen, tuple(self.events.values()), warnings, tuple(self.annotations), decisions)

    def _warn_of_pops(self) -> None:
        """A pop without any push in the text ends a range of somebody else's, if any."""
        kinds = {meaning.kind for meaning in {item.meaning for item in self.annotations}}
        if SiteKind.POP in kinds and not kinds & {SiteKind.PUSH, SiteKind.SCOPE}:
            first = next(item for item in self.annotations if item.kind is SiteKind.POP)
            self._warn("a range is popped here, and none is pushed in this text", first, "pop-without-push")

    def _groups(self) -> dict[tuple[EventKind, str], list[Annotation]]:
        """Return the annotations of each event, in the order of first appearance.

        Of calls of the same letters the first stands for all: no other can contradict it, or anything else first.
        """
        groups: dict[tuple[EventKind, str], list[Annotation]] = {}
        ranges: dict[str, tuple[EventKind, Annotation]] = {}
        kept = {event.name: event.kind for event in self.kept.events if event.kind is not EventKind.MARK}
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
                if kept.get(item.name, kind) is not kind:
                    raise self._against_kept(f"{item.name!r} is the other kind of range", item)
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
        return PlanError(message, item.place, remedy=remedy, others=((role, first.place),))

    def _against_kept(self, message: str, item: Annotation) -> PlanError:
        remedy = "make the annotation agree with the plan file, or remove the event from it and rewrite what shares it"
        return PlanError(f"{message} in {self.kept.path}", item.place, remedy=remedy)

    def _kept(self, known: Event, event: Event, group: list[Annotation]) -> Event:
        """Return the event that the plan file has fixed, once it is seen that the annotations agree with it."""

        def words(one: Event) -> str:
            return f"the payload {one.declared.name if one.declared else 'none'}" + (
                "" if one.payload is one.declared else ", not captured"
            )

        if (known.declared, known.payload) != (event.declared, event.payload):
            raise self._against_kept(f"{event.name!r} has {words(event)} here, and {words(known)}", group[0])
        if event.color is not None and known.color != event.color:
            raise self._against_kept(f"{event.name!r} has another colour", group[0])
        return known

    def _method(self, method: str, groups: dict[tuple[EventKind, str], list[Annotation]]) -> Method:
        if method not in METHODS:
            raise OptionError(f"unknown method {method!r}", remedy=f"choose one of {', '.join(METHODS)}")
        known = {event.key for event in self.kept.events}
        fresh = [group for key, group in groups.items() if key not in known]
        chosen = self.kept.method if method == "auto" else Method(method)
        if method == "auto" and not self.kept.has_room_for(len(fresh)):
            chosen = Method.EXTENDED
        self._keep_method(chosen, fresh)
        first, capacity = chosen.facts.first_id, chosen.facts.capacity
        if not self.kept.has_room_for(len(fresh)):
            excess = fresh[first + capacity - self.kept.next_id()][0]
            remedy = "use fewer distinct names, or put what differs into a payload"
            if chosen is Method.NATIVE:
                remedy = "choose the method auto or extended, or use fewer distinct names"
            raise PlanError(
                f"{self.kept.next_id() - first + len(fresh)} events, but {chosen.facts.title} has room for {capacity}; "
                "this is the first too many",
                excess.place,
                remedy=remedy,
            )
        return chosen

    def _keep_method(self, chosen: Method, fresh: list[list[Annotation]]) -> None:
        """Bring what the plan file has fixed into the chosen method, if it may change."""
        kept = self.kept
        if kept.closed and fresh:
            item = fresh[0][0]
            raise PlanError(
                f"the event {item.name!r} is not in {kept.path}",
                item.place,
                remedy=f"add it for all sources that share the plan: iket-rewrite --plan {kept.path} SOURCES...",
            )
        if kept.events and chosen is not kept.method:
            message = f"{kept.path} is of {kept.method.facts.title}, and this needs {chosen.facts.title}"
            if kept.closed:
                raise OptionError(message, remedy=f"leave the method to {kept.path}")
            notice = Notice(f"{message}: every id is new, so rewrite everything that shares the plan")
            self.warnings[notice.message, None, 0] = notice
        self.kept = kept.of_method(chosen)

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
            self._warn("a mark has no colour in the runtime's records; the event table keeps it", colored, "mark-color")
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

    def _check_range_ids(self, groups: dict[tuple[EventKind, str], list[Annotation]]) -> None:
        seen = {event.range_id: event for event in self.kept.events}
        for key, group in groups.items():
            event, item = self.events[key], group[0]
            if event.kind is EventKind.MARK:
                continue
            if not event.range_id:
                raise PlanError(
                    f"the range {event.name!r} has the range id 0, which means no range",
                    item.place,
                    remedy="rename it: the id is a hash of the name",
                )
            other = seen.setdefault(event.range_id, event)
            if other.name == event.name:
                continue
            message = f"the ranges {event.name!r} and {other.name!r} have one range id, {event.range_id:#010x}"
            if other.key not in groups:
                raise self._against_kept(message, item)
            remedy = "rename one of them: the id is a hash of the name, and these two collide"
            raise self._clash(item, groups[other.key][0], message, "the other range", remedy)

    def _warn(self, message: str, item: Annotation, slug: str) -> None:
        key = message, item.call.source, item.call.start
        self.warnings.setdefault(key, Notice(message, item.place, slug))

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
        parameters = self.steady[item.call.source]
        verdict = judge(varying.expression or "", lambda name: parameters.holds(kernel, name))
        return steady if verdict.uniform else varying

    def _choice(self, item: Annotation) -> _Choice:
        kind, payload = item.kind.event, item.payload
        event = self.events[kind, item.name] if kind is not None and item.name is not None else None
        if payload is None:
            decision = Decision(event)
            return _Choice(Effects.NONE, decision, decision)
        expression = item.call.source.logical[payload.start : payload.end].strip()
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
            self._warn("the payload changes something, and only where events are recorded", item, "payload-effect")

    def _check_dropped(self, item: Annotation, effects: Effects) -> None:
        payload = item.payload
        if payload is None:
            return
        source = item.call.source
        place = source.place(payload.start, payload.end)
        if effects is Effects.CERTAIN:
            raise PlanError(
                "the payload has a side effect, but payloads are not captured, so it would not happen",
                place,
                remedy="move the side effect to a statement of its own, or capture payloads (--runtime-payloads)",
            )
        message = "the payload is not captured and is dropped; whether it has a side effect is not known"
        self.warnings.setdefault((message, source, payload.start), Notice(message, place, "payload-dropped"))
