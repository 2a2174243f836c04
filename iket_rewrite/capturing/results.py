# SPDX-License-Identifier: Apache-2.0
"""What `profile` and `run` hand back: the published files, and the trace read from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import OptionError
from . import options
from .contents import Contents

if TYPE_CHECKING:
    from ..tracing.model import Trace
    from ..tracing.tables import Launches


@dataclass(frozen=True)
class ProfileResult:
    """A capture that was published; one file of each kind for each process.

    Attributes:
        output_dir: the folder.
        postprocess: which kinds were asked for.
        json_traces, perfetto_traces, html_reports: the files of each kind, in the order of their names.
        command: what was run; empty for a capture inside the process.
        contents: how many launches, ranges and markers there are.
        events_per_warp: the most events of any warp, as the sizing pass counted them, or None.
        engine: "replay" or "inprocess".
    """

    output_dir: Path
    postprocess: str
    json_traces: tuple[Path, ...]
    perfetto_traces: tuple[Path, ...]
    html_reports: tuple[Path, ...]
    command: tuple[str, ...] = ()
    contents: Contents = field(default=Contents((), 0, 0), repr=False)
    events_per_warp: int | None = None
    engine: str = "replay"

    @property
    def trace_json(self) -> Path:
        """Return the one JSON trace.

        Raises:
            OptionError: none was asked for, or there are several.
        """
        return self._one(self.json_traces, "json", "json_traces")

    @property
    def perfetto(self) -> Path:
        """Return the one Perfetto file; raises as `trace_json` does."""
        return self._one(self.perfetto_traces, "perfetto", "perfetto_traces")

    @property
    def html(self) -> Path:
        """Return the one page; raises as `trace_json` does."""
        return self._one(self.html_reports, "html", "html_reports")

    @cached_property
    def trace(self) -> Trace:
        """Return the trace as typed columns, all processes in one, read when it is first asked for.

        Raises:
            OptionError: no JSON trace was asked for.
        """
        from ..tracing.load import load_trace

        if not self.json_traces:
            self._one((), "json", "json_traces")
        return load_trace(self.json_traces)

    @property
    def launches(self) -> Launches:
        """Return the table of launches, of all processes."""
        return self.trace.launches

    def _one(self, paths: tuple[Path, ...], kind: str, several: str) -> Path:
        if len(paths) == 1:
            return paths[0]
        if not paths:
            raise OptionError(
                f"no {kind} file was asked for (postprocess={self.postprocess!r})", remedy=f"ask for {kind!r} or 'all'"
            )
        raise OptionError(f"{len(paths)} processes were captured", remedy=f"{several} holds a file for each")


class Files(NamedTuple):
    """The files of each kind in a folder."""

    json: tuple[Path, ...] = ()
    perfetto: tuple[Path, ...] = ()
    html: tuple[Path, ...] = ()


def files_of(folder: Path) -> Files:
    """Return what a capture left in a folder."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    kinds = (options.ENDINGS[kind][0] for kind in Files._fields)
    return Files(*(tuple(path for path in paths if path.name.endswith(ending)) for ending in kinds))
