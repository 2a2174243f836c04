# SPDX-License-Identifier: Apache-2.0
"""Judge every function of one choice of conditional compilation."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..rewriting.annotation import SiteKind
from ..rewriting.tokens import without_comments
from ..source import Source
from .asynchronous import Helpers
from .effects import Effects, effect_of
from .finding import LintFinding
from .flow import Flow, Undecided
from .graph import build
from .kinds import Kinds
from .lanes import Lanes, Variables
from .macros import definitions, exits_of_macros
from .masking import Masked
from .parsing import Function, Node, functions
from .paths import Effect, Paths, follow
from .rules import ALL, Judged
from .sites import Point, Site
from .steps import Reading
from .unrolling import Unrolling

#: How many helpers may call one another.
_LEVELS = 4
_ENUM = re.compile(r"\benum\b[^{};()]*\{([^{}]*)\}")
_CONSTANT = re.compile(r"\bconstexpr\b[\w\s:]*?\b(\w+)\s*[={]")
_SHARED = re.compile(r"__shared__\s+([^;{}()]*(?:\([^()]*\)[^;{}()]*)?);")
_WORD = re.compile(r"[A-Za-z_]\w*")
#: The body of a function that only returns an expression.
_RETURNED = re.compile(r"\{\s*return\s+([^;{}]*);\s*\}")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^<>;{}()]*>\s*)?\(")


@dataclass(slots=True)
class Choice:
    """What one choice of branches told.

    Attributes:
        found: the findings, each with the point that it is about.
        decided: the points of the functions whose paths were followed.
    """

    found: list[tuple[Point, LintFinding]] = field(default_factory=list)
    decided: set[Point] = field(default_factory=set)

    @property
    def keys(self) -> set[tuple[Point, str]]:
        """Return of each finding its point and its rule."""
        return {(point, finding.id) for point, finding in self.found}


def judge(
    source: Source, text: str, root: Node, sites: Sequence[Site], masked: Masked, kernels: frozenset[int]
) -> Choice:
    """Judge every function.

    Args:
        source: the text.
        text: the masked text of this choice.
        root: its tree.
        sites: the sites that it holds.
        masked: what masking told.
        kernels: the offsets at which the bodies of kernels start.
    """
    return _Judge(source, text, sites, masked, kernels).run(root)


class _Judge:
    """The state of one judgement."""

    def __init__(
        self, source: Source, text: str, sites: Sequence[Site], masked: Masked, kernels: frozenset[int]
    ) -> None:
        self.source, self.text, self.sites, self.masked, self.kernels = source, text, sites, masked, kernels
        self.result = Choice()
        #: By function with lambdas in it, what is known of its variables.
        self.outer: dict[Function, dict[str, Lanes]] = {}
        code = without_comments(source.logical)
        enumerators = (word.partition("=")[0].strip() for body in _ENUM.findall(code) for word in body.split(","))
        self.enumerators = frozenset([*enumerators, *_CONSTANT.findall(code)])
        self.defined = definitions(masked.directives)
        self.exits = exits_of_macros(self.defined)
        self.shared = frozenset(word for one in _SHARED.findall(code) for word in _WORD.findall(one))
        self.includes = [one.start for one in masked.directives if one.word.startswith("include")]
        self.lanes: dict[str, Lanes] = {}
        self.kinds = Kinds(code)
        self.unrolling = Unrolling(text, source.logical, masked)

    def run(self, root: Node) -> Choice:
        found = functions(root, self.text, [site.start for site in self.sites])
        owned = self._owned(found)
        self.lanes = self._lanes_of_names(found)
        bodies = [(one.name, self.source.logical[one.start : one.end]) for one in found]
        self.helpers = Helpers([*bodies, *((macro.name, macro.body) for macro in self.defined)])
        flows = self._followed(found, owned, {}, {})
        helpers = Effects(found, owned, flows, self.text, self.kernels)
        for _ in range(_LEVELS if helpers.known else 0):
            before = helpers
            flows = self._followed(found, owned, helpers.known, helpers.classes)
            helpers = Effects(found, owned, flows, self.text, self.kernels)
            if helpers.shapes == before.shapes:
                break
        called: set[str] = set()
        if helpers.names:
            # Who calls a function that leaves ranges open answers for them.
            for one in found:
                called |= helpers.names & self._called(one)
        own_names = self._own_names(owned)
        for function, (flow, paths) in flows.items():
            kernel = function.start in self.kernels
            answered = function.name in called or (helpers.opposed and function.name in helpers.names)
            whole = kernel or not ((answered or not function.name) and effect_of(paths) is not None)
            names = own_names.get(function, frozenset())
            whole = whole and (kernel or not helpers.is_guard(function))
            apart = not kernel and helpers.has_counterpart(function)
            included = tuple(at for at in self.includes if function.start < at < function.end)
            guessed = bool(included or helpers.unknown & self._called(function))
            judged = Judged(function, flow, paths, self.source.place, whole, names, apart, guessed, included)
            for rule in ALL:
                self.result.found += rule(judged)
            self.result.decided |= flow.around.keys()
        return self.result

    def _owned(self, found: Iterable[Function]) -> dict[Function, list[Site]]:
        """Return the sites of each function; those in no function are told of."""
        owner: dict[Site, Function] = {}
        starts = [site.start for site in self.sites]
        for function in found:
            # Inner functions come behind outer ones.
            first, last = bisect_left(starts, function.start), bisect_left(starts, function.end)
            owner.update(dict.fromkeys(self.sites[first:last], function))
        owned: dict[Function, list[Site]] = {}
        lost = []
        for site in self.sites:
            if site in owner:
                owned.setdefault(owner[site], []).append(site)
            else:
                lost.append(site)
        self._undecided(lost, "the code around it could not be parsed")
        return owned

    def _undecided(self, sites: Sequence[Site], why: str) -> None:
        points = [point for site in sites for point in site.points if point.kind is not SiteKind.MARK]
        if points:
            message = f"whether ranges pair up here was not decided: {why}"
            self.result.found.append((points[0], LintFinding("not-decided", message, points[0].place)))

    def _followed(
        self,
        found: Sequence[Function],
        owned: dict[Function, list[Site]],
        effects: dict[str, Effect],
        classes: dict[str, frozenset[str]],
    ) -> dict[Function, tuple[Flow, Paths]]:
        """Return the graph and the paths of each function that holds a site, or calls one of the functions."""
        followed = {}
        self.result.found = [item for item in self.result.found if item[0] not in self._points(owned)]
        for function in found:
            sites = owned.get(function, [])
            others = {name: effect for name, effect in effects.items() if name != function.name}
            calls = others and others.keys() & self._called(function)
            if not sites and not calls:
                continue
            try:
                if function.faulty:
                    raise Undecided("a part of the function could not be parsed")
                lanes = self._captured(function, found)
                flow = build(function, self._reading(sites, {name: classes[name] for name in others}, lanes))
                followed[function] = (flow, follow(flow, others))
            except Undecided as why:
                self._undecided(sites, str(why))
            except RecursionError:
                self._undecided(sites, "its code nests too deep")
        return followed

    def _lanes_of_names(self, found: Iterable[Function]) -> dict[str, Lanes]:
        """Return the macros and the functions that stand for one expression that is not the same for a warp."""
        bodies = {macro.name: macro.body for macro in self.defined}
        for one in found:
            returned = _RETURNED.match(self.source.logical, one.start, one.end) if one.name else None
            if returned is not None:
                bodies[one.name] = returned.group(1)
        variables = Variables(self.unrolling.value)
        for name, body in bodies.items():
            told = variables.judge(body) if "threadIdx" in body or "lane" in body.lower() else Lanes.UNIFORM
            if told is not Lanes.UNIFORM:
                variables.known[name] = told
        return variables.known

    def _captured(self, function: Function, found: Sequence[Function]) -> dict[str, Lanes]:
        """Return what is known beforehand of the names in a function; a lambda knows what is around it."""
        if function.body.parent.type != "lambda_expression":
            return self.lanes
        around = [one for one in found if one.start < function.start and function.end < one.end]
        if not around or around[-1].faulty:
            return self.lanes
        outer = around[-1]
        if outer not in self.outer:
            self.outer[outer] = self.lanes
            try:
                flow = build(outer, self._reading([], {}, self._captured(outer, found)))
                self.outer[outer] = flow.variables.known
            except (Undecided, RecursionError):
                pass
        return self.outer[outer]

    def _called(self, function: Function) -> set[str]:
        """Return the names that a function calls."""
        return set(_CALLED.findall(self.source.logical, function.start, function.end))

    def _points(self, owned: dict[Function, list[Site]]) -> set[Point]:
        return {point for sites in owned.values() for site in sites for point in site.points}

    def _reading(self, sites: Sequence[Site], effects: dict[str, frozenset[str]], lanes: dict[str, Lanes]) -> Reading:
        return Reading(
            self.text,
            self.source.logical,
            sites,
            self.masked.assembly,
            self.helpers,
            effects,
            self.exits,
            self.enumerators,
            self.unrolling.copies,
            self.unrolling.share,
            self.unrolling.value,
            self.kinds,
            lanes,
            self.shared,
        )

    def _own_names(self, owned: dict[Function, list[Site]]) -> dict[Function, frozenset[str]]:
        """Return, by function, the names of token ranges whose every end stands in it."""
        homes: dict[str, set[Function | None]] = {}
        places = [(function, site) for function, sites in owned.items() for site in sites]
        known = {site for _, site in places}
        for function, site in [*places, *((None, site) for site in self.sites if site not in known)]:
            for point in site.points:
                if point.kind in (SiteKind.START, SiteKind.END) and point.name is not None:
                    homes.setdefault(point.name, set()).add(function)
        ended = {point.name for site in self.sites for point in site.points if point.kind is SiteKind.END}
        result: dict[Function, set[str]] = {}
        for name, found in homes.items():
            home = next(iter(found))
            if len(found) == 1 and home is not None and name in ended:
                result.setdefault(home, set()).add(name)
        return {function: frozenset(names) for function, names in result.items()}
