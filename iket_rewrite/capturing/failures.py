# SPDX-License-Identifier: Apache-2.0
"""Every way in which nothing is captured, each with its slug, its words and its way out; nothing is looked for here.

Exit codes: 1 where the captured program has to change, 2 where the call or the machine has to.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import abi
from ..errors import CaptureError
from .wording import command_line, said, signal_name, some, triple

INSTALL = "pip install 'iket-rewrite[profile]'"
#: The slugs, in the order of the documentation; a test compares.
SLUGS = (
    "runtime-missing",
    "runtime-too-old",
    "runtime-changed",
    "no-gpu",
    "gpu-unsupported",
    "driver-unsupported",
    "other-profiler",
    "already-capturing",
    "no-launch",
    "not-instrumented",
    "too-many-events",
    "buffer-too-small",
    "cluster-missing",
    "first-pass-failed",
    "second-pass-failed",
    "timed-out",
    "run-iket-failed",
    "records-unreadable",
    "session-failed",
    "output-exists",
    "not-replayable",
    "not-captured-yet",
)


def runtime_missing(variable: str = "", why: str = "is not installed", printed: str = "") -> CaptureError:
    """NVIDIA's runtime is not there, or does not start; `variable` is the one that leads to it."""
    remedy = f"correct {variable}, or unset it to take the installed runtime; {INSTALL}" if variable else INSTALL
    return CaptureError(f"NVIDIA's IKET runtime {why}", slug="runtime-missing", remedy=remedy, output=printed)


def runtime_changed(version: str, where: str, found: Sequence[str]) -> CaptureError:
    """The runtime's files have other names than any release that is known."""
    names = ", ".join(found) or "nothing"
    return CaptureError(
        f"runtime {version} has renamed its files: {where} holds {names}",
        slug="runtime-changed",
        remedy="install a release that is known to work: pip install 'nvidia-cutlass-dsl-libs-base==4.8.1'",
    )


def runtime_too_old(version: str, wanted: str, since: str) -> CaptureError:
    """The runtime can not do what is asked."""
    return CaptureError(
        f"runtime {version} is too old for {wanted}",
        slug="runtime-too-old",
        remedy=f"pip install 'nvidia-cutlass-dsl-libs-base>={since}'",
    )


def no_sessions(version: str) -> CaptureError:
    """The runtime has no sessions inside the process."""
    error = runtime_too_old(version, "a capture inside the process", abi.SESSION_FIRST_RELEASE)
    error.remedy += ", or run the program under iket-profile, which works with this one"
    return error


def other_session_version(release: str, version: tuple[int, int]) -> CaptureError:
    """The runtime speaks another version of the interface."""
    return CaptureError(
        f"runtime {release} speaks version {version[0]}.{version[1]} of the session interface, "
        f"this release of iket-rewrite version {abi.SESSION_API_MAJOR}",
        slug="runtime-changed",
        remedy="update iket-rewrite, or run the program under iket-profile",
    )


def library_not_loaded(path: str, why: str) -> CaptureError:
    """The runtime's library can not be loaded."""
    if "libcuda" in why:
        return no_gpu("the driver's library libcuda.so.1 is not here")
    return CaptureError(
        f"{path} can not be loaded: {why}",
        slug="runtime-missing",
        remedy="pip install --force-reinstall nvidia-cutlass-dsl-libs-base",
    )


def no_gpu(why: str) -> CaptureError:
    """There is no GPU."""
    return CaptureError(
        f"there is no NVIDIA GPU to capture on: {why}",
        slug="no-gpu",
        remedy="run it where nvidia-smi lists a GPU; iket-profile --doctor tells what else is missing",
    )


def gpu_unsupported(devices: Sequence[str]) -> CaptureError:
    """No GPU is of a kind that the runtime supports."""
    return CaptureError(
        f"the runtime does not support this GPU: {', '.join(devices)}",
        slug="gpu-unsupported",
        remedy="it supports compute capability 9.0 and above (Hopper, Blackwell)",
    )


def driver_unsupported(messages: Sequence[str]) -> CaptureError:
    """The driver does not let the runtime in."""
    return CaptureError(
        f"the runtime could not set itself up with this driver: {said(messages)}",
        slug="driver-unsupported",
        remedy="update the driver, and end other profilers; iket-profile --doctor shows the versions",
    )


def other_profiler(who: str) -> CaptureError:
    """Another profiler has the GPU's profiling interface."""
    return CaptureError(
        f"another profiler is active: {who}",
        slug="other-profiler",
        remedy="IKET and a CUPTI tool can not record the same process: run the program without the other one",
    )


def already_capturing(what: str, remedy: str = "end the first one, or put both kernels into one block") -> CaptureError:
    """A capture is going on in this process."""
    return CaptureError(f"{what}: one process holds one capture at a time", slug="already-capturing", remedy=remedy)


def recorded_by_run_iket() -> CaptureError:
    """NVIDIA's run-iket, or our command around it, records this process."""
    remedy = "run the program without run-iket or iket-profile around it, or leave its own capture out"
    return already_capturing("run-iket records this process", remedy)


def no_launch_in_block() -> CaptureError:
    """No kernel was launched inside a block."""
    return CaptureError(
        "no kernel was launched in the block",
        slug="no-launch",
        exit_code=1,
        remedy="launch it between the block's begin and its end, in this process; a launch that fails does not count",
    )


def no_launch_by(program: str, output: str) -> CaptureError:
    """No kernel was launched by a program."""
    return CaptureError(
        f"{program} launched no kernel",
        slug="no-launch",
        exit_code=1,
        remedy="see that it gets as far as its launch with these arguments; a launch that fails does not count",
        output=output,
    )


