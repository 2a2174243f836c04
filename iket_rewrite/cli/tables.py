# SPDX-License-Identifier: Apache-2.0
"""How `iket-trace` prints: tables with rich, JSON, CSV, times, and a bar for steps that take longer than a second."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from ..errors import ToolError

#: How many rows of a table are printed unless all are asked for.
_ROWS = 40
#: When a step is long enough for a bar.
_LONG_S = 1.0


def print_json(values: Any) -> None:
    """Print JSON values; what JSON has no number for (NaN) becomes null."""
    print(json.dumps(_sane(values), indent=2))


def print_csv(rows: Iterable[dict[str, Any]]) -> None:
    """Print rows as CSV with a line of names."""
    writer: csv.DictWriter[str] | None = None
    stream = _stream()
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(stream, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow({key: _cell(value) for key, value in row.items()})


def print_table(console: Any, title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], every: bool) -> None:
    """Print a table; numbers and times stand right."""
    if not rows:
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    shown = rows if every else rows[:_ROWS]
    for number, name in enumerate(names):
        right = all(
            isinstance(row[number], int) or str(row[number])[:1].isdigit() or row[number] == "" for row in shown
        )
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in shown:
        table.add_row(*(Text(clean(f"{value:,}" if isinstance(value, int) else str(value))) for value in row))
    console.print(table)
    console.print()
    if len(shown) < len(rows):
        say(console, f"{len(rows) - len(shown)} more rows: --all shows them")


def open_console() -> Any:
    """Return where tables are printed.

    Raises:
        ToolError: rich is not installed.
    """
    try:
        from rich.console import Console
    except ImportError:
        raise ToolError(
            "tables need the package rich, which is not installed",
            remedy="pip install 'iket-rewrite[trace]', or ask for --json or --csv",
        ) from None
    stream = _stream()
    # In a pipe nothing is folded: one row, one line.
    shape: dict[str, Any] = {"soft_wrap": True} if stream.isatty() else {"width": 10_000}
    console = Console(file=stream, highlight=False, **shape)
    # Rich would end the process with 1, which says that the trace has faults.  It is a method there, for subclasses.
    console.on_broken_pipe = _reader_is_gone  # type: ignore[method-assign]
    return console


def _stream() -> TextIO:
    """Return standard output; where it is closed, text goes nowhere, as that of `print` does."""
    return sys.stdout if sys.stdout is not None else io.StringIO()


def _reader_is_gone() -> None:
    raise BrokenPipeError


def say(console: Any, text: str, style: str = "") -> None:
    """Print a line."""
    console.print(clean(text), style=style, markup=False)


@contextlib.contextmanager
def progress(title: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the share that is done; where it takes long, a bar on standard error shows it."""
    began, bar = time.monotonic(), None
    with contextlib.ExitStack() as stack:

        def advance(share: float) -> None:
            nonlocal bar
            if bar is None and time.monotonic() - began > _LONG_S and sys.stderr is not None and sys.stderr.isatty():
                bar = stack.enter_context(_bar())
                bar.add_task(title, total=1.0)
            if bar is not None:
                bar.update(bar.task_ids[0], completed=share)

        yield advance


def duration(ns: float) -> str:
    """Return a time with three significant digits and more where it is short: stamps are whole nanoseconds."""
    for limit, unit, size in ((1e4, "ns", 1), (1e7, "µs", 1e3), (1e10, "ms", 1e6)):
        if abs(ns) < limit:
            return f"{ns / size:,.0f} {unit}" if unit == "ns" and float(ns).is_integer() else f"{ns / size:,.1f} {unit}"
    return f"{ns / 1e9:,.2f} s"


def clean(text: str) -> str:
    """Return text that stays on its line and can not move a terminal's cursor: names in a file are anybody's."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return "x".join(map(str, value))
    return "" if value is None else value


def _sane(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _sane(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_sane(one) for one in value]
    return None if isinstance(value, float) and value - value != 0 else value
