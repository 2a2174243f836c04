# SPDX-License-Identifier: Apache-2.0
"""From the plan to text, by the templates.  The one module that uses Jinja; no CUDA text stands in Python.

Forms are rendered once each, not once per site.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from .. import __version__, abi
from ..abi import PayloadType
from ..source import BOM, Edit, Source
from .annotation import Annotation, Meaning, SiteKind
from .event import Event
from .found import Include
from .metadata import metadata_objects
from .plan import Decision, PayloadForm, Plan

#: C++ type and PTX register class by which each payload's bits reach the record.
_OPERANDS = {"f32": ("float", "f"), "f64": ("double", "d")}
_OPERANDS_BY_BITS = {32: ("unsigned", "r"), 64: ("unsigned long long", "l")}
_GAP = r"(?:[ \t\f\v]|/\*.*?\*/)*"
_INCLUDE_LEAD = re.compile(f"#{_GAP}(?:include|import){_GAP}", re.DOTALL)
#: Marks in a rendered form for what differs from site to site.
_NUMBER, _NAME, _SCOPE = "\0number\0", "\0name\0", "\0scope\0"


def template_folder() -> Path:
    """Return the folder of the templates: inside the installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "templates"
    return inside if inside.is_dir() else package.parent / "templates"


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(template_folder()),
        bytecode_cache=_bytecode_cache(),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


def _bytecode_cache() -> Any:
    """Return where compiled templates are kept: where Python keeps this module's own code, or nowhere."""
    from importlib.util import cache_from_source

    from jinja2 import FileSystemBytecodeCache

    class Cache(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Any) -> None:
            # A full disk is no reason not to rewrite.
            with suppress(OSError):
                super().dump_bytecode(bucket)

    folder = os.path.dirname(cache_from_source(__file__))
    usable = not sys.dont_write_bytecode and os.access(folder, os.W_OK)
    return Cache(folder, "templates-%s.cache") if usable else None


@cache
def _site_templates() -> Any:
    return _environment().get_template("site.cu.j2").module


def rewrite_edits(source: Source, plan: Plan, *, pre_hopper: bool) -> Iterator[Edit]:
    """Return the edits that turn the source into the instrumented one: definitions first, then every annotation."""
    line = _environment().get_template("line.cu.j2").render(path=_line_path(source))
    at = len(BOM) if source.text.startswith(BOM) else 0
    yield Edit(at, at, (definitions(plan, pre_hopper=pre_hopper) + line).replace("\n", source.newline))
    yield from site_edits(source, zip(plan.annotations, plan.decisions, strict=True))


def site_edits(source: Source, decided: Iterable[tuple[Annotation, Decision]]) -> Iterator[Edit]:
    """Return the edits of the annotations that stand in the source."""
    done: set[int] = set()
    known: dict[tuple[Meaning, bool], list[tuple[int, int, str]]] = {}
    for annotation, decision in decided:
        start, meaning = annotation.call.start, annotation.meaning
        if annotation.use is not None:
            if start in done:
                continue
            done.add(start)
        alike = known.get((meaning, decision.uniform))
        if alike is not None:
            for first, last, text in alike:
                yield Edit(start + first, start + last, text)
            continue
        edits = _site_edits(source, annotation, decision)
        yield from edits
        # Calls of the same letters become the same text, but for the number of a scoped range and for line splices.
        if meaning.kind is not SiteKind.SCOPE and not source.spliced:
            known[meaning, decision.uniform] = [(edit.start - start, edit.end - start, edit.text) for edit in edits]


def strip_edits(source: Source, annotations: Iterable[Annotation]) -> list[Edit]:
    """Return the edits that replace every annotation by an empty expression."""
    nothing = str(_site_templates().nothing())
    return [source.edit(item.call.start, item.call.end, nothing) for item in annotations]


def _site_edits(source: Source, annotation: Annotation, decision: Decision) -> list[Edit]:
    event, number = decision.event, decision.event.id if decision.event else abi.ID_POP
    table = name = ""
    if annotation.meaning.pieces and event is not None:
        table, name = event.kind.value, source.logical[slice(*annotation.name_span)]
    # A scoped range declares a variable: numbered by its place, but in a macro's body by where the macro is used.
    scope = ""
    if annotation.kind is SiteKind.SCOPE:
        scope = str(_site_templates().scope(annotation.call.start, annotation.call.macro is not None))
    before, after = _site_text(
        number,
        table,
        name,
        annotation.payload.type.name if annotation.payload else "",
        decision.form.value if decision.form else "",
        scope,
    )
    call, payload = annotation.call, annotation.payload
    if payload is None:
        return [source.edit(call.start, call.end, before + after)]
    return [source.edit(call.start, payload.start, before), source.edit(payload.end, call.end, after)]


def _site_text(number: int, table: str, name: str, type_name: str, form: str, scope: str) -> tuple[str, str]:
    before, after = _site_form(table, type_name, form, bool(scope))
    # The author's text comes last, for it may hold anything.
    return before.replace(_NUMBER, str(number)).replace(_SCOPE, scope).replace(_NAME, name), after


