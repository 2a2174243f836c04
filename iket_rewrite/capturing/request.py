# SPDX-License-Identifier: Apache-2.0
"""What is to be profiled, and how; everything is checked before anything runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import options


@dataclass(frozen=True)
class Request:
    """What is to be profiled, and how; everything is checked."""

    command: tuple[str, ...]
    target: Path
    postprocess: str
    clobber: bool
    folder: Path | None
    environment: Mapping[str, str]
    max_events_per_warp: int | None
    cluster: tuple[int, int, int] | None
    warp_lifetimes_only: bool
    keep: bool
    timeout: float | None

    @property
    def passes(self) -> int:
        """Return how often the command is run."""
        return 1 if self.warp_lifetimes_only else 2


def make_request(
    command: Sequence[str | os.PathLike[str]],
    *,
    output_dir: str | os.PathLike[str],
    postprocess: str,
    clobber: bool,
    cwd: str | os.PathLike[str] | None,
    max_events_per_warp: int | None,
    cluster: Sequence[int] | None,
    keep: bool,
    timeout: float | None,
    warp_lifetimes_only: bool,
    env: Mapping[str, str | os.PathLike[str]] | None = None,
) -> Request:
    """Check what the caller asks for; arguments as for `profile`."""
    return Request(
        command=tuple(options.check_command(command)),
        target=options.absolute(output_dir),
        postprocess=options.check_postprocess(postprocess),
        clobber=clobber,
        folder=None if cwd is None else Path(options.check_text(cwd, "cwd")),
        environment=options.merged(env),
        max_events_per_warp=options.check_count(max_events_per_warp, "max_events_per_warp"),
        cluster=options.check_cluster(cluster, warp_lifetimes_only=warp_lifetimes_only),
        warp_lifetimes_only=warp_lifetimes_only,
        # Without any file made of it, what run-iket makes on its way is the result.
        keep=keep or postprocess == "none",
        timeout=options.check_timeout(timeout),
    )
