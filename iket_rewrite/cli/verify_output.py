# SPDX-License-Identifier: Apache-2.0
"""Print reports: tables and colour on a terminal where rich is installed, plain text anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..verification.report import Finding, Report, SiteInfo


def print_reports(reports: Sequence[Report], *, sass: bool, quiet: bool) -> None:
    """Print what was found, file by file."""
    console = open_console()
    for report in reports:
        if sass:
            for site in report.sites:
                _print_site(console, site)
        for finding in report.findings:
            if finding.fails or not quiet:
                _print_finding(console, finding)
        if not quiet:
            _print_summary(console, report)


def open_console() -> Any:
    """Return where to print in colour, or None for plain text."""
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(highlight=False, soft_wrap=True)


def say(console: Any, text: str, style: str = "") -> None:
    """Print a line."""
    if console is None:
        print(text)
    else:
        console.print(text, style=style, markup=False)


def _print_finding(console: Any, finding: Finding) -> None:
    place = finding.file + (f" [{finding.image}]" if finding.image else "")
    if finding.kernel is not None:
        place += f" {finding.kernel}" + (f"+{finding.address:#x}" if finding.address is not None else "")
    if finding.source is not None:
        place += f" ({finding.source}:{finding.line})"
    styles = {"error": "bold red", "warning": "yellow", "note": "cyan"}
    say(
        console,
        f"{place}: {finding.severity.value} [{finding.rule}]: {finding.message}",
        styles[finding.severity.value],
    )
    if finding.fails:
        say(console, f"  fix: {finding.remedy}")


def _print_site(console: Any, site: SiteInfo) -> None:
    name = site.name if site.name is not None else "?"
    where = f"{site.kernel}+{site.address:#x}" + (f" ({site.source}:{site.line})" if site.source else "")
    say(console, f"{where}: {name} (id {site.id}): {site.verdict}", "green" if site.verdict == "ok" else "bold red")
    for address, predicate, opcode, operands, role in site.instructions:
        say(console, f"    {address:#06x}  {predicate:5} {opcode + ' ' + operands:44} {role}")


def _print_summary(console: Any, report: Report) -> None:
    tools = ", ".join(f"{name} {release}" for name, release in sorted(report.tools.items()))
    verified = [kernel for kernel in report.kernels if kernel.triggers]
    skipped = len(report.kernels) - len(verified)
    images = f" in {report.images} images" if report.images != 1 else ""
    verdict = "ok" if report.ok else "not sound"
    if console is not None and verified:
        _print_table(console, report)
    say(
        console,
        f"{report.file}: {verdict}: {len(report.events)} events, {len(report.sites)} sites in {len(verified)} "
        f"functions{images}"
        + (f", {skipped} without events skipped" if skipped else "")
        + (f" ({tools})" if tools else ""),
        "green" if report.ok else "bold red",
    )


def _print_table(console: Any, report: Report) -> None:
    from rich.table import Table

    table = Table("function", "image", "sites", "state", title=report.file, title_justify="left")
    for kernel in report.kernels:
        if kernel.triggers:
            table.add_row(kernel.name, kernel.image, str(kernel.triggers), kernel.state)
    console.print(table)
