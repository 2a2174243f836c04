# SPDX-License-Identifier: Apache-2.0
"""Draw random programs whose events are determined: a seed gives the same module everywhere.

What keeps them determined: lanes part only where one arm has events, or both have marks; a warp comes together again
before the next event; jumps close what they leave open; a token range is not opened twice.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from generated import language as L
from generated.interpreting import TooMany, run_block

PAYLOADS = ("bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64", "pointer")
WORDS = ("load", "compute", "store", "étape", "wait for data", "a/b", 'q"uote', "back\\slash", "µs", "x::y<int, 2>")
#: More events than this in one warp make a program too long to be of use.
LONGEST = 160
_PER_MODULE = 10


@dataclass
class Room:
    """What may stand at a place of the program.

    Attributes:
        counters: names of the loops' counters that values may use.
        depth: how deep bodies are nested.
        pushed: how many push/pop ranges are open since the function began, and in each loop around the place.
        tokens: the open token ranges, by the same.
        divided: only some lanes may be here: no meeting of lanes, no jumps.
        marks_only: another arm has events at the same time.
        called: this is another function than the kernel.
    """

    counters: tuple[str, ...] = ()
    depth: int = 0
    pushed: tuple[int, ...] = (0,)
    tokens: tuple[tuple[L.Event, ...], ...] = ((),)
    divided: bool = False
    marks_only: bool = False
    called: bool = False

    def inside(self, **changes: Any) -> Room:
        return replace(self, depth=self.depth + 1, **changes)


@dataclass
class Maker:
    """Draws the programs of one module."""

    random: random.Random
    events: tuple[L.Event, ...]
    functions: int = 0
    names: dict[str, list[L.Event]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for event in self.events:
            self.names.setdefault(event.kind, []).append(event)

    # --- Values -----------------------------------------------------------------------------------------------

    def value(self, room: Room, depth: int = 2, *, uniform: bool = False) -> L.Value:
        """Draw a value; a uniform one is the same in all lanes of a warp."""
        if depth and self.random.random() < 0.7:
            operator = self.random.choice(("+", "-", "*", "^", "&", "|", ">>"))
            right = (
                L.Value("number", (self.random.randrange(1, 20),))
                if operator == ">>"
                else self.value(room, depth - 1, uniform=uniform)
            )
            return L.Value(operator, (self.value(room, depth - 1, uniform=uniform), right))
        leaves = ["warp", "block", "n", *room.counters] + ([] if uniform else ["acc", "acc", "lane"])
        if self.random.random() < 0.25:
            return L.Value("number", (self.random.choice((0, 1, 2, 3, 5, 77, 40_503, 0x80000000, 0xFFFFFFFF)),))
        return L.Value("name", (self.random.choice(leaves),))

    def condition(self, room: Room, *, uniform: bool) -> L.Value:
        """Draw a condition."""
        if not uniform and self.random.random() < 0.5:
            return L.Value("<", (L.Value("name", ("lane",)), L.Value("number", (self.random.randrange(0, 34),))))
        bits = L.Value("&", (self.value(room, 1, uniform=uniform), L.Value("number", (self.random.randrange(1, 8),))))
        return L.Value("<", (bits, L.Value("number", (self.random.randrange(1, 5),))))

    def site(self, room: Room, event: L.Event) -> L.Site:
        """Draw what stands at a site of an event."""
        if event.payload is None:
            return L.Site(event, None)
        choice = self.random.random()
        if choice < 0.15:
            return L.Site(event, L.Value("number", (self.random.randrange(0, 2000),)))
        if choice < 0.3:
            # What the rewriter knows to be the same in every lane.
            return L.Site(event, L.Value("+", (L.Value("name", ("blockIdx.x",)), L.Value("name", ("n",)))))
        return L.Site(event, self.value(room))

    # --- Bodies -----------------------------------------------------------------------------------------------

    def body(self, room: Room, *, loop: bool = False) -> tuple[Any, ...]:
        """Draw a body that closes what it opens."""
        if loop:
            room = replace(room, pushed=(*room.pushed, 0), tokens=(*room.tokens, ()))
        inside = room.inside()
        opened: list[L.Event | None] = []
        out: list[Any] = []
        for _ in range(self.random.randrange(1, 6 if room.depth < 2 else 4)):
            out += self.statement(inside, opened)
        while opened:
            out += self.close(inside, opened, len(opened) - 1)
        if self.random.random() < 0.2:
            out += self.jump(inside)
        return tuple(out)

    def statement(self, room: Room, opened: list[L.Event | None]) -> list[Any]:
        """Draw the next statement; `opened` are the ranges that the body has open, None for a push/pop range."""
        choices = [self.mark, self.mark, self.work, self.work]
        if not room.marks_only:
            choices += [lambda here: self.open(here, opened), self.scoped]
            if opened:
                choices += [lambda here: self.close(here, opened, self.random.randrange(len(opened)))] * 2
        if room.depth < 4:
            choices += [self.branch, self.loop, self.switch]
            if not room.divided:
                choices += [self.divide, self.divide, self.diverging_loop, self.exchange]
        if room.depth < 3 and not room.divided and not room.called:
            choices += [self.call, self.lanes_return]
        return self.random.choice(choices)(room)

    def mark(self, room: Room) -> list[Any]:
        return [L.Mark(self.site(room, self.random.choice(self.names["mark"])))]

    def work(self, room: Room) -> list[Any]:
        if self.random.random() < 0.4:
            return [L.Load(self.value(room, 1))]
        return [
            L.Mix(L.Value("+", (L.Value("*", (L.Value("name", ("acc",)), _odd(self.random))), self.value(room, 1))))
        ]

    def exchange(self, room: Room) -> list[Any]:
        return [L.Exchange(self.random.choice((1, 2, 4, 8, 16, 31)))]

    def open(self, room: Room, opened: list[L.Event | None]) -> list[Any]:
        free = [one for one in self.names["token_range"] if not any(one in level for level in room.tokens)]
        if free and self.random.random() < 0.4:
            event = self.random.choice(free)
            opened.append(event)
            room.tokens = (*room.tokens[:-1], (*room.tokens[-1], event))
            return [L.Start(self.site(room, event))]
        opened.append(None)
        room.pushed = (*room.pushed[:-1], room.pushed[-1] + 1)
        return [L.Push(self.site(room, self.random.choice(self.names["range"])))]

    def close(self, room: Room, opened: list[L.Event | None], index: int) -> list[Any]:
        event = opened.pop(index)
        if event is None:
            room.pushed = (*room.pushed[:-1], room.pushed[-1] - 1)
            return [L.Pop(self.random.choice(("macro", "token")))]
        room.tokens = (*room.tokens[:-1], tuple(one for one in room.tokens[-1] if one is not event))
        return [L.End(self.site(room, event))]

    def scoped(self, room: Room) -> list[Any]:
        return [L.Scoped(self.site(room, self.random.choice(self.names["range"])), self.body(room))]

    def branch(self, room: Room) -> list[Any]:
        otherwise = self.body(room) if self.random.random() < 0.5 else ()
        return [L.If(self.condition(room, uniform=True), self.body(room), otherwise)]

    def divide(self, room: Room) -> list[Any]:
        condition = self.condition(room, uniform=False)
        if self.random.random() < 0.4:
            arm = replace(room, divided=True, marks_only=True)
            return [L.Divide(condition, self.body(arm), self.body(arm))]
        arm = replace(room, divided=True)
        return [L.Divide(condition, self.body(arm), tuple(self.work(room)) if self.random.random() < 0.3 else ())]

    def loop(self, room: Room) -> list[Any]:
        variable = f"i{len(room.counters)}"
        few = L.Value("number", (3,))
        rounds = self.random.choice(
            (
                L.Value("number", (self.random.randrange(0, 5),)),
                L.Value("&", (L.Value("name", ("n",)), few)),
                L.Value("&", (L.Value("+", (L.Value("name", ("warp",)), L.Value("name", ("block",)))), few)),
            )
        )
        inside = replace(room, counters=(*room.counters, variable))
        unroll = self.random.choice((0, 0, 1, 2, -1))
        return [L.Loop(variable, rounds, unroll, self.body(inside, loop=True), False)]

    def diverging_loop(self, room: Room) -> list[Any]:
        variable = f"i{len(room.counters)}"
        inside = replace(room, counters=(*room.counters, variable), divided=True, depth=max(room.depth, 3))
        rounds = L.Value(
            "&", (L.Value("+", (L.Value("name", ("lane",)), self.value(room, 0))), L.Value("number", (3,)))
        )
        return [L.Loop(variable, rounds, 1, self.body(inside, loop=True), True)]

    def switch(self, room: Room) -> list[Any]:
        bodies = tuple(self.body(room) for _ in range(self.random.randrange(2, 4)))
        return [L.Switch(self.value(room, 1, uniform=True), bodies)]

    def call(self, room: Room) -> list[Any]:
        self.functions += 1
        inside = Room(depth=2, called=True, tokens=((*(one for level in room.tokens for one in level),),))
        # What the caller has open counts as taken, and is not the function's to close.
        return [L.Call(f"part_{self.functions}", self.random.random() < 0.5, self.body(inside))]

    def lanes_return(self, room: Room) -> list[Any]:
        if any(room.pushed) or any(room.tokens):
            return self.mark(room)
        return [L.LanesReturn(self.random.randrange(1, 32))]

    def jump(self, room: Room) -> list[Any]:
        """Leave a loop or the kernel, after closing what stays open otherwise."""
        if room.divided or room.called:
            return []
        inner = len(room.pushed) - 1
        how = self.random.choice(("break", "continue", "return") if inner else ("return",))
        first = 0 if how == "return" else inner
        out: list[Any] = [L.End(self.site(room, event)) for level in room.tokens[first:] for event in level]
        out += [L.Pop("macro")] * sum(room.pushed[first:])
        return [L.If(self.condition(room, uniform=True), (*out, L.Leave(how)), ())]


def _odd(source: random.Random) -> L.Value:
    return L.Value("number", (source.choice((3, 5, 0x9E3779B1, 0x85EBCA6B)),))


def _events(source: random.Random) -> tuple[L.Event, ...]:
    """Draw the events that a module may use; some modules have more than NativeDump holds, some have long names."""
    count = source.choice((2, 3, 5, 8, 9, 14, 20, 26))
    long = source.random() < 0.25
    out = []
    for kind in ("mark", "range", "token_range"):
        for index in range(max(1, count + source.randrange(-1, 2))):
            # A mark may share its name with a range; ranges of two kinds may not.
            name = f"{source.choice(WORDS)} {index}{'t' if kind == 'token_range' else ''}"
            if long and source.random() < 0.3:
                name += " of the longer kind, beyond thirty-two bytes"
            payload = source.choice(PAYLOADS) if source.random() < 0.7 else None
            color = source.randrange(1 << 24) if source.random() < 0.2 else None
            out.append(L.Event(kind, name, payload, color, source.choice(("macro", "macro", "second", "token"))))
    return tuple(out)


def make_module(seed: int, programs: int = _PER_MODULE) -> L.Module:
    """Draw a module of programs, each of which records something and not too much."""
    source = random.Random(f"module {seed}")
    maker = Maker(source, _events(source))
    made: list[L.Program] = []
    while len(made) < programs:
        body = maker.body(Room())
        name = f"program_{seed}_{len(made)}"
        program = L.Program(name, body, source.randrange(1, 4), source.randrange(1, 4), source.randrange(0, 8))
        if _is_of_use(program):
            made.append(program)
    return L.Module(seed, maker.events, tuple(made))


def _is_of_use(program: L.Program) -> bool:
    try:
        lengths = [len(warp.events) for block in range(program.blocks) for warp in run_block(program, block, LONGEST)]
    except TooMany:
        return False
    return max(lengths) >= 4
