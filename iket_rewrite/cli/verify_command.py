# SPDX-License-Identifier: Apache-2.0
"""`iket-verify`: judge binaries without a GPU.

nvdisasm takes half a second to start, which is most of the time that a small cubin takes.  So it is started before
anything heavy is imported, and works while we do.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .run import run_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..verification.report import Report

_EXAMPLES = """\
examples:
  iket-verify kernel.cubin                 judge a cubin
  iket-verify --strict build/              every binary in a folder; what CI wants
  iket-verify app --kernel '*gemm*' --sass show the records of some kernels
  iket-verify app --sarif findings.sarif   findings for a code scanning service
  iket-verify --baseline plain.cubin kernel.cubin   what the marks change, and what lies in each range

exit codes: 0 clean; 1 errors or warnings; 2 wrong usage, unreadable input or a missing tool
"""


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    result = argparse.ArgumentParser(
        prog="iket-verify",
        description="Say, without a GPU, whether NVIDIA's IKET runtime can patch and capture a binary.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="cubin, fatbin, object, library (shared or static), executable or folder",
    )
    result.add_argument("--strict", action="store_true", help="ask for exactly the form that iket-rewrite emits")
    result.add_argument("--json", action="store_true", help="print the reports as JSON")
    result.add_argument("--sarif", metavar="OUT", help="write the findings as SARIF, - for standard output")
    result.add_argument("--sass", action="store_true", help="show the instructions of every record with its verdict")
    result.add_argument("--kernel", metavar="PATTERN", help="judge only functions whose mangled name matches (*, ?)")
    result.add_argument(
        "--baseline", metavar="PLAIN", help="compare with the build without marks, and say what lies in each range"
    )
    result.add_argument("--official", action="store_true", help="compare with NVIDIA's own parser")
    result.add_argument("-q", "--quiet", action="store_true", help="print findings only")
    result.add_argument("--version", action="store_true", help="print the version")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    return run_command("iket-verify", lambda: _main(parser().parse_args(arguments)))


def _main(options: argparse.Namespace) -> int:
    if options.version:
        from .. import __version__

        print(f"iket-verify {__version__}")
        return 0
    if not options.files:
        from ..errors import OptionError

        raise OptionError("no input", remedy="name a binary or a folder; --help shows examples")
    if options.baseline is not None:
        return _compare(options)
    if options.json and options.sarif == "-":
        from ..errors import OptionError

        raise OptionError("--json and --sarif - can not both be standard output")
    reports, failed = _judge_all(options)
    if options.kernel and reports and not any(report.kernels for report in reports):
        from ..errors import OptionError

        raise OptionError(f"no function matches {options.kernel}", remedy="name it as it is mangled, or with * and ?")
    _print(reports, options)
    return 2 if failed else int(any(not report.ok for report in reports))


def _compare(options: argparse.Namespace) -> int:
    """Compare one binary with its build without marks."""
    from ..errors import OptionError

    unfit = [name for name in ("strict", "sarif", "sass", "official") if getattr(options, name)]
    if unfit:
        raise OptionError(f"--{unfit[0]} says nothing with --baseline", remedy="judge the binary in a call of its own")
    if len(options.files) != 1 or os.path.isdir(options.files[0]):
        raise OptionError("--baseline compares with one binary", remedy="name one file beside it")
    from ..verification.baseline import compare_binaries

    found = compare_binaries(options.baseline, options.files[0], kernel=options.kernel)
    if not found.kernels:
        raise OptionError(
            f"no kernel matches {options.kernel}" if options.kernel else "neither file holds a kernel",
            remedy="name it as it is mangled, or with * and ?" if options.kernel else "",
        )
    if options.json:
        import json

        print(json.dumps(found.as_json(), indent=2))
    else:
        from .baseline_output import print_comparison

        print_comparison(found, quiet=options.quiet)
    return 0 if found.ok else 1


def _judge_all(options: argparse.Namespace) -> tuple[list[Report], bool]:
    """Judge every file; one that can not be judged is said so and the rest goes on."""
    from ..verification.early import start_early

    first, data = options.files[0], None
    started = None
    if len(options.files) == 1 and os.path.isfile(first):
        started, data = start_early(first)
    from ..errors import IketError
    from ..verification.core import read, verify_started

    reports, failed = [], False
    for path, explicit in _expand(options.files):
        try:
            content = data if data is not None else read(path)
            reports.append(
                verify_started(
                    path, content, started, strict=options.strict, kernel=options.kernel, official=options.official
                )
            )
        except IketError as error:
            failed = True
            print(f"iket-verify: {error}", file=sys.stderr)
        started = data = None
        del explicit
    return reports, failed


def _expand(paths: Sequence[str]) -> list[tuple[str, bool]]:
    """Return the files to judge: those named, and in folders those that can hold device code.

    Raises:
        OptionError: a folder holds none.
    """
    from ..errors import OptionError
    from ..verification.containers import looks_judgeable

    files: list[tuple[str, bool]] = []
    for path in paths:
        if not os.path.isdir(path):
            files.append((path, True))
            continue
        found = []
        for folder, _, names in os.walk(path):
            for name in sorted(names):
                candidate = os.path.join(folder, name)
                if os.path.isfile(candidate) and looks_judgeable(_content(candidate)):
                    found.append((candidate, False))
        if not found:
            raise OptionError(f"{path}: no binary with device code is in this folder")
        files += sorted(found)
    return files


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            head = file.read(4)
            # Only these need to be looked through; most files of a folder are something else.
            return head + file.read() if head in (b"\x7fELF", b"!<ar") else head
    except OSError:
        return b""


def _print(reports: Sequence[Report], options: argparse.Namespace) -> None:
    import json

    if options.sarif:
        from .. import __version__
        from ..verification.sarif import as_sarif
        from .output import write_atomically

        text = json.dumps(as_sarif(reports, __version__), indent=2) + "\n"
        if options.sarif == "-":
            print(text, end="")
            return
        write_atomically(options.sarif, text.encode("utf-8"))
    if options.json:
        values = [report.as_json() for report in reports]
        print(json.dumps(values[0] if len(values) == 1 and len(options.files) == 1 else values, indent=2))
        return
    from .verify_output import print_reports

    print_reports(reports, sass=options.sass, quiet=options.quiet)


if __name__ == "__main__":
    sys.exit(main())
