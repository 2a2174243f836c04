# SPDX-License-Identifier: Apache-2.0
"""One page served on the loopback interface, for a browser on this machine or behind an SSH tunnel."""

from __future__ import annotations

import contextlib
import gzip
import http.server
import secrets

from ..errors import OptionError

LOOPBACK = "127.0.0.1"


class PageServer(http.server.ThreadingHTTPServer):
    """Serves one page at one address that nobody else on the machine can guess.

    Attributes:
        page: the page, compressed and as it is.
        path: where it lies.
    """

    daemon_threads = True

    def __init__(self, page: str, port: int = 0) -> None:
        """Take a port, 0 for any that is free.

        Raises:
            OptionError: the port is taken or not allowed.
        """
        data = page.encode("utf-8")
        self.page = (gzip.compress(data, 5), data)
        self.path = f"/{secrets.token_urlsafe(16)}/"
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:
            raise OptionError(
                f"port {port} can not be used: {getattr(error, 'strerror', None) or error}",
                remedy="name another with --port, or none",
            ) from None

    @property
    def url(self) -> str:
        """Return the page's address."""
        return f"http://{LOOPBACK}:{self.server_port}{self.path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        # A name that some site has pointed at this machine must not open the page to that site.
        name = (self.headers.get("Host") or "").rpartition(":")[0]
        if name not in (LOOPBACK, "localhost") or not secrets.compare_digest(
            self.path.encode(), self.server.path.encode()
        ):
            self.send_error(404)
            return
        packed = "gzip" in (self.headers.get("Accept-Encoding") or "")
        data = self.server.page[0 if packed else 1]
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        if packed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "frame-ancestors 'none'")
        self.end_headers()
        if body:
            with contextlib.suppress(ConnectionError):
                self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the page is all there is."""