@cache
def _site_form(table: str, type_name: str, form: str, scoped: bool) -> tuple[str, str]:
    """Render what sites have in common, with marks in place of what differs."""
    templates, scope = _site_templates(), _SCOPE if scoped else ""
    return str(templates.before(_NUMBER, table, _NAME, type_name, form, scope)), str(templates.after(scope))


def definitions(plan: Plan, *, pre_hopper: bool) -> str:
    """Return everything that stands before annotated text: the metadata and the forms of the events in use."""
    unused = {decision.event for decision in set(plan.decisions) if decision.form is PayloadForm.UNUSED}
    declared = _types(plan, [event.declared for event in plan.events])
    captured = _types(plan, [event.payload for event in plan.events])
    dropped = _types(plan, [event.declared for event in unused if event])
    operands = {kind["operand"]["constraint"]: kind["operand"] for kind in captured}
    return str(
        _environment()
        .get_template("definitions.cu.j2")
        .render(
            generator=f"iket-rewrite {__version__}",
            method=plan.method.facts,
            events=[_described(event) for event in plan.events],
            digest=plan.digest,
            objects=metadata_objects(plan),
            arches=sorted(abi.ARCHES.values(), key=lambda arch: arch.cuda_arch),
            first_cuda_arch=abi.FIRST_CUDA_ARCH,
            pre_hopper=pre_hopper,
            pre_hopper_offset=abi.PRE_HOPPER_OFFSET,
            cluster_stride=abi.CLUSTER_STRIDE,
            pop_id=abi.ID_POP,
            declared=declared,
            captured=captured,
            dropped=dropped,
            operands=list(operands.values()),
            tables=_tables(plan),
            scoped=any(item.meaning.kind is SiteKind.SCOPE for item in plan.annotations),
        )
    )


def program_definitions(plan: Plan, name: str = "", *, pre_hopper: bool) -> str:
    """Return the header with the definitions that every rewritten file of a program includes.

    Compilers call it by the name, where there is one.
    """
    captured = _types(plan, [event.payload for event in plan.events])
    return str(
        _environment()
        .get_template("program.cu.j2")
        .render(
            definitions=definitions(plan, pre_hopper=pre_hopper),
            digest=plan.digest,
            name=name,
            captured=[kind["name"].upper() for kind in captured],
            declared=[kind["name"].upper() for kind in _types(plan, [event.declared for event in plan.events])],
        )
    )


def copied_lead(source: Source, header: str | None) -> Edit:
    """Return the edit in front of a file of a program.

    It includes the header with the definitions where `header` names one, and gives the file the name and the line
    numbers of its original.
    """
    text = str(_environment().get_template("copied.cu.j2").render(header=header, path=_line_path(source)))
    at = len(BOM) if source.text.startswith(BOM) else 0
    return Edit(at, at, text.replace("\n", source.newline))


def include_edit(source: Source, include: Include, path: str) -> Edit:
    """Return the edit by which an include names another file."""
    lead = _INCLUDE_LEAD.search(source.logical, include.start)
    assert lead is not None
    return source.edit(lead.end(), lead.end() + len(include.name) + 2, f'"{path}"')


def forwarding(path: str) -> str:
    """Return the text of a file that stands for another one."""
    return str(_environment().get_template("forwarding.cu.j2").render(path=path))


def _types(plan: Plan, used: Iterable[PayloadType | None]) -> list[dict[str, Any]]:
    """Return each of the payload types once, in the order of `abi`, with how its bits reach a record."""
    names = {kind.name for kind in used if kind}
    return [{"name": name, "operand": _operand(plan, kind)} for name, kind in abi.PAYLOADS.items() if name in names]


def _operand(plan: Plan, kind: PayloadType) -> dict[str, Any]:
    type_name, constraint = _OPERANDS.get(kind.name) or _OPERANDS_BY_BITS[kind.stored_bits]
    offset = plan.method.facts.payload_offset[kind.stored_bits]
    return {"type": type_name, "constraint": constraint, "bits": kind.stored_bits, "offset": offset}


def _described(event: Event) -> dict[str, Any]:
    # JSON's escapes keep a name on its line, and its closing quote keeps a backslash from joining the next one.
    return {
        "id": event.id,
        "kind": event.kind.value,
        "payload": event.payload.name if event.payload else "-",
        # Two question marks may begin a trigraph, which compilers warn of even in a comment.
        "name": json.dumps(event.name).replace("??", "?\\u003f"),
    }


def _tables(plan: Plan) -> list[dict[str, Any]]:
    """Return, by kind, the names that reach an annotation through a wrapper's parameter, with their ids.

    They are spelled as at the wrapper's use: compilers differ in the bytes that they make of escapes and of u8
    literals, but not from one place to another.
    """
    tables: dict[str, dict[str, int]] = {}
    for annotation, decision in zip(plan.annotations, plan.decisions, strict=True):
        if annotation.spelling and decision.event is not None:
            tables.setdefault(decision.event.kind.value, {})[annotation.spelling] = decision.event.id
    return [
        {"kind": kind, "entries": [{"literal": literal, "id": number} for literal, number in entries.items()]}
        for kind, entries in tables.items()
    ]


def _line_path(source: Source) -> str:
    if not source.named:
        return ""
    return source.path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