def not_instrumented(kernels: Sequence[str]) -> CaptureError:
    """Kernels were launched, and none holds events."""
    remedy = (
        "annotate the kernel and compile the rewritten source, past caches of earlier builds; "
        "iket-verify says what a binary holds"
    )
    if kernels:
        seen = f"no launched kernel recorded an event; launched were {some(kernels)}"
    else:
        seen = "CUDA was used, and no launched kernel recorded an event"
        remedy += "; warp_lifetimes_only=True lists every kernel that is launched"
    return CaptureError(seen, slug="not-instrumented", exit_code=1, remedy=remedy)


def too_many_events(kernels: Sequence[str], budget: int | None, how: str, step: int) -> CaptureError:
    """Every warp had more events than its budget."""
    allowed = "its budget allows" if budget is None else f"{budget}, which its budget allows"
    larger = "a larger number" if budget is None else str(step * budget)
    return CaptureError(
        f"nothing of {some(kernels)} was recorded: every warp had more events than {allowed}",
        slug="too-many-events",
        exit_code=1,
        remedy=f"capture again with {how}{larger}, or more, a range being two events; iket-profile counts them",
    )


def buffer_too_small(size: int) -> CaptureError:
    """The device buffer holds no launch."""
    return CaptureError(
        f"the trace buffer on the device is too small: a launch needs {size:,} bytes",
        slug="buffer-too-small",
        exit_code=1,
        remedy=f"give buffer_bytes={size}, a smaller max_events_per_warp, or one cluster=(x, y, z)",
    )


def cluster_missing(wanted: Sequence[int], kernels: Sequence[str]) -> CaptureError:
    """The requested cluster does not exist."""
    return CaptureError(
        f"cluster {triple(wanted)} does not exist in {some(kernels)}: the runtime took cluster 0,0,0 in its place",
        slug="cluster-missing",
        exit_code=1,
        remedy="indices count clusters, not blocks, from 0; without clusters in the launch each block is one",
    )


def pass_failed(number: int, of: int, status: int, command: Sequence[str], output: str) -> CaptureError:
    """The profiled program failed in a pass."""
    role = "sizing" if number == 1 and of > 1 else "recording"
    ended = f"was ended by signal {signal_name(-status)}" if status < 0 else f"ended with status {status}"
    remedy = "run it without iket-profile: it must end with status 0 every time, as it runs twice"
    if number == 2:
        remedy = (
            "it ended well in the first pass, so it may not bear to run twice, or the patched kernel failed: "
            "iket-verify judges its binary, and more max_events_per_warp gives it room"
        )
    return CaptureError(
        f"{command_line(command)} {ended} in the {('first', 'second')[number - 1]} pass ({role})",
        slug=("first-pass-failed", "second-pass-failed")[number - 1],
        exit_code=1,
        remedy=remedy,
        output=output,
    )


def timed_out(seconds: float, where: str, output: str) -> CaptureError:
    """The profiled program did not end."""
    return CaptureError(
        f"it did not end within {seconds:g} s, {where}; all its processes were ended",
        slug="timed-out",
        exit_code=1,
        remedy="give more time (timeout=, --timeout), or less work: post-processing takes long for many events",
        output=output,
    )


def run_iket_failed(status: int | None, output: str) -> CaptureError:
    """`run-iket` itself failed."""
    return CaptureError(
        f"run-iket failed with status {status}, though the program did not",
        slug="run-iket-failed",
        remedy="its words are above; another release of the runtime may help",
        output=output,
    )


def no_artifact(wanted: Sequence[str], found: Sequence[str]) -> CaptureError:
    """`run-iket` ended well and wrote nothing that is known."""
    return CaptureError(
        f"run-iket ended well and wrote no {', '.join(wanted)}; it wrote {', '.join(found) or 'nothing'}",
        slug="runtime-changed",
        remedy="install a release that is known to work: pip install 'nvidia-cutlass-dsl-libs-base==4.8.1'",
    )


def session_failed(what: str, messages: Sequence[str]) -> CaptureError:
    """A call of the session interface failed."""
    return CaptureError(
        f"the runtime's session failed: {what}{f': {said(messages)}' if messages else ''}",
        slug="session-failed",
        remedy="iket-profile around the program is the other way; iket-profile --doctor shows what is installed",
    )


def records_unreadable(what: str) -> CaptureError:
    """The runtime can not read the records that it has made.

    Seen with runtime 4.8.1 on an H200 where a module of ExtendedNativeDump is captured for the first time in a later
    capture than another one.
    """
    return CaptureError(
        f"the runtime can not read its own records: {what}; it happens where modules with more than 30 events"
        " (ExtendedNativeDump) are captured for the first time in different captures of one process",
        slug="records-unreadable",
        remedy="launch each of those kernels in the first capture, give them one plan (--plan), keep to 30 events with"
        " method='native', or use iket-profile around the program",
    )


def output_exists(path: str) -> CaptureError:
    """The output is there already."""
    return CaptureError(
        f"{path}: exists already", slug="output-exists", remedy="name another one, or say clobber=True (--clobber)"
    )


def output_in_the_way(path: str, why: str) -> CaptureError:
    """What is where the output goes must not be replaced, whatever the caller says."""
    return CaptureError(f"{path}: {why}, and is not replaced", slug="output-exists", remedy="name another folder")


def not_replayable(why: str) -> CaptureError:
    """The program can not be started again from its own command line."""
    return CaptureError(
        f"this program can not be replayed: {why}",
        slug="not-replayable",
        remedy="use engine='inprocess', or profile() with a command",
    )


def not_captured_yet() -> CaptureError:
    """A capture is looked at before it ended."""
    return CaptureError(
        "the capture has not ended, or ended with an error",
        slug="not-captured-yet",
        remedy="look at it after the with block",
    )
