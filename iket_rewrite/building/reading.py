# SPDX-License-Identifier: Apache-2.0
"""The files of a program read with care: their true includes, their order, and what each of them can see.

Only files matter that hold an annotation, use a wrapper macro of another file, or lead to such a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..rewriting.annotation import Annotation
from ..rewriting.core import find, leaves_first_names
from ..rewriting.found import Include, Scan
from ..rewriting.notice import Notice
from ..rewriting.scan import defines, find_includes, holds_metadata
from ..rewriting.wrappers import Wrapped, passed_on, resolve_with, unused, wrappers_of
from ..source import Source
from .reached import Reached, Tree

_NEXT = "an #include_next is followed as if it were an #include"
_BY_MACRO = "a macro names this include's file, which is not followed: annotations in it are lost"


@dataclass(eq=False, slots=True)
class Text:
    """One file that matters.

    Attributes:
        file: the file.
        source: its text.
        found: its includes.
        includes: its includes that lead to files that matter: the include, and where it leads.
        units: the numbers of the translation units that it belongs to.
        scanned: the scan for annotations.
        annotations: its annotations, wrappers' without names.
        named: the annotations with their names, one for each use of a wrapper.
    """

    file: Reached
    source: Source
    found: Sequence[Include]
    includes: list[tuple[Include, Text]] = field(default_factory=list)
    units: set[int] = field(default_factory=set)
    scanned: Scan = field(default_factory=Scan)
    annotations: Sequence[Annotation] = ()
    named: Sequence[Annotation] = ()


class Reading:
    """All files that matter, read.

    Attributes:
        texts: by place, in the order of the program.
        annotations: the annotations in the order of the program, headers at their point of inclusion.
        notices: what the author should know.

    Args:
        tree: the files that may be reached.
        units: the places of the files that each translation unit starts with, in order.
        second_prefix: the header's first names are left to somebody else.
        hints: say which wrappers nothing uses, and which files include each other.

    Raises:
        AnnotationError: an annotation can not be understood.
    """

    def __init__(
        self,
        tree: Tree,
        units: Sequence[Sequence[str]],
        *,
        second_prefix: bool = False,
        hints: bool = True,
    ) -> None:
        self._tree, self._units, self._hints = tree, units, hints
        self._texts: dict[str, Text] = {}
        self._circles: dict[tuple[str, str], Notice] = {}
        self.texts: dict[str, Text] = {}
        self.notices: list[Notice] = []
        self._connect(tree.leading_to(tree.hinted()))
        self._find(second_prefix)
        wrapped = [wrappers_of(text.annotations) for text in self.texts.values()]
        self._connect(tree.leading_to([*tree.hinted(), *self._users({name for one in wrapped for name in one})]))
        self._resolve()
        self.annotations = list(self._ordered())
        self.notices += self._circles.values() if hints else ()

    def _connect(self, places: set[str]) -> None:
        """Read the includes of the files at these places, and see which of the files are really reached."""
        new = [place for place in self._tree.files if place in places and place not in self._texts]
        for place in new:
            file = self._tree.files[place]
            source = Source(file.data, file.path)
            text = self._texts[place] = Text(file, source, find_includes(source))
            for include in text.found:
                said = _NEXT if include.next else _BY_MACRO if not include.name else None
                if said is not None:
                    self.notices.append(Notice(said, source.place(include.start)))
        for text in self._texts.values():
            text.includes = [pair for include in text.found for pair in self._followed(text, include)]
            text.units.clear()
        self.texts = {}
        for number, starts in enumerate(self._units):
            for place in starts:
                if place in self._texts:
                    self._reach(self._texts[place], number)

    def _followed(self, text: Text, include: Include) -> Iterator[tuple[Include, Text]]:
        place = text.file.leads_to.get((include.name, include.angled))
        if place in self._texts:
            yield include, self._texts[place]

    def _reach(self, start: Text, unit: int) -> None:
        waiting = [start]
        while waiting:
            text = waiting.pop()
            if text.file.place in self.texts and unit in text.units:
                continue
            self.texts[text.file.place] = text
            text.units.add(unit)
            waiting += [target for _, target in reversed(text.includes)]

    def _find(self, second_prefix: bool) -> None:
        leaving: set[int] = set()
        for text in self.texts.values():
            if leaves_first_names(text.source):
                leaving |= text.units
        for text in self.texts.values():
            if not text.file.hinted:
                continue
            if holds_metadata(text.source):
                self.notices.append(Notice(f"{text.source.path} is instrumented already and stays as it is"))
                continue
            only_second = second_prefix or bool(leaving & text.units)
            text.scanned, text.annotations = find(text.source, second_prefix=only_second)

    def _users(self, macros: set[str]) -> list[str]:
        """Return the places of the files that may use one of the macros."""
        return [file.place for file in self._tree.files.values() if any(file.holds(name) for name in macros)]

    def _resolve(self) -> None:
        wrapped: Wrapped = {}
        used: set[str] = set()
        of_unit: list[list[tuple[Text, Wrapped]]] = [[] for _ in self._units]
        for text in self.texts.values():
            own = wrappers_of(text.annotations)
            for name, held in own.items():
                wrapped.setdefault(name, []).extend(held)
            for unit in text.units if own else ():
                of_unit[unit].append((text, own))
        for text in self.texts.values():
            visible = self._visible(text, [one for unit in sorted(text.units) for one in of_unit[unit]])
            text.named, found = resolve_with(text.source, text.annotations, visible)
            used |= {use.callee for use in found.calls}
            self.notices += passed_on(text.source, found)
        if self._hints:
            self.notices += unused(wrapped, used, "in this program")

    def _visible(self, text: Text, wrappers: Iterable[tuple[Text, Wrapped]]) -> Wrapped:
        """Return the wrappers that a file can use: those of its translation units, but for names that it defines."""
        visible: Wrapped = {}
        seen: set[int] = set()
        for home, own in wrappers:
            if id(home) in seen:
                continue
            seen.add(id(home))
            for name, held in own.items():
                if text.source.holds(name) and (home is text or not defines(text.source, name)):
                    visible.setdefault(name, []).extend(held)
        return visible

    def _ordered(self) -> Iterator[Annotation]:
        done: set[Text] = set()
        for starts in self._units:
            for place in starts:
                if place in self.texts:
                    yield from self._annotations_of(self.texts[place], done, ())

    def _annotations_of(self, text: Text, done: set[Text], path: tuple[Text, ...]) -> Iterator[Annotation]:
        if text in path:
            self._note_circle(path[path.index(text) :])
        if text in done:
            return
        done.add(text)
        waiting = list(text.includes)
        for annotation in text.named:
            while waiting and waiting[0][0].start < annotation.start:
                yield from self._annotations_of(waiting.pop(0)[1], done, (*path, text))
            yield annotation
        for _, target in waiting:
            yield from self._annotations_of(target, done, (*path, text))

    def _note_circle(self, circle: tuple[Text, ...]) -> None:
        names = " -> ".join(text.source.path for text in (*circle, circle[0]))
        key = min(text.file.place for text in circle), str(len(circle))
        include = next(include for include, target in circle[-1].includes if target is circle[0])
        self._circles.setdefault(
            key, Notice(f"files include each other: {names}", circle[-1].source.place(include.start))
        )
