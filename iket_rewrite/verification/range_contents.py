# SPDX-License-Identifier: Apache-2.0
"""Describe what lies between the ends of a function's ranges: counts by class, a label, lines, what is not known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from ..metadata_records import EventRecord
from .between import Region, regions
from .comparison import RangeContent
from .flow import Flow
from .instruction_classes import NEVER, InstructionClass, classify
from .range_labels import label_of
from .records import TRIGGER, Record

#: Matrix products that are done when the next instruction reads them: all but wgmma and tcgen05.
_COMPLETES = re.compile(r"[HIDQOB]MMA")


def range_contents(
    flow: Flow, records: tuple[Record, ...], events: Mapping[int, EventRecord], own: frozenset[int]
) -> tuple[list[RangeContent], str]:
    """Return what every range of a function holds, and why paths could not be followed to their end, or "".

    Args:
        flow: the function.
        records: its events.
        events: the declared events by id.
        own: the instructions that only events need.
    """
    found, undecided = regions(flow, records, {event.id: event.kind for event in events.values()})
    ours = _definition_files(flow)
    return [_content(flow, region, events[region.event], own, ours) for region in found], undecided


def _content(flow: Flow, region: Region, event: EventRecord, own: frozenset[int], ours: set[str]) -> RangeContent:
    code = flow.instructions
    inside = sorted(region.inside - own)
    counts = _counts(flow, inside)
    start = code[region.start]
    place = next((frame for frame in start.chain if frame[0] not in ours), None)
    return RangeContent(
        name=event.name,
        id=event.id,
        kind=event.kind.value,
        address=start.address,
        source=place[0] if place else start.file or None,
        line=place[1] if place else start.line or None,
        ends=tuple(code[index].address for index in sorted(region.ends)),
        label=label_of(counts, completes=any(_COMPLETES.match(code[index].opcode) for index in inside)).value,
        inside=_named(counts),
        own=_named(_counts(flow, region.own - own)),
        loops=_loops(flow, region),
        branches=_branches(flow, region, inside),
        calls=any(code[index].opcode.startswith("CALL") for index in inside),
        lines=_lines(flow, inside, start.chain[start.chain.index(place) :] if place else ()),
    )


def _counts(flow: Flow, indices: Iterable[int]) -> Counter[InstructionClass]:
    code = flow.instructions
    return Counter(classify(code[index]) for index in indices if code[index].opcode != "NOP")


def _named(counts: Counter[InstructionClass]) -> dict[str, int]:
    return {one.value: counts[one] for one in InstructionClass if counts[one]}


def _loops(flow: Flow, region: Region) -> bool:
    """Say whether a jump inside leads around to itself without leaving the range."""
    successors = {}
    for number, block in enumerate(flow.blocks):
        if block.end - 1 in region.inside:
            # The range can begin and end in a block: only what is open from its last to the next one's first counts.
            successors[number] = [next_ for next_ in block.successors if flow.blocks[next_].start in region.inside]
    done: set[int] = set()
    for first in successors:
        if first in done:
            continue
        on_path: set[int] = set()
        stack = [(first, False)]
        while stack:
            number, leaving = stack.pop()
            if leaving:
                on_path.discard(number)
                done.add(number)
            elif number in on_path:
                continue
            elif number not in done:
                on_path.add(number)
                stack.append((number, True))
                for successor in successors.get(number, ()):
                    if successor in on_path:
                        return True
                    stack.append((successor, False))
    return False


def _branches(flow: Flow, region: Region, inside: list[int]) -> bool:
    """Say whether some instruction inside is not run each time the range is."""
    if any(flow.instructions[index].predicate not in ("", *NEVER) for index in inside):
        return True
    return any(
        len(block.successors) > 1 and block.end - 1 in region.inside
        for block in flow.blocks
        # What an election in divergent code jumps to is no path of the kernel's.
        if not flow.instructions[block.end - 1].opcode.startswith("BRA.DIV")
    )


def _definition_files(flow: Flow) -> set[str]:
    """Return the files in which events are defined: triggers are inlined from there, and no kernel stands in them."""
    code = flow.instructions
    return {one.inlined[0][0] for one in code if one.opcode.startswith(TRIGGER) and one.inlined} - {
        one.file for one in code
    }


def _lines(flow: Flow, inside: list[int], start: tuple[tuple[str, int], ...]) -> dict[str, tuple[int, ...]]:
    """Return the lines of a range's instructions, in the function that its start stands in where they have one there.

    Args:
        flow: the function.
        inside: the instructions.
        start: the positions of the range's start, from its own line on.
    """
    found: dict[str, set[int]] = {}
    for index in inside:
        one = flow.instructions[index]
        if one.line and classify(one) is not InstructionClass.CONTROL:
            chain = one.chain
            file, line = chain[max(0, len(chain) - max(1, len(start)))]
            found.setdefault(file, set()).add(line)
    return {file: tuple(sorted(lines)) for file, lines in sorted(found.items())}
