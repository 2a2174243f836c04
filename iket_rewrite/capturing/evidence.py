# SPDX-License-Identifier: Apache-2.0
"""How a run of run-iket went, and what is wrong with it: told from how each pass ended and which files are there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import CaptureError
from . import budget, failures, options
from .contents import Contents, read_sizing
from .messages import words_of
from .request import Request
from .streaming import Pass, Tail
from .wording import command_line

#: What run-iket, releases 4.6.0 to 4.8.1, fails for where no launch was counted; its traceback tells nobody anything.
_NO_NUMBER = "recommended_max_ts_cnt_per_warp is not found"


@dataclass(frozen=True)
class Evidence:
    """How it went."""

    status: int | None
    passes: list[Pass]
    output: Tail
    said: Tail

    @property
    def everything(self) -> str:
        """Return the end of what the program printed, and of what run-iket did."""
        return "\n".join(filter(None, (self.output.text, self.said.text)))

    @property
    def messages(self) -> list[str]:
        """Return what the runtime said, which prints among the program's own output."""
        return [words for line in self.output.lines if (words := words_of(line)) is not None]


def refuse_failed(request: Request, evidence: Evidence, raw: Path) -> None:
    """Refuse a run that did not end well.

    Raises:
        CaptureError: it took too long, the command failed in one of its passes, or run-iket did.
    """
    passes = evidence.passes
    if evidence.status is None and request.timeout is not None:
        where = f"in pass {len(passes)} of {request.passes}" if passes else "before the first pass"
        if passes and passes[-1].status is not None:
            where = f"after pass {len(passes)} of {request.passes}"
        raise failures.timed_out(request.timeout, where, evidence.output.text)
    for number, one in enumerate(passes, 1):
        if one.status:
            raise failures.pass_failed(number, request.passes, one.status, request.command, evidence.output.text)
    if evidence.status != 0:
        sizing = read_sizing(raw)
        # Without an event to count, run-iket of some releases fails between the passes.
        if len(passes) == 1 and request.passes > 1 and not any((raw / "iket").glob("*")):
            if not sizing.kernels:
                expected = _NO_NUMBER in evidence.said.text
                raise _no_launch(request, evidence.output.text if expected else evidence.everything)
            if sizing.advice is None:
                raise failures.not_instrumented(sizing.kernels)
        raise failures.run_iket_failed(evidence.status, evidence.said.text)


def _no_launch(request: Request, output: str) -> CaptureError:
    return failures.no_launch_by(command_line(request.command), output)


def refuse_empty(request: Request, evidence: Evidence, raw: Path, contents: Contents | None) -> None:
    """Refuse a run that ended well and recorded nothing; `contents` is None where no trace was written.

    Raises:
        CaptureError: the program launched no kernel, none that holds events, or the runtime writes other files.
    """
    sizing = read_sizing(raw)
    seen = [*sizing.kernels, *(contents.kernels if contents else ())]
    if contents is None:
        if not seen and not any((raw / "iket").glob("pid*")) and raw.is_dir():
            raise _no_launch(request, evidence.output.text)
        wanted = options.ENDINGS[request.postprocess] or options.ENDINGS["json"]
        raise failures.no_artifact(wanted, sorted(path.name for path in raw.rglob("*")) if raw.is_dir() else ())
    if contents.events or (request.warp_lifetimes_only and contents.kernels):
        return
    if not seen:
        raise _no_launch(request, evidence.output.text)
    budget.refuse_all_dropped(contents, evidence.messages, how=budget.HOW_TO_A_COMMAND)
    raise failures.not_instrumented(seen)
