# SPDX-License-Identifier: Apache-2.0
"""Capture around a command: `run-iket` runs it twice, once to count events and once to record them.

It works in a fresh folder beside the output; only a whole result is published.  What went wrong is told from facts: how
each pass ended, what the sizing pass found, and which files are there.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from ..errors import OptionError
from . import budget, checking, failures, options, run_iket
from .contents import Contents, look_into, read_sizing, together
from .devices import Asking, Driver, require_gpu
from .evidence import Evidence, refuse_empty, refuse_failed
from .other_profilers import find_injected, is_replayed
from .processes import Group, StartError
from .publish import check_target, publish, staging, writing
from .request import Request, make_request
from .results import ProfileResult, files_of
from .streaming import Screen, Tail, read_passes

_RELAY = Path(__file__).with_name("relay.py")
#: What run-iket keeps beside its results.
_INTERMEDIATE = ("tracker", "gen-config", "iket")


def profile(
    command: Sequence[str | os.PathLike[str]],
    *,
    output_dir: str | os.PathLike[str],
    postprocess: str = "all",
    clobber: bool = False,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str | os.PathLike[str]] | None = None,
    max_events_per_warp: int | None = None,
    cluster: Sequence[int] | None = None,
    keep: bool = False,
    timeout: float | None = 600.0,
    warp_lifetimes_only: bool = False,
) -> ProfileResult:
    """Run a command under NVIDIA's run-iket and publish what it records; the command runs twice.

    Its output goes to standard output as it comes.

    Args:
        command: the program and its arguments, a list.
        output_dir: the folder for the result, which appears when it is whole.
        postprocess: which files: "json", "perfetto", "html", "all" or "none".
        clobber: replace a folder that is there; a run that fails leaves it as it is.
        cwd: where the command runs.
        env: changes to the environment.
        max_events_per_warp: how many events one warp of a launch may record; None is what the first pass counts.
        cluster: index (x, y, z) of the one cluster to record (runtime 4.8).
        keep: publish what run-iket makes on its way as well.
        timeout: seconds for all of it; None is no limit.
        warp_lifetimes_only: record only when each warp began and ended, of every kernel; the command runs once.

    Raises:
        CaptureError: nothing was recorded; the slug tells which (docs/capture.md).
        OptionError: an option can not be.
    """
    request = make_request(
        command,
        output_dir=output_dir,
        postprocess=postprocess,
        clobber=clobber,
        cwd=cwd,
        env=env,
        max_events_per_warp=max_events_per_warp,
        cluster=cluster,
        keep=keep,
        timeout=timeout,
        warp_lifetimes_only=warp_lifetimes_only,
    )
    return profile_request(request, sys.stdout)


def profile_request(request: Request, output: TextIO | None) -> ProfileResult:
    """Do it; the command's output goes to `output`."""
    _check(request)
    asking = Asking(request.environment)
    try:
        found = run_iket.find_run_iket()
    except BaseException:
        asking.close()
        raise
    return _profile(request, found, asking.answer(), output)


def _check(request: Request) -> None:
    if is_replayed():
        raise failures.recorded_by_run_iket()
    other = find_injected(request.environment)
    if other is not None:
        raise failures.other_profiler(other)
    check_target(request.target, clobber=request.clobber)
    where = request.folder or Path.cwd()
    if not os.path.isdir(where):
        raise OptionError(f"{where}: is no folder")
    _check_program(request.command[0], where, request.environment)


def _check_program(program: str, where: Path, environment: Mapping[str, str]) -> None:
    remedy = "name one that can be run"
    if os.sep not in program:
        if shutil.which(program, path=environment.get("PATH")) is not None:
            return
        if os.path.isfile(where / program):
            remedy = f"./{program} is the one in this folder, which PATH does not name"
        raise OptionError(f"{program}: there is no such program", remedy=remedy)
    path = where / program
    if not os.path.exists(path):
        raise OptionError(f"{program}: there is no such program", remedy=remedy)
    if os.path.isdir(path):
        raise OptionError(f"{program}: is a folder, not a program", remedy=remedy)
    if not os.access(path, os.X_OK):
        raise OptionError(
            f"{program}: is there, and must not be run", remedy=f"chmod +x {program}, or start it by its interpreter"
        )


