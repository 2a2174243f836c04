# SPDX-License-Identifier: Apache-2.0
"""A program: sources and the headers that they include, planned together and rewritten into an overlay."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from ..errors import OptionError
from ..rewriting import scopes
from ..rewriting.annotation import Annotation
from ..rewriting.core import check_options, find
from ..rewriting.event import NOTHING_KEPT, KeptPlan
from ..rewriting.notice import Notice
from ..rewriting.parameters import SteadyParameters, macro_words
from ..rewriting.plan import EMPTY, Decision, Plan
from ..rewriting.planning import make_plan
from ..rewriting.render import copied_lead, forwarding, include_edit, program_definitions, site_edits
from ..rewriting.scan import holds_metadata
from ..source import Source, splice
from .layout import NO_FOLDERS, Copy, IncludeFolders, Layout, quoted_folders
from .plan_file import load_plan, plan_bytes
from .reached import Tree, read
from .reading import Reading, Text
from .search import Search

#: The header with the definitions, at the overlay's top.
DEFINITIONS = "iket-rewrite-definitions.cuh"
_NOT_PLANNED = "its events are not in the plan"
_HEADERS = (".cuh", ".h", ".hpp", ".hh", ".hxx", ".h++", ".inl", ".inc", ".ipp", ".tpp")


@dataclass(frozen=True)
class Settings:
    """How a program is rewritten.

    Attributes:
        target, runtime_payloads, method, pre_hopper: those of `rewrite`.
        second_prefix: the header's first names are left to somebody else.
        hints: wrappers that nothing uses are worth a warning, and files that include each other.
        kept: what a plan file has fixed.
        name: what compilers call the header with the definitions, where it does not stay.
    """

    target: str | None = None
    runtime_payloads: bool | None = None
    method: str = "auto"
    pre_hopper: str = "off"
    second_prefix: bool = False
    hints: bool = True
    kept: KeptPlan = NOTHING_KEPT
    name: str = ""


@dataclass(frozen=True)
class Program:
    """What `rewrite_program` made.

    Attributes:
        plan: the method, the events with their ids, and the sites.
        sources: the sources as they were given.
        copies: the files of the overlay; none where nothing is annotated.
        folders: where a compiler has to look.
        warnings: what the author should know.
        kept: the plan file that was given, with what it had fixed before.
    """

    plan: Plan
    sources: tuple[str, ...]
    copies: tuple[Copy, ...] = ()
    folders: IncludeFolders = field(default=NO_FOLDERS, repr=False)
    warnings: tuple[Notice, ...] = ()
    kept: KeptPlan = field(default=NOTHING_KEPT, repr=False)

    @property
    def changed(self) -> bool:
        """Say whether anything is annotated."""
        return bool(self.copies)

    @property
    def plan_changed(self) -> bool:
        """Say whether the plan file is not what it was when it was given."""
        return bool(self.kept.path) and self.plan.events != self.kept.events

    def copy_of(self, source: str) -> str | None:
        """Return where the copy of a file lies inside the overlay; None where the original serves."""
        return next((copy.path for copy in self.copies if copy.original == source), None)

    def options(self, overlay: str) -> list[str]:
        """Return the options by which nvcc finds the overlay's files, and the originals behind them."""
        result, last = quoted_folders(self.folders.quoted)
        for inside, folder in self.folders.pairs:
            if inside is not None:
                result.append(f"-I{os.path.normpath(os.path.join(overlay, inside))}")
            result.append(f"-I{folder}")
        return result + last

    @property
    def annotated(self) -> tuple[str, ...]:
        """Return the files in which annotations stand, in the order of the program."""
        return tuple(dict.fromkeys(item.at.source.path for item in self.plan.annotations))

    def differences(self, output: str | os.PathLike[str]) -> list[str]:
        """Return the paths of what `write` would change on the disk."""
        from .writing import differences

        changed = differences(self.copies, os.fspath(output), self.options(os.fspath(output)))
        return [*changed, *([self.kept.path] if self.plan_changed else [])]

    def write_plan(self) -> None:
        """Write the plan file, where there is one and it has changed."""
        from .writing import write_file

        if self.plan_changed:
            write_file(self.kept.path, plan_bytes(self.plan))

    def write(self, output: str | os.PathLike[str]) -> None:
        """Write the overlay as a folder, whole or not at all, and the plan file, where there is one.

        Raises:
            OptionError: it can not be written, or the folder is something else.
        """
        from .writing import write_overlay

        files = [] if not self.plan_changed else [(self.kept.path, plan_bytes(self.plan))]
        write_overlay(self.copies, os.fspath(output), self.options(os.fspath(output)), files)


