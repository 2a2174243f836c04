# SPDX-License-Identifier: Apache-2.0
"""Run a program on the CPU, a warp at a time with a set of active lanes: its events in order, and its results.

Where lanes part and both arms record, the hardware chooses which comes first: such events come as `Either`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from generated import language as L

LANES = 32
WORD = 0xFFFFFFFF
INPUT_WORDS = 256
#: What the kernel reads: input word i.
INPUT = tuple((index * 2654435761 + 12345) & WORD for index in range(INPUT_WORDS))


class TooMany(Exception):
    """A warp records more events than asked for."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One recorded event: "mark", "push", "pop", "start" or "end"; bits are None without a payload.

    A pointer's bits are its distance from the input's address.
    """

    action: str
    name: str | None = None
    payload: str | None = None
    bits: int | None = None
    color: int | None = None


@dataclass(frozen=True, slots=True)
class Either:
    """Two sequences of marks that the hardware may interleave."""

    first: tuple[Any, ...]
    second: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.first) + len(self.second)


@dataclass
class Warp:
    """The state of a warp, and what it recorded."""

    block: int
    number: int
    n: int
    limit: int
    acc: list[int] = field(default_factory=list)
    tile: list[int] = field(default_factory=lambda: [0] * LANES)
    alive: frozenset[int] = frozenset(range(LANES))
    counters: dict[str, int] = field(default_factory=dict)
    events: list[Any] = field(default_factory=list)
    count: int = 0

    def record(self, seen: Seen) -> None:
        self.count += 1
        if self.count > self.limit:
            raise TooMany
        self.events.append(seen)


def run_block(program: L.Program, block: int, limit: int = 1 << 30) -> list[Warp]:
    """Return the warps of a block after the program."""
    out = []
    for number in range(program.warps):
        warp = Warp(block, number, program.n, limit)
        warp.acc = [(number * LANES + lane) * 7 + block + 1 for lane in range(LANES)]
        run(program.body, warp, warp.alive)
        out.append(warp)
    return out


# --- Values ---------------------------------------------------------------------------------------------------


def evaluate(value: L.Value, warp: Warp, lane: int) -> int:
    """Return a value in one lane."""
    if value.operator == "number":
        return value.operands[0]
    if value.operator == "name":
        return _named(value.operands[0], warp, lane)
    left, right = (evaluate(operand, warp, lane) for operand in value.operands)
    operations = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "^": lambda: left ^ right,
        "&": lambda: left & right,
        "|": lambda: left | right,
        ">>": lambda: left >> right,
        "<": lambda: int(left < right),
    }
    return operations[value.operator]() & WORD


def _named(name: str, warp: Warp, lane: int) -> int:
    if name == "acc":
        return warp.acc[lane]
    known = {"lane": lane, "warp": warp.number, "block": warp.block, "blockIdx.x": warp.block, "n": warp.n}
    return known[name] if name in known else warp.counters[name]


def payload_bits(kind: str, value: int) -> int:
    """Return the bits that a payload of a type has, made of a value in the way that `printing` writes it."""
    signed = value - (1 << 32) if value >> 31 else value
    if kind in ("i8", "u8", "i16", "u16", "i32", "u32"):
        return value & ((1 << int(kind[1:])) - 1)
    if kind == "bool":
        return int(value & 4 != 0)
    if kind == "i64":
        return (signed * 3_000_000_007) & (1 << 64) - 1
    if kind == "u64":
        return (value * 0x9E3779B97F4A7C15) & (1 << 64) - 1
    if kind == "f32":
        return _bits("f", "I", float(value))
    if kind == "f64":
        return _bits("d", "Q", value * 0.37)
    if kind == "f16":
        return _bits("e", "H", (value & 0x3FFF) * 0.25)
    if kind == "bf16":
        wide = _bits("f", "I", (value & 0xFFFFF) * 0.5)
        return (wide + 0x7FFF + (wide >> 16 & 1)) >> 16
    return 4 * (value % INPUT_WORDS)  # pointer


def _bits(number: str, word: str, value: float) -> int:
    return struct.unpack(f"<{word}", struct.pack(f"<{number}", value))[0]


def _seen(action: str, site: L.Site, warp: Warp, lanes: frozenset[int]) -> Seen:
    event = site.event
    bits = None
    if event.payload is not None:
        assert site.value is not None
        bits = payload_bits(event.payload, evaluate(site.value, warp, min(lanes)))
    return Seen(action, event.name, event.payload, bits, event.color)


# --- Statements -----------------------------------------------------------------------------------------------


def run(body: tuple[Any, ...], warp: Warp, lanes: frozenset[int]) -> str:
    """Run a body in the lanes that are alive of these; say how it ended."""
    for statement in body:
        ended = _run_one(statement, warp, lanes & warp.alive)
        if ended != "next":
            return ended
    return "next"


def _run_one(statement: Any, warp: Warp, lanes: frozenset[int]) -> str:
    match statement:
        case L.Mark(site):
            warp.record(_seen("mark", site, warp, lanes))
        case L.Push(site):
            warp.record(_seen("push", site, warp, lanes))
        case L.Start(site):
            warp.record(_seen("start", site, warp, lanes))
        case L.End(site):
            warp.record(_seen("end", site, warp, lanes))
        case L.Pop():
            warp.record(Seen("pop"))
        case L.Scoped(site, body):
            warp.record(_seen("push", site, warp, lanes))
            leader = min(lanes)
            ended = run(body, warp, lanes)
            assert leader in warp.alive
            warp.record(Seen("pop"))
            return ended
        case L.Mix(value):
            values = {lane: evaluate(value, warp, lane) for lane in lanes}
            for lane in lanes:
                warp.acc[lane] = values[lane]
        case L.Load(value):
            for lane in lanes:
                warp.acc[lane] ^= INPUT[evaluate(value, warp, lane) % INPUT_WORDS]
        case L.Exchange(distance):
            for lane in lanes:
                warp.tile[lane] = warp.acc[lane]
            for lane in lanes:
                warp.acc[lane] = (warp.acc[lane] + warp.tile[lane ^ distance]) & WORD
        case L.LanesReturn(first):
            warp.alive = frozenset(lane for lane in warp.alive if lane < first)
        case L.Leave(how):
            return how
        case L.Call(_, _, body):
            kept, warp.counters = warp.counters, {}
            run(body, warp, lanes)
            warp.counters = kept
        case _:
            return _run_branching(statement, warp, lanes)
    return "next"


def _run_branching(statement: Any, warp: Warp, lanes: frozenset[int]) -> str:
    match statement:
        case L.If(condition, then, otherwise):
            return run(then if _uniform(condition, warp, lanes) else otherwise, warp, lanes)
        case L.Switch(value, bodies):
            return run(bodies[_uniform(value, warp, lanes) % len(bodies)], warp, lanes)
        case L.Divide(condition, then, otherwise):
            _divide(condition, then, otherwise, warp, lanes)
            return "next"
        case L.Loop():
            return _loop(statement, warp, lanes)
    raise AssertionError(statement)


def _uniform(value: L.Value, warp: Warp, lanes: frozenset[int]) -> int:
    (found,) = {evaluate(value, warp, lane) for lane in lanes}
    return found


def _divide(condition: L.Value, then: tuple, otherwise: tuple, warp: Warp, lanes: frozenset[int]) -> None:
    yes = frozenset(lane for lane in lanes if evaluate(condition, warp, lane))
    before, arms = warp.events, []
    for arm, body in ((yes, then), (lanes - yes, otherwise)):
        warp.events = []
        if arm:
            run(body, warp, arm)
        arms.append(tuple(warp.events))
    warp.events = before
    if arms[0] and arms[1]:
        assert all(seen.action == "mark" for arm in arms for seen in arm)
        warp.events.append(Either(*arms))
    else:
        warp.events += [*arms[0], *arms[1]]


def _loop(loop: L.Loop, warp: Warp, lanes: frozenset[int]) -> str:
    rounds = {lane: evaluate(loop.rounds, warp, lane) for lane in lanes}
    assert loop.diverging or len(set(rounds.values())) == 1
    for number in range(max(rounds.values())):
        active = frozenset(lane for lane in lanes & warp.alive if rounds[lane] > number)
        warp.counters[loop.variable] = number
        ended = run(loop.body, warp, active)
        if ended == "return":
            return ended
        if ended == "break":
            break
    warp.counters.pop(loop.variable, None)
    return "next"
