# SPDX-License-Identifier: Apache-2.0
"""The public reader: trace files in, one `Trace` out.  It composes the stages and decides nothing itself."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator

from .assembly import assemble
from .document import read_document
from .events import Tables, load_events
from .model import Process, Trace
from .reading import Paths, find_files, labels_of, pid_of, read_file


def load_trace(
    path_or_paths: Paths, *, events: Tables | None = None, progress: Callable[[float], None] | None = None
) -> Trace:
    """Read traces of NVIDIA's IKET runtime.

    Args:
        path_or_paths: a `.trace.json` file, plain or compressed with gzip, or the folder that `run-iket` wrote; or
            several, one for each process.  The current layout and the older one with names inline are read.
        events: the table that `iket-rewrite --events` wrote, or several: it gives events their source positions.
        progress: called with the share that has been read, 0 to 1.

    Returns:
        The trace as typed columns.  Stamps of several processes are not of one clock; see `align`.

    Raises:
        TraceError: a file can not be read, is damaged, or holds something impossible; the message names the place.
    """
    tables = load_events(events)
    files = find_files(path_or_paths)
    documents, processes = [], []
    with _collector_at_rest():
        for number, (path, label) in enumerate(zip(files, labels_of(files), strict=True)):
            one = read_document(path, read_file(path), _part(progress, number, len(files)))
            documents.append(one)
            processes.append(Process(path, pid_of(path), label, version=one.version, extra=one.extra.pop("")))
        return assemble(documents, processes, tables)


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep the cyclic collector from looking at millions of records that hold no cycles: a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _part(progress: Callable[[float], None] | None, number: int, count: int) -> Callable[[float], None] | None:
    if progress is None:
        return None
    return lambda share: progress((number + share) / count)