def _profile(request: Request, found: run_iket.RunIket, driver: Driver, output: TextIO | None) -> ProfileResult:
    require_gpu(driver)
    with staging(request.target) as area, writing(request.target):
        raw = area / "run-iket"
        evidence = _run(request, found, area, raw, output)
        refuse_failed(request, evidence, raw)
        made = area / "made"
        made.mkdir()
        contents = _take(request, evidence, raw, made)
        advice = read_sizing(raw).advice
        budget.warn_of_dropped(
            evidence.messages,
            how=budget.HOW_TO_A_COMMAND,
            stacklevel=5,
        )
        publish(made, request.target, clobber=request.clobber)
    files = files_of(request.target)
    return ProfileResult(
        output_dir=request.target,
        postprocess=request.postprocess,
        json_traces=files.json,
        perfetto_traces=files.perfetto,
        html_reports=files.html,
        command=request.command,
        contents=contents,
        events_per_warp=advice,
    )


def _run(request: Request, found: run_iket.RunIket, area: Path, raw: Path, output: TextIO | None) -> Evidence:
    """Run run-iket to its end."""
    pipe, record, words = area / "output", area / "passes", area / "command.json"
    os.mkfifo(pipe)
    words.write_text(json.dumps(request.command), encoding="utf-8")
    relayed = [sys.executable, "-I", "-S", *map(str, (_RELAY, pipe, record, words))]
    line = run_iket.arguments(
        found,
        relayed,
        folder=raw,
        # The JSON is always made: it alone tells whether anything was recorded.
        postprocess="json" if request.postprocess in ("json", "none") else "all",
        max_events_per_warp=request.max_events_per_warp,
        cluster=request.cluster,
        warp_lifetimes_only=request.warp_lifetimes_only,
    )
    # A Python program in a pipe would keep its output to itself until it ends.
    environment = {"PYTHONUNBUFFERED": "1"} | dict(request.environment)
    printed, said, screen = Tail(), Tail(), Screen(output)
    try:
        with Group(line, pipe=pipe, folder=request.folder, environment=environment) as group:
            status = group.follow(
                timeout=request.timeout,
                on_pipe=lambda data: screen.write(printed.take(data)),
                on_output=said.take,
                on_tick=lambda: screen.show(_doing(record, request)),
            )
    except StartError as error:
        raise run_iket.unusable(str(error)) from None
    finally:
        screen.close()
    return Evidence(status, read_passes(record), printed, said)


def _doing(record: Path, request: Request) -> str:
    passes = read_passes(record)
    if not passes:
        return "starting run-iket"
    if len(passes) == request.passes and passes[-1].status is not None:
        return "writing the trace"
    return f"pass {len(passes)} of {request.passes}"


def _take(request: Request, evidence: Evidence, raw: Path, made: Path) -> Contents:
    """Take what was asked for out of run-iket's folder, once it is known to hold something.

    Raises:
        CaptureError: it holds nothing, or something else.
    """
    traces = {path: path.read_bytes() for path in files_of(raw).json}
    held = {path: look_into(data) for path, data in traces.items()}
    contents = together(list(held.values()))
    datas = list(traces.values())
    refuse_empty(request, evidence, raw, contents if datas else None)
    if request.cluster is not None:
        checking.refuse_other_cluster(datas, request.cluster)
    wanted = options.ENDINGS[request.postprocess]
    missing = [ending for ending in wanted if not any(path.name.endswith(ending) for path in raw.iterdir())]
    if missing:
        raise failures.no_artifact(missing, sorted(path.name for path in raw.iterdir()))
    # A process that used CUDA and launched nothing, such as a parent, is no part of the result.
    idle = tuple(_stem(path) for path, inside in held.items() if not inside.kernels)
    for path in sorted(raw.iterdir()):
        if (path.name.endswith(wanted or ("\0",)) and _stem(path) not in idle) or (
            request.keep and path.name in _INTERMEDIATE
        ):
            os.rename(path, made / path.name)
    return contents


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]
