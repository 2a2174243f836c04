# SPDX-License-Identifier: Apache-2.0
"""`iket-rewrite`: annotated CUDA source in, instrumented source out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .run import run_command

_EXAMPLES = """\
examples:
  iket-rewrite kernel.cu                        write kernel.iket.cu
  iket-rewrite kernel.cu -o - | nvcc -x cu -    write to standard output
  iket-rewrite kernel.cu --list                 show the table of events
  iket-rewrite a.cu b.cu -I include -o overlay  sources with the annotated headers that they include
  iket-rewrite kernel.cu --lint                 look for annotations that can hardly be meant so
  nvcc -I"$(iket-rewrite --print-include-dir)" kernel.iket.cu

exit codes: 0 fine; 1 annotation errors, or a finding of --check or --lint=error; 2 wrong usage or unreadable input
"""


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    result = argparse.ArgumentParser(
        prog="iket-rewrite",
        description="Turn annotations in CUDA source into events of NVIDIA's IKET runtime.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("files", nargs="*", metavar="FILE", help="a source; - is standard input")
    result.add_argument(
        "-o", "--output", metavar="OUT", help="output file, - for standard output; of several inputs, a folder"
    )
    result.add_argument(
        "-I",
        dest="include_dirs",
        metavar="DIR",
        action="append",
        default=[],
        help="rewrite the annotated headers that are included too, looking for them here; the output is a folder",
    )
    result.add_argument(
        "--plan", metavar="PLAN.json", help="keep the ids of events in this file, and add new events to it"
    )
    result.add_argument(
        "--arch", metavar="ARCH", help="architecture to warn about, e.g. sm_90a; never changes the text"
    )
    result.add_argument(
        "--runtime-payloads",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="capture payloads (default: not those of TileLang's tokens, all others)",
    )
    result.add_argument("--method", default="auto", help="auto (default), native or extended")
    result.add_argument(
        "--pre-hopper", default="off", help="off (default), or rank0 for the documented form below sm_90"
    )
    result.add_argument(
        "--events", metavar="TABLE.json", help="write the table of events and sites, - for standard output"
    )
    mode = result.add_mutually_exclusive_group()
    mode.add_argument("--list", action="store_true", help="print the table of events and write nothing")
    mode.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where the output on disk would change"
    )
    mode.add_argument("--strip", action="store_true", help="remove every annotation instead")
    mode.add_argument(
        "--lint",
        metavar="HOW",
        help="write nothing and print doubtful annotations; --lint alone, or error to exit 1 for a warning, "
        "or all to look by every rule, or error,all",
    )
    result.add_argument("--json", action="store_true", help="with --list or --lint: print JSON")
    result.add_argument("-q", "--quiet", action="store_true", help="no summary and no warnings")
    result.add_argument("--print-include-dir", action="store_true", help="print the folder of iket_rewrite/iket.cuh")
    result.add_argument("--version", action="store_true", help="print the version")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return run_command("iket-rewrite", lambda: _main(parser().parse_args(_with_values(given))))


def _with_values(arguments: list[str]) -> list[str]:
    """Give a bare `--lint` its value, so that it takes no file for one."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return ["--lint=warn" if word == "--lint" else word for word in arguments[:end]] + arguments[end:]


def _main(options: argparse.Namespace) -> int:
    from ..errors import OptionError

    if options.version or options.print_include_dir:
        from .. import __version__, include_dir

        print(include_dir() if options.print_include_dir else f"iket-rewrite {__version__}")
        return 0
    if not options.files:
        raise OptionError("no input", remedy="name a source file, or - for standard input; --help shows examples")
    if options.files.count("-") > 1:
        raise OptionError("standard input can be read only once")
    if options.lint is not None:
        if options.output or options.events or options.plan or options.include_dirs:
            raise OptionError("--lint writes nothing and reads the named files alone", remedy="leave -o, -I ... out")
        from .lint_files import lint_files

        return lint_files(options)
    if _is_program(options):
        from .rewrite_overlay import run_program

        return run_program(options)
    if options.output == "-" and options.events == "-":
        raise OptionError("-o and --events can not both be standard output")
    if options.json and not options.list:
        raise OptionError("--json goes with --list or --lint")
    if options.list and options.output is not None:
        raise OptionError("--list writes nothing, so -o does not go with it")
    if options.events is not None and (options.list or options.check or options.strip):
        raise OptionError("--events goes with rewriting only", remedy="--list --json prints the table")
    outputs = {path: _output_of(path, options) for path in options.files}
    if not options.list:
        _check_outputs(options.files, outputs, options.events)
    from .rewrite_files import Job, write_jobs

    # All inputs are read and rewritten before anything is written: an error leaves every file as it is.
    jobs = [Job(path, outputs[path], options) for path in options.files]
    if options.list:
        return max(job.show_list() for job in jobs)
    if options.check:
        return max(job.check() for job in jobs)
    write_jobs(jobs)
    return 0


def _is_program(options: argparse.Namespace) -> bool:
    """Say whether the inputs are one program, whose output is a folder."""
    several = len(options.files) > 1 and (options.output is not None or options.events is not None)
    folder = options.output is not None and (options.output.endswith("/") or os.path.isdir(options.output))
    return bool(options.include_dirs or options.plan is not None or several or folder)


def _output_of(path: str, options: argparse.Namespace) -> str:
    if options.output is not None:
        return str(options.output)
    if path == "-":
        return "-"
    stem, suffix = os.path.splitext(path)
    return f"{stem}.iket{suffix or '.cu'}" if not options.strip else f"{stem}.stripped{suffix or '.cu'}"


def _check_outputs(files: Sequence[str], outputs: dict[str, str], table: str | None) -> None:
    from ..errors import OptionError

    seen: dict[str, str] = {}
    inputs = {os.path.realpath(path) for path in files if path != "-"}
    for path, output in [*((path, outputs[path]) for path in files), ("--events", table or "-")]:
        if output == "-":
            continue
        real = os.path.realpath(output)
        if real in inputs:
            raise OptionError(f"{output}: the output is an input", remedy="choose another file")
        if real in seen:
            raise OptionError(f"{path} and {seen[real]} have one output, {output}", remedy="choose another file")
        seen[real] = path


if __name__ == "__main__":
    sys.exit(main())