def rewrite_program(
    paths: Iterable[str | os.PathLike[str]],
    *,
    include_dirs: Iterable[str | os.PathLike[str]] = (),
    plan: str | os.PathLike[str] | None = None,
    target: str | None = None,
    runtime_payloads: bool | None = None,
    method: str = "auto",
    pre_hopper: str = "off",
) -> Program:
    """Rewrite sources together with the annotated headers that they include.

    Args:
        paths: the sources.  A header may be among them; it must be included by one of the others.
        include_dirs: where includes are looked for, in order, as with -I.  The system's and the toolkit's headers are
            left alone.
        plan: a plan file, whose events keep their ids.  `Program.write` adds the new ones.
        target: an architecture such as "sm_90a", for warnings only.
        runtime_payloads: whether events record their payloads; see `rewrite`.
        method: "auto", "native" or "extended"; see `rewrite`.
        pre_hopper: "off" or "rank0"; see `rewrite`.

    Returns:
        The program: one plan over all files, and the copies that make the overlay.

    Raises:
        AnnotationError: an annotation can not be understood.
        PlanError: annotations contradict each other, or the plan file.
        OptionError: an option is unknown, a file can not be read, or an annotated header is not included.
    """
    names = tuple(os.fspath(path) for path in paths)
    folders = [os.fspath(folder) for folder in include_dirs]
    for folder in folders:
        if not os.path.isdir(folder):
            raise OptionError(f"{folder}: is no folder", remedy="name the folders of the headers with -I")
    kept = load_plan(os.fspath(plan)) if plan is not None else NOTHING_KEPT
    settings = Settings(target, runtime_payloads, method, pre_hopper, kept=kept)
    tree = Tree(Search((), folders))
    sources = [path for path in names if not path.lower().endswith(_HEADERS)] or list(names)
    units = [(tree.add(path),) for path in sources]
    headers = [(path, tree.add(path)) for path in names if path not in sources]
    program, reading = program_of(tree, units, tuple(sources), settings)
    for path, place in headers:
        if place not in reading.texts and find(Source(tree.files[place].data, path))[1]:
            raise OptionError(
                f"{path} is annotated, and none of the sources includes it",
                remedy="name the source that includes it, or the folder where the include finds it with -I",
            )
    lone = _lone_headers(tree, reading, folders)
    return replace(program, warnings=program.warnings + lone) if lone else program


def _lone_headers(tree: Tree, reading: Reading, folders: Iterable[str]) -> tuple[Notice, ...]:
    """Return what to say of annotated headers that lie in a named folder and are not included."""
    notices = []
    for folder in dict.fromkeys(folders):
        if tree.search.is_foreign(folder):
            continue
        for name in sorted(name for name in os.listdir(folder) if name.lower().endswith(_HEADERS)):
            path = os.path.join(folder, name)
            place = tree.search.place(path)
            if place in tree.aliases or place in reading.texts or not os.path.isfile(path):
                continue
            source = Source(read(path)[0], path)
            if not holds_metadata(source) and find(source)[1]:
                notices.append(Notice(f"{path} is annotated, and none of the sources includes it: {_NOT_PLANNED}"))
    return tuple(notices)


