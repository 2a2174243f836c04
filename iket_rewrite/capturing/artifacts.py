# SPDX-License-Identifier: Apache-2.0
"""The files of a capture inside the process: the same kinds as those of run-iket, made from its JSON trace."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from . import options

if TYPE_CHECKING:
    from ..tracing.model import Trace

#: What each ending needs beside numpy and msgspec, which read the trace.
_NEEDS = {".trace.json": (), ".pftrace": ("numpy", "msgspec", "perfetto"), ".html": ("numpy", "msgspec")}


def can_write(postprocess: str) -> bool:
    """Say whether the packages that this choice needs are installed."""
    needed = {name for ending in options.ENDINGS[postprocess] for name in _NEEDS.get(ending, ())}
    return all(find_spec(name) is not None for name in needed)


def write_artifacts(trace: Trace, path: Path, postprocess: str) -> None:
    """Write the Perfetto file and the page beside a JSON trace, as far as they are asked for.

    The page holds its data, so it needs no compressed trace beside it; it is written all the same, as run-iket does.
    """
    stem = path.name.removesuffix(".trace.json")
    wanted = options.ENDINGS[postprocess]
    if {".pftrace", ".pftrace.gz"} & set(wanted):
        from ..tracing.export_perfetto import perfetto_bytes

        data = perfetto_bytes(trace)
        if ".pftrace" in wanted:
            path.with_name(f"{stem}.pftrace").write_bytes(data)
        if ".pftrace.gz" in wanted:
            path.with_name(f"{stem}.pftrace.gz").write_bytes(gzip.compress(data))
    if ".html" in wanted:
        from ..tracing.page import render_page

        path.with_name(f"{stem}.html").write_text(render_page(trace, title=stem), encoding="utf-8")
    if ".trace.json" not in wanted:
        path.unlink()
