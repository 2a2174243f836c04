# SPDX-License-Identifier: Apache-2.0
"""`iket-trace report` and `iket-trace open`: the page of a trace as a file, or served to a browser."""

from __future__ import annotations

import argparse
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..tracing.model import Trace
    from ..verification.comparison import Comparison


def page_options(result: argparse.ArgumentParser) -> None:
    """Add what both subcommands take beside the options of reading a trace."""
    result.add_argument("--title", default="", metavar="TEXT", help="title of the page; the files' names without it")
    result.add_argument(
        "--limit", type=_limit, metavar="N", help="draw at most N ranges, markers and warps (300000); tables count all"
    )
    result.add_argument(
        "--binary", metavar="BINARY", help="the binary that was captured: show what each range holds of its code"
    )
    result.add_argument(
        "--baseline", metavar="PLAIN", help="with --binary: its build without marks, to show what they change"
    )


def report_options(result: argparse.ArgumentParser) -> None:
    """Add the options of `report`."""
    result.add_argument("-o", "--output", required=True, metavar="OUT.html", help="the page; - for standard output")
    page_options(result)


def open_options(result: argparse.ArgumentParser) -> None:
    """Add the options of `open`."""
    result.add_argument("--port", type=_port, default=0, metavar="N", help="port on 127.0.0.1; any free one without")
    result.add_argument("--no-browser", action="store_true", help="print the address and start no browser")
    page_options(result)


def write_report(options: argparse.Namespace, trace: Trace) -> int:
    """Write the page; return the exit code."""
    from .output import write_atomically

    page = _page(options, trace).encode("utf-8")
    write_atomically(options.output, page)
    if options.output != "-":
        print(f"{options.output}: {len(page):,} bytes; open it in any browser, it needs no network")
    return 0


def open_page(options: argparse.Namespace, trace: Trace) -> int:
    """Serve the page until the user ends it; return the exit code."""
    from .page_server import PageServer

    with PageServer(_page(options, trace), options.port) as server:
        try:
            print(f"{server.url}\nCtrl+C ends it", flush=True)
            if not options.no_browser:
                _open_browser(server.url, server.server_port)
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0


def _page(options: argparse.Namespace, trace: Trace) -> str:
    from ..tracing.page import render_page
    from .tables import progress

    limit = {} if options.limit is None else {"limit": options.limit}
    code = _code(options)
    with progress("drawing") as advance:
        return render_page(trace, kernel=options.kernel, title=options.title, progress=advance, code=code, **limit)


def _code(options: argparse.Namespace) -> Comparison | None:
    """Read the machine code that the options name."""
    if options.binary is None:
        if options.baseline is not None:
            from ..errors import OptionError

            raise OptionError("--baseline says nothing without --binary", remedy="name the binary that was captured")
        return None
    from ..verification.baseline import compare_binaries

    return compare_binaries(options.baseline, options.binary, kernel=options.kernel)


def _open_browser(url: str, port: int) -> None:
    # Without a display the standard library would start a browser in this very terminal.
    shown = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
    if shown:
        import webbrowser

        shown = webbrowser.open(url)
    if not shown:
        import socket

        print(
            f"no browser can be started here; on your own machine run\n  ssh -L {port}:127.0.0.1:{port} "
            f"{socket.gethostname()}\nand open the address there",
            flush=True,
        )


def _limit(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdecimal() or int(digits) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(digits)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 16:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to 65535")
    return int(text)
