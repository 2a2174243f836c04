# SPDX-License-Identifier: Apache-2.0
"""Print what `iket-profile --doctor` found: a table on a terminal, lines in a pipe, or JSON."""

from __future__ import annotations

import sys

from ..capturing.doctor import Checkup, Part, check_up

_MARKS = {"found": ("ok", "green"), "missing": ("missing", "yellow"), "unusable": ("unusable", "red")}


def print_doctor(*, as_json: bool) -> int:
    """Look for everything and print it; return 0 where a capture could work."""
    found = check_up()
    if as_json:
        import json

        print(json.dumps(found.as_json(), indent=2))
    elif not (sys.stdout.isatty() and _print_table(found)):
        _print_lines(found)
    return 0 if found.problem is None else 1


def _verdict(found: Checkup) -> str:
    if found.problem is not None:
        return f"a capture can not work here: {found.problem}"
    return f"a capture could work here: {' and '.join(found.engines)}"


def _fate(part: Part) -> str:
    """Return where a part is, or what it would enable and how it is installed."""
    return part.where if part.state == "found" else f"would enable {part.enables}; {part.install}"


def _print_lines(found: Checkup) -> None:
    wide = max(len(part.name) for part in found.parts)
    for part in found.parts:
        print("  ".join(filter(None, (f"{part.name:{wide}}", f"{_MARKS[part.state][0]:8}", part.version, _fate(part)))))
    print(_verdict(found))


def _print_table(found: Checkup) -> bool:
    """Print a table; say whether the package for it is there."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=None, pad_edge=False)
    for name in ("part", "", "version", "where, or what is missing"):
        table.add_column(name, overflow="fold")
    for part in found.parts:
        word, color = _MARKS[part.state]
        table.add_row(part.name, Text(word, color), Text(part.version), Text(_fate(part)))
    console = Console(highlight=False)
    console.print(table)
    console.print(_verdict(found), markup=False, style="green" if found.problem is None else "red")
    return True