def program_of(
    tree: Tree, units: Sequence[Sequence[str]], sources: tuple[str, ...], settings: Settings
) -> tuple[Program, Reading]:
    """Rewrite a program whose files were found; return what was read too.

    Args:
        tree: the files.
        units: the places of the files that each translation unit starts with, in order.
        sources: the sources as they were given.
        settings: how to rewrite.
    """
    notices = check_options(settings.method, settings.pre_hopper, settings.target)
    reading = Reading(tree, units, second_prefix=settings.second_prefix, hints=settings.hints)
    notices = *(notices if reading.annotations else ()), *reading.notices, *_second_names(tree, reading)
    if not reading.annotations and not settings.kept.events:
        return Program(EMPTY, sources, warnings=notices, kept=settings.kept), reading
    scopes.check(reading.annotations)
    plan = make_plan(
        reading.annotations,
        _steady(tree, reading.texts.values()),
        method=settings.method,
        runtime_payloads=settings.runtime_payloads,
        kept=settings.kept,
    )
    copies, folders = _Overlay(tree, units, reading, plan, settings).made()
    return Program(plan, sources, copies, folders, notices + plan.warnings, settings.kept), reading


def _steady(tree: Tree, texts: Iterable[Text]) -> dict[Source, SteadyParameters]:
    @cache
    def elsewhere() -> frozenset[str]:
        return macro_words(Source(file.data).logical for file in tree.files.values() if file.holds("define"))

    return {text.source: SteadyParameters(text.source.logical, text.scanned.kernel_ends, elsewhere) for text in texts}


def _second_names(tree: Tree, reading: Reading) -> list[Notice]:
    return [
        Notice(f"{alias} and {first} are one file, which is included under two names; its annotations count once")
        for alias, first in tree.aliases.items()
        if first in reading.texts and reading.texts[first].named
    ]


class _Overlay:
    """The copies of a program."""

    def __init__(
        self, tree: Tree, units: Sequence[Sequence[str]], reading: Reading, plan: Plan, settings: Settings
    ) -> None:
        self.plan, self.settings = plan, settings
        self.decided: dict[Source, list[tuple[Annotation, Decision]]] = {}
        for annotation, decision in zip(plan.annotations, plan.decisions, strict=True):
            self.decided.setdefault(annotation.call.source, []).append((annotation, decision))
        copied = _leading_to(reading.texts, self.decided)
        self.layout = Layout(copied, tree.aliases, tree.search, [unit[-1] for unit in units]) if copied else None

    def made(self) -> tuple[tuple[Copy, ...], IncludeFolders]:
        """Return the copies and the folders to look into."""
        if self.layout is None:
            return (), NO_FOLDERS
        layout = self.layout
        header = program_definitions(self.plan, self.settings.name, pre_hopper=self.settings.pre_hopper == "rank0")
        copies = [Copy("", DEFINITIONS, header.encode("utf-8", "surrogateescape"))]
        copies += [self._copy(text) for text in layout.copied.values()]
        for alias, first in layout.aliases.items():
            link = os.path.relpath(first, os.path.dirname(alias))
            copies.append(Copy(layout.copied[first].file.path, layout.relative(alias), link=link))
        for place, target in layout.forwarded.items():
            data = forwarding(layout.search.place(target)).encode("utf-8", "surrogateescape")
            copies.append(Copy(target, layout.relative(place), data))
        return tuple(copies), layout.folders

    def _copy(self, text: Text) -> Copy:
        assert self.layout is not None
        path, source = self.layout.relative(text.file.place), text.source
        decided = self.decided.get(source)
        header = os.path.relpath(DEFINITIONS, os.path.dirname(path)) if decided else None
        edits = [copied_lead(source, header), *site_edits(source, decided or ())]
        for include in text.found:
            name = self.layout.renamed.get((text.file.place, include))
            if name is not None:
                edits.append(include_edit(source, include, name))
        data = splice(source.text, edits).encode("utf-8", "surrogateescape")
        return Copy(source.path, path, data)


def _leading_to(texts: dict[str, Text], annotated: Iterable[Source]) -> dict[str, Text]:
    """Return the annotated files and those from which one is reached, by place, in the order of the program."""
    wanted = set(annotated)
    found = {place for place, text in texts.items() if text.source in wanted}
    grown = True
    while grown:
        more = {
            place
            for place, text in texts.items()
            if place not in found and any(target.file.place in found for _, target in text.includes)
        }
        found |= more
        grown = bool(more)
    return {place: text for place, text in texts.items() if place in found}
