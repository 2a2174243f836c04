# SPDX-License-Identifier: Apache-2.0
"""`run`: capture a callable from a script's `__main__` block, inside the process or by replaying the script.

Replayed, the script runs three times: here, and in each pass of run-iket, where `run` calls the workload and ends the
process.  So what stands before `run` happens in each, what stands behind it only here, after success.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import CaptureError, OptionError
from . import failures, options
from .around_command import profile
from .artifacts import can_write, write_artifacts
from .in_process import capture
from .other_profilers import is_replayed
from .publish import check_target, publish, staging, writing
from .results import ProfileResult, files_of
from .runtime import find_runtime

ENGINES = ("auto", "inprocess", "replay")
_NO_FILE = "it has no file that can be started again (a notebook, python -c, or standard input)"
_SECOND = "it has called run before, and that workload would be run again in place of this one"
_IN_THREAD = "run was called in a thread, which can not end the program behind the workload"


@dataclass
class _Earlier:
    """The calls of `run` in this process so far: a replayed process runs the workload of the first one, and ends."""

    came_back: bool = False
    failed: list[Callable[[], object]] = field(default_factory=list)

    def stands_before(self, workload: Callable[[], object]) -> bool:
        """Say whether a replay would run something else; the same workload may be tried again after a failure."""
        return self.came_back or any(one is not workload for one in self.failed)


_earlier = _Earlier()


def run(
    workload: Callable[[], object],
    *,
    output_dir: str | os.PathLike[str],
    postprocess: str = "all",
    clobber: bool = False,
    engine: str = "auto",
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | os.PathLike[str]] | None = None,
    max_events_per_warp: int | None = None,
    cluster: Sequence[int] | None = None,
    keep: bool = False,
    timeout: float | None = 600.0,
) -> ProfileResult:
    """Run a callable and capture what it launches.

    Args:
        workload: a callable without arguments: compile, launch and check in it.
        output_dir, postprocess, clobber, max_events_per_warp, cluster: as for `profile`.
        engine: "inprocess" calls the workload once, here.  "replay" runs this script under run-iket, which calls it in
            each of two passes; module-level code then runs in each of three processes, and what follows `run` only in
            this one.  "auto" is "inprocess" where the runtime can (4.8) and nothing below is asked for, else "replay".
        cwd, env, keep, timeout: of the replayed script.

    Raises:
        CaptureError: nothing was recorded, or this program can not be replayed.
        OptionError: an option can not be.
    """
    if not callable(workload):
        raise OptionError(f"the workload must be callable, not {workload!r}")
    if engine not in ENGINES:
        raise OptionError(f"unknown engine {engine!r}", remedy=f"choose one of {', '.join(ENGINES)}")
    options.check_postprocess(postprocess)
    if is_replayed():
        workload()
        raise SystemExit(0)
    only_replay = cwd is not None or env is not None or keep or postprocess == "none" or timeout != 600.0
    if engine == "inprocess" and only_replay:
        raise OptionError("cwd, env, keep, timeout and postprocess='none' need engine='replay'")
    target = options.absolute(output_dir)
    if engine == "inprocess" or (engine == "auto" and not only_replay and _can_capture_here(postprocess)):
        check_target(target, clobber=clobber)
        with _remembered(workload):
            return _in_process(workload, target, postprocess, clobber, max_events_per_warp, cluster)
    command = _replay_command(workload)
    with _remembered(workload):
        return profile(
            command,
            output_dir=target,
            postprocess=postprocess,
            clobber=clobber,
            cwd=cwd,
            env=env,
            max_events_per_warp=max_events_per_warp,
            cluster=cluster,
            keep=keep,
            timeout=timeout,
        )


@contextlib.contextmanager
def _remembered(workload: Callable[[], object]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _earlier.failed.append(workload)
        raise
    _earlier.came_back = True


def _can_capture_here(postprocess: str) -> bool:
    """Say whether the runtime has sessions, and the packages that write what is asked for are there."""
    try:
        runtime = find_runtime()
    except CaptureError:
        return False
    return runtime.header is not None and can_write(postprocess)


def _in_process(
    workload: Callable[[], object],
    target: Path,
    postprocess: str,
    clobber: bool,
    max_events_per_warp: int | None,
    cluster: Sequence[int] | None,
) -> ProfileResult:
    with staging(target) as area:
        made = area / "made"
        with capture(max_events_per_warp=max_events_per_warp, cluster=cluster, output=made) as captured:
            workload()
        contents = captured.contents
        if set(options.ENDINGS[postprocess]) != {".trace.json"}:
            with writing(target):
                write_artifacts(captured.trace, captured.path, postprocess)
        publish(made, target, clobber=clobber)
    files = files_of(target)
    return ProfileResult(
        output_dir=target,
        postprocess=postprocess,
        json_traces=files.json,
        perfetto_traces=files.perfetto,
        html_reports=files.html,
        contents=contents,
        engine="inprocess",
    )


def _replay_command(workload: Callable[[], object]) -> tuple[str, ...]:
    """Return the command line that started this program, where it leads to the same callable again.

    Raises:
        CaptureError: it does not.
    """
    if _earlier.stands_before(workload):
        raise failures.not_replayable(_SECOND)
    if threading.current_thread() is not threading.main_thread():
        raise failures.not_replayable(_IN_THREAD)
    while isinstance(workload, functools.partial):
        workload = workload.func
    module = sys.modules.get("__main__")
    path = getattr(module, "__file__", None)
    if path is None or not os.path.isfile(path):
        raise failures.not_replayable(_NO_FILE)
    if getattr(workload, "__module__", None) != "__main__":
        raise failures.not_replayable("the workload is not defined in the script that was started")
    source = inspect.getsourcefile(inspect.unwrap(workload)) if inspect.isfunction(workload) else path
    if source is None or not os.path.samefile(source, path):
        raise failures.not_replayable("the workload is defined in another file than the script")
    if sys.flags.interactive:
        raise failures.not_replayable("the interpreter was started with -i, and would wait for input")
    # The interpreter by its whole path: the replayed script may run in another folder, with another PATH.
    return (sys.executable, *sys.orig_argv[1:])
