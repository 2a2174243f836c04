# SPDX-License-Identifier: Apache-2.0
"""`iket-trace`: from trace files to numbers and to files for viewers.

Each subcommand is a row of `SUBCOMMANDS`: a line of help, a function that adds its options, and one that runs it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .run import run_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..tracing.model import Trace

_EXAMPLES = """\
examples:
  iket-trace summary trace/                          what run-iket wrote, in numbers
  iket-trace summary a.trace.json --by warp --json   the same per role of the warps, for a program
  iket-trace compare before.trace.json after.trace.json
  iket-trace export a.trace.json -o a.pftrace        for https://ui.perfetto.dev
  iket-trace report a.trace.json -o a.html           a page with the timeline, for any browser
  iket-trace export rank0.json rank1.json --align marker:barrier -o ranks.pftrace

exit codes: 0 fine; 1 the trace has findings that make numbers wrong; 2 wrong usage, unreadable input or a missing tool
"""
#: What a summary can be divided by; the library's `grouping.BY`, said here so that --help need not load it.
_BY = ("payload", "warp", "cta", "sm", "launch", "process")
_MARKER = "marker:"


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    result = argparse.ArgumentParser(
        prog="iket-trace",
        description="Read traces of NVIDIA's IKET runtime: numbers, comparisons, and files for viewers.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--version", action="store_true", help="print the version")
    commands = result.add_subparsers(dest="command", metavar="COMMAND")
    for name, (says, options, _) in SUBCOMMANDS.items():
        options(commands.add_parser(name, help=says, description=says[0].upper() + says[1:] + "."))
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command("iket-trace", lambda: _main(parser().parse_args(arguments)))


def _main(options: argparse.Namespace) -> int:
    if options.version:
        from .. import __version__

        print(f"iket-trace {__version__}")
        return 0
    if options.command is None:
        from ..errors import OptionError

        raise OptionError("no command", remedy=f"one of {', '.join(SUBCOMMANDS)}; --help shows examples")
    _, _, work = SUBCOMMANDS[options.command]
    code: int = work(options)
    return code


def trace_options(result: argparse.ArgumentParser) -> None:
    """Add the options of every subcommand that reads one trace."""
    result.add_argument("files", nargs="+", metavar="FILE", help="trace file, or run-iket's folder; one per process")
    result.add_argument("--kernel", metavar="PATTERN", help="only kernels whose name matches (*, ?)")
    result.add_argument(
        "--events", action="append", metavar="TABLE.json", help="what iket-rewrite --events wrote, for source lines"
    )
    result.add_argument(
        "--align", metavar="marker:NAME", help="put all processes on one clock by a marker that all of them pass"
    )


def format_options(result: argparse.ArgumentParser) -> None:
    """Add the options that choose how results are printed."""
    form = result.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print the rows as CSV")
    result.add_argument("--all", action="store_true", help="print every row of long tables")


def read_trace(options: argparse.Namespace) -> Trace:
    """Read the trace that the options name, and align it where they ask for it."""
    from ..tracing.load import load_trace
    from .tables import progress

    with progress("reading") as advance:
        trace = load_trace(options.files, events=options.events, progress=advance)
    if options.align is None:
        return trace
    from ..errors import OptionError
    from ..tracing.align import align

    if not options.align.startswith(_MARKER):
        raise OptionError(f"--align {options.align}: is not understood", remedy="write --align marker:NAME")
    return align(trace, options.align.removeprefix(_MARKER))


def spare_inputs(options: argparse.Namespace, trace: Trace) -> None:
    """See that the output is none of the files that were read: a capture can not be made again.

    Raises:
        OptionError: it is.
    """
    import os

    from ..errors import OptionError

    read = [*(process.path for process in trace.processes), *(options.events or ())]
    read += [path for name in ("binary", "baseline") if (path := getattr(options, name, None))]
    if os.path.realpath(options.output) in map(os.path.realpath, read):
        raise OptionError(f"{options.output}: is what was read", remedy="name another file with -o")


def chosen_launches(trace: Trace, pattern: str | None) -> list[int]:
    """Return the launches of the kernels that match a pattern.

    Raises:
        OptionError: none does.
    """
    from ..tracing.choosing import matching

    names = set(matching(dict.fromkeys(trace.launches.kernel), pattern))
    return [row for row, name in enumerate(trace.launches.kernel) if name in names]


def _summary_options(result: argparse.ArgumentParser) -> None:
    trace_options(result)
    result.add_argument("--by", choices=_BY, help="divide each range by this; warp: by the set of ranges of the warps")
    format_options(result)


def _summary(options: argparse.Namespace) -> int:
    from ..tracing.summary import summarize
    from ..tracing.values import summary_rows, summary_values
    from . import tables
    from . import trace_output as output

    trace = read_trace(options)
    found = summarize(trace, kernel=options.kernel, by=options.by)
    if options.json:
        tables.print_json(summary_values(found, trace))
    elif options.csv:
        tables.print_csv(summary_rows(found))
        output.print_findings(found.findings, sys.stderr)
    else:
        output.print_summary(trace, found, every=options.all)
    return 0 if found.ok else 1


def _list_options(result: argparse.ArgumentParser) -> None:
    trace_options(result)
    format_options(result)


def _list(options: argparse.Namespace) -> int:
    from ..tracing.values import launch_rows, listing
    from . import tables
    from . import trace_output as output

    trace = read_trace(options)
    chosen = set(chosen_launches(trace, options.kernel))
    values = listing(trace)
    values["launches"] = [row for row in values["launches"] if row["launch"] in chosen]
    if options.json:
        tables.print_json(values)
    elif options.csv:
        tables.print_csv(row for row in launch_rows(trace) if row["launch"] in chosen)
    else:
        output.print_list(trace, values, every=options.all)
    return 0


def _compare_options(result: argparse.ArgumentParser) -> None:
    result.add_argument("before", metavar="A", help="trace file, or run-iket's folder")
    result.add_argument("after", metavar="B", help="trace file, or run-iket's folder")
    result.add_argument("--kernel", metavar="PATTERN", help="only kernels whose name matches (*, ?)")
    result.add_argument(
        "--fail-slower", type=_percent, metavar="PERCENT", help="exit 1 where a range is slower by more, beyond noise"
    )
    format_options(result)


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage: write 5%")
    return value


def _compare(options: argparse.Namespace) -> int:
    from ..tracing.compare import compare
    from ..tracing.load import load_trace
    from ..tracing.values import comparison_rows, comparison_values
    from . import tables
    from . import trace_output as output

    with tables.progress("reading") as advance:
        before = load_trace(options.before, progress=advance)
    with tables.progress("reading") as advance:
        after = load_trace(options.after, progress=advance)
    found = compare(before, after, kernel=options.kernel)
    if options.json:
        tables.print_json(comparison_values(found))
    elif options.csv:
        tables.print_csv(comparison_rows(found))
    else:
        output.print_comparison(found, every=options.all)
    if options.fail_slower is None:
        return 0
    return output.print_slower(found, options.fail_slower)


def _export_options(result: argparse.ArgumentParser) -> None:
    trace_options(result)
    result.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="file; .pftrace for Perfetto, .json for Chrome's format"
    )


def _export(options: argparse.Namespace) -> int:
    import gzip

    from ..errors import OptionError
    from .output import write_atomically
    from .tables import progress
    from .trace_output import note_clocks

    name = options.output.removesuffix(".gz")
    if not name.endswith((".pftrace", ".json")):
        raise OptionError(f"{options.output}: the format is not known", remedy="end the name in .pftrace or .json")
    trace = read_trace(options)
    spare_inputs(options, trace)
    launches = chosen_launches(trace, options.kernel)
    with progress("writing") as advance:
        if name.endswith(".json"):
            from ..tracing.export_chrome import chrome_bytes

            data = chrome_bytes(trace, launches=launches, progress=advance)
        else:
            from ..tracing.export_perfetto import perfetto_bytes

            data = perfetto_bytes(trace, launches=launches, progress=advance)
    write_atomically(options.output, gzip.compress(data) if name != options.output else data)
    print(f"{options.output}: {len(launches)} launches, {len(data):,} bytes")
    note_clocks(trace)
    return 0


def _report_options(result: argparse.ArgumentParser) -> None:
    from .trace_page import report_options

    trace_options(result)
    report_options(result)


def _report(options: argparse.Namespace) -> int:
    from .trace_page import write_report

    trace = read_trace(options)
    spare_inputs(options, trace)
    return write_report(options, trace)


def _open_options(result: argparse.ArgumentParser) -> None:
    from .trace_page import open_options

    trace_options(result)
    open_options(result)


def _open(options: argparse.Namespace) -> int:
    from .trace_page import open_page

    return open_page(options, read_trace(options))


#: Name, help, options, work.
SUBCOMMANDS = {
    "summary": ("durations of every range, markers, roles and balance of each kernel", _summary_options, _summary),
    "list": ("the launches and events of a trace", _list_options, _list),
    "compare": ("two traces side by side: what got faster or slower, and what is noise", _compare_options, _compare),
    "export": ("write a file for Perfetto or for readers of Chrome's trace format", _export_options, _export),
    "report": ("write a page with timeline and tables, one file that needs no network", _report_options, _report),
    "open": ("show that page in a browser", _open_options, _open),
}


if __name__ == "__main__":
    sys.exit(main())
