# SPDX-License-Identifier: Apache-2.0
"""The work of `iket-rewrite` on one file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from ..building.left_alone import annotated_headers
from ..errors import OptionError
from ..rewriting import targets
from ..rewriting.core import Rewrite, rewrite, strip
from ..rewriting.notice import Notice
from ..rewriting.readback import read_events
from ..rewriting.table import SCHEMA, event_table
from ..source import Source
from .output import write_all

_TOGETHER = "iket-rewrite with -I and a folder for -o rewrites a source with its headers"
_COLUMNS = ("id", "kind", "name", "payload", "color")


class Job:
    """One input: read and rewritten when it is made, written when it is told to.

    Raises:
        IketError: the input can not be read or understood.
    """

    def __init__(self, path: str, output: str, options: argparse.Namespace) -> None:
        self.path, self.output, self.options = path, output, options
        self.data = read_input(path)
        name = "<stdin>" if path == "-" else path
        if options.arch is not None:
            targets.cuda_arch(options.arch)
        self.result: Rewrite[bytes]
        if options.strip:
            self.result = strip(self.data, path=name)
        else:
            self.result = rewrite(
                self.data,
                target=options.arch,
                runtime_payloads=options.runtime_payloads,
                method=options.method,
                pre_hopper=options.pre_hopper,
                path=name,
            )

    def files(self) -> list[tuple[str, bytes]]:
        """Return what is to be written: the output, and the table where one was asked for."""
        files = [(self.output, self.result.text)]
        if self.options.events is not None:
            files.append((self.options.events, table_bytes(event_table(self.result.plan))))
        return files

    def check(self) -> int:
        """Return 1 where the output on disk is not what would be written."""
        self.warn()
        if self.output == "-":
            raise OptionError("--check needs a file to compare with", remedy="name it with -o")
        current = read_input(self.output) if os.path.exists(self.output) else None
        if current == self.result.text:
            return 0
        word = "is missing" if current is None else "is out of date"
        print(f"{self.output} {word}; run: iket-rewrite {self.path}", file=sys.stderr)
        return 1

    def show_list(self) -> int:
        """Print the event table: the plan's, or what instrumented source declares."""
        self.warn()
        table = self._table()
        if self.options.json:
            write_all([("-", table_bytes(table))])
            return 0
        print_events(self.path, table)
        return 0

    def _table(self) -> dict[str, Any]:
        if not self.result.instrumented:
            return event_table(self.result.plan)
        method, events = read_events(Source(self.data, self.path))
        return {
            "schema": SCHEMA,
            "method": method.value,
            "events": [
                {
                    "id": event.id,
                    "kind": event.kind.value,
                    "name": event.name,
                    "payload": event.payload.name if event.payload else None,
                    "color": None if event.color is None else f"#{event.color:06x}",
                }
                for event in events
            ],
        }

    def warn(self) -> None:
        """Print the warnings, where somebody wants them."""
        if not self.options.quiet and not self.options.list:
            for warning in self.result.warnings:
                print(warning, file=sys.stderr)
            for header in [] if self.path == "-" or self.options.strip else annotated_headers(self.path):
                print(Notice(f"{header} is annotated and stays as it is: {_TOGETHER}"), file=sys.stderr)

    def summary(self) -> str:
        """Return one line that says what was written."""
        target = "standard output" if self.output == "-" else self.output
        if self.result.instrumented:
            return f"{self.path}: instrumented already; {target} is a copy"
        if not self.result.changed:
            return f"{self.path}: nothing to instrument; {target} is a copy"
        if self.options.strip:
            return f"{self.path} -> {target}: annotations removed"
        plan = self.result.plan
        return (
            f"{self.path} -> {target}: {len(plan.events)} events at {len(plan.sites)} sites, "
            f"{plan.method.facts.title}, plan {plan.digest}"
        )


def write_jobs(jobs: Sequence[Job]) -> None:
    """Write what all jobs have made, or nothing."""
    for job in jobs:
        job.warn()
    write_all([file for job in jobs for file in job.files()])
    for job in jobs:
        if not job.options.quiet:
            print(job.summary(), file=sys.stderr)


def print_events(name: str, table: dict[str, Any]) -> None:
    """Print a table of events."""
    rows = [_row(event) for event in table["events"]]
    widths = [max(len(row[index]) for row in [list(_COLUMNS), *rows]) for index in range(len(_COLUMNS))]
    print(f"{name}: {table['method']}, {len(rows)} event{'' if len(rows) == 1 else 's'}")
    for row in [list(_COLUMNS), *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def table_bytes(table: dict[str, Any]) -> bytes:
    """Return a table as JSON."""
    # A path that is not UTF-8 holds lone surrogates, which JSON escapes as Python does.
    return (json.dumps(table, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def _row(event: dict[str, Any]) -> list[str]:
    payload = event["payload"] or ("-" if not event.get("declared") else f"{event['declared']} (not captured)")
    return [str(event["id"]), event["kind"], _shown(event["name"]), payload, event["color"] or "-"]


def read_input(path: str) -> bytes:
    """Return the bytes of an input, `-` being standard input.

    Raises:
        OptionError: it can not be read.
    """
    try:
        if path == "-":
            if sys.stdin is None:
                raise OptionError("standard input is closed")
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise OptionError(f"{path}: can not be read: {error.strerror or error}") from None


def _shown(name: str) -> str:
    """Return a name as a table can hold it: escapes for what would break the line."""
    plain = (char if char.isprintable() and char != "\\" else repr(char)[1:-1] for char in name)
    return "".join(plain)
