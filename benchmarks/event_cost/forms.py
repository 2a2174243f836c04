# SPDX-License-Identifier: Apache-2.0
"""What is measured: the forms of an event, the payloads, the loops; and how one combination is compiled."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import iket_rewrite

SOURCE = Path(__file__).with_name("kernel.cu")
NOTHING, OURS, CUTE_DSL = "nothing", "ours", "CuTe DSL's"
#: Name of a form to its macro.
FORMS = {
    NOTHING: "NOTHING",
    CUTE_DSL: "CUTE_DSL",
    "TileLang's": "TILELANG",
    "elected": "ELECTED",
    "elected, id first": "EARLY_ID",
    "elected, id first, copied": "EARLY_ID_COPY",
    "elected, copied": "ELECTED_COPY",
    "lowest lane, copied": "LOWEST_COPY",
    "all lanes": "PLAIN",
    "all lanes, copied": "PLAIN_COPY",
    OURS: "OURS",
}
KINDS = {"marker": "MARKER", "constant": "CONSTANT", "counter": "COUNTER", "computed": "COMPUTED"}
CHAINS = (0, 4, 64)
METHODS = ("native", "extended")
#: On sm_90; see docs/how-it-works.md.
OFFSET = 0x3F0


@dataclass(frozen=True)
class Case:
    """One row of the table: everything but the form."""

    kind: str
    width: int
    chain: int
    method: str

    def __str__(self) -> str:
        payload = self.kind if self.kind == "marker" else f"{self.kind}, {self.width} bits"
        return f"{payload}; chain of {self.chain}; {self.method}"


def cases() -> list[Case]:
    """Return every combination; a marker has no width."""
    every = itertools.product(KINDS, (32, 64), CHAINS, METHODS)
    return [Case(*values) for values in every if not (values[0] == "marker" and values[1] == 64)]


@cache
def rewritten(method: str) -> tuple[str, dict[str, int]]:
    """Rewrite the kernel; return it, and the id of each mark."""
    result = iket_rewrite.rewrite(SOURCE.read_text(encoding="utf-8"), path=SOURCE.name, method=method)
    return result.text, {event.name: event.id for event in result.plan.events}


def compile_form(form: str, case: Case, arch: str) -> bytes:
    """Compile the kernel of a combination to a cubin."""
    from cuda.core import Program, ProgramOptions

    text, ids = rewritten(case.method)
    macros = [(f"FORM_{macro}", str(number)) for number, macro in enumerate(FORMS.values())]
    macros += [(f"KIND_{macro}", str(number)) for number, macro in enumerate(KINDS.values())]
    macros += [("FORM", f"FORM_{FORMS[form]}"), ("KIND", f"KIND_{KINDS[case.kind]}")]
    macros += [("WIDTH", str(case.width)), ("CHAIN", str(case.chain)), ("OFFSET", str(OFFSET))]
    macros += [("EXTENDED", str(int(case.method == "extended"))), ("ID_MARKER", str(ids["marker"]))]
    macros += [("ID_32", str(ids["payload 32"])), ("ID_64", str(ids["payload 64"]))]
    options = ProgramOptions(arch=arch, std="c++17", include_path=[iket_rewrite.include_dir()], define_macro=macros)
    return bytes(Program(text, "c++", options).compile("cubin").code)
