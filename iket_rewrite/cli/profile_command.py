# SPDX-License-Identifier: Apache-2.0
"""`iket-profile`: capture what the kernels of a command record, and say what is installed for it."""

from __future__ import annotations

import argparse
import shlex
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from .run import run_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..capturing.results import ProfileResult

_EXAMPLES = """\
examples:
  iket-profile -- python train.py                     the trace goes to iket-trace/
  iket-profile -o trace --clobber -- ./app 4096       replace an earlier one, if this one is whole
  iket-profile --cluster 0,0,0 -- ./app               one cluster only; without clusters, one block
  iket-profile --warp-lifetimes -- ./app              any kernel, annotated or not
  iket-profile --doctor                               what is installed, and what is missing

The command runs twice: first to count events, then to record them.  Its output is shown as it comes.

exit codes: 0 fine; 1 nothing was recorded or the command failed; 2 wrong usage, or something is missing on this machine
"""


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    result = argparse.ArgumentParser(
        prog="iket-profile",
        usage="iket-profile [options] -- COMMAND [ARGUMENT ...]",
        description="Run a command under NVIDIA's IKET runtime and publish what its kernels record.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    result.add_argument("-o", "--output-dir", default="iket-trace", metavar="DIR", help="where (default: iket-trace)")
    result.add_argument(
        "--postprocess",
        choices=("all", "json", "perfetto", "html", "none"),
        default="all",
        help="which files to make (default: all)",
    )
    result.add_argument("--clobber", action="store_true", help="replace a folder that is there")
    result.add_argument("--cwd", metavar="DIR", help="run the command in this folder")
    result.add_argument("--max-events-per-warp", type=int, metavar="N", help="room for N (default: as many as counted)")
    result.add_argument("--cluster", type=_cluster, metavar="X,Y,Z", help="record one cluster only")
    result.add_argument("--warp-lifetimes", action="store_true", help="record only when warps began and ended")
    result.add_argument("--keep", action="store_true", help="publish run-iket's own intermediate files too")
    result.add_argument("--timeout", type=float, default=600.0, metavar="S", help="seconds for all (default: 600)")
    result.add_argument("-q", "--quiet", action="store_true", help="do not show the command's output")
    result.add_argument("--doctor", action="store_true", help="say what is installed, run nothing")
    result.add_argument("--json", action="store_true", help="with --doctor: for a program")
    result.add_argument("--version", action="store_true", help="print the version")
    return result


def _cluster(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError("three numbers with commas, for example 0,0,0") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command("iket-profile", lambda: _main(_parsed(sys.argv[1:] if arguments is None else arguments)))


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the options; what follows the first `--` is the command, whatever stands in it."""
    split = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser().parse_args(arguments[:split])
    options.command += arguments[split + 1 :]
    return options


def _main(options: argparse.Namespace) -> int:
    if options.version:
        from .. import __version__

        print(f"iket-profile {__version__}")
        return 0
    if options.doctor:
        from .doctor_output import print_doctor

        return print_doctor(as_json=options.json)
    if options.json:
        from ..errors import OptionError

        raise OptionError("--json goes with --doctor", remedy="a capture's own JSON is in its folder")
    if not options.command:
        from ..errors import OptionError

        raise OptionError("no command", remedy="iket-profile [options] -- COMMAND; --help shows examples")
    # Asked to end, it ends what it has started: as for Ctrl-C.
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            _say(_profile(options))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _warn(message: Warning | str, *where: object, **more: object) -> None:
    print(f"iket-profile: warning: {message}", file=sys.stderr)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _profile(options: argparse.Namespace) -> ProfileResult:
    from ..capturing.around_command import profile_request
    from ..capturing.request import make_request

    request = make_request(
        options.command,
        output_dir=options.output_dir,
        postprocess=options.postprocess,
        clobber=options.clobber,
        cwd=options.cwd,
        max_events_per_warp=options.max_events_per_warp,
        cluster=options.cluster,
        keep=options.keep,
        timeout=options.timeout,
        warp_lifetimes_only=options.warp_lifetimes,
    )
    return profile_request(request, None if options.quiet else sys.stdout)


def _say(result: ProfileResult) -> None:
    held = result.contents
    here = Path.cwd()
    folder = result.output_dir.relative_to(here) if result.output_dir.is_relative_to(here) else result.output_dir
    processes = len(result.json_traces)
    several = f" of {processes} processes" if processes > 1 else ""
    print(
        f"{folder}: {len(held.kernels)} launches{several}, {held.ranges} ranges, {held.markers} markers"
        + (f", up to {result.events_per_warp} events per warp" if result.events_per_warp is not None else ""),
        file=sys.stderr,
    )
    if result.json_traces:
        print(f"  next: iket-trace summary {shlex.quote(str(folder))}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
