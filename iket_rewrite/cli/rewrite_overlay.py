# SPDX-License-Identifier: Apache-2.0
"""The work of `iket-rewrite` on a program: several files in, an overlay out."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from ..building.program import Program, rewrite_program
from ..building.writing import OPTIONS
from ..errors import OptionError
from ..rewriting.table import event_table
from .output import write_all
from .rewrite_files import print_events, table_bytes


def run_program(options: argparse.Namespace) -> int:
    """Run the command on a program; return its exit code.

    Raises:
        IketError: the program can not be read or understood, or the overlay not written.
    """
    _check(options)
    program = rewrite_program(
        options.files,
        include_dirs=options.include_dirs,
        plan=options.plan,
        target=options.arch,
        runtime_payloads=options.runtime_payloads,
        method=options.method,
        pre_hopper=options.pre_hopper,
    )
    if not options.quiet and not options.list:
        for warning in program.warnings:
            print(warning, file=sys.stderr)
    if options.list:
        return _list(program, options)
    if options.check:
        return _compare(program, options)
    if options.output is not None:
        program.write(options.output)
    else:
        program.write_plan()
    if options.events is not None:
        write_all([(options.events, table_bytes(event_table(program.plan)))])
    if not options.quiet:
        for line in _summary(program, options):
            print(line, file=sys.stderr)
    return 0


def _check(options: argparse.Namespace) -> None:
    if "-" in options.files or options.output == "-":
        raise OptionError("a program is read from files and written into a folder", remedy="name them; - is neither")
    if options.strip:
        raise OptionError("--strip takes single files", remedy="leave -I and --plan out, and name no folder with -o")
    if options.check and options.output is None:
        raise OptionError("--check needs a folder to compare with", remedy="name it with -o")
    inputs = {os.path.realpath(path) for path in options.files}
    for path in (options.events, options.plan):
        if path is not None and os.path.realpath(path) in inputs:
            raise OptionError(f"{path}: the output is an input", remedy="choose another file")
    if options.output is None and not (options.list or options.events or options.plan):
        raise OptionError("a program's output is a folder", remedy="name it with -o")


def _list(program: Program, options: argparse.Namespace) -> int:
    table = event_table(program.plan)
    if options.json:
        write_all([("-", table_bytes(table))])
    else:
        print_events(", ".join(program.sources), table)
    return 0


def _compare(program: Program, options: argparse.Namespace) -> int:
    """Return 1 where the overlay on disk is not what would be written."""
    changed = program.differences(options.output)
    for path in changed:
        print(f"{path} is out of date", file=sys.stderr)
    return int(bool(changed))


def _summary(program: Program, options: argparse.Namespace) -> list[str]:
    plan = program.plan
    lines = []
    if program.changed:
        where = f"{options.output}: " if options.output is not None else ""
        lines.append(
            f"{where}{len(plan.events)} events at {len(plan.sites)} sites in {len(program.annotated)} files, "
            f"{plan.method.facts.title}, plan {plan.digest}"
        )
    if program.plan_changed:
        more = len(plan.events) - len(program.kept.events)
        advice = "; rewrite whatever else shares it" if program.kept.events else ""
        lines.append(f"{options.plan}: {more} new events{advice}")
    originals = [source for source in program.sources if program.copy_of(source) is None]
    if originals and options.output is not None:
        lines.append(f"nothing to instrument, compile the original: {', '.join(originals)}")
    if program.changed and options.output is not None:
        copies = [os.path.join(options.output, path) for path in map(program.copy_of, program.sources) if path]
        words = ["--options-file", os.path.join(options.output, OPTIONS), *copies]
        lines.append(f'compile: nvcc -I"$(iket-rewrite --print-include-dir)" {shlex.join(words)}')
    return lines
