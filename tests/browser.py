# SPDX-License-Identifier: Apache-2.0
"""A real browser for tests and benchmarks: Debian's Chromium, driven by Playwright, with a profile of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

#: What the machine has, under any of its names; CHROMIUM names another.
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
#: Nothing that the browser does by itself may reach for a network.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """Start Chromium, headless; it ends with the block."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without a folder named, Playwright makes a fresh profile and removes it.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
