# SPDX-License-Identifier: Apache-2.0
"""Compare with NVIDIA's own parser, `iket.Context`, where its wheel is installed."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..errors import ToolError
from .check import ImageResult
from .containers import Image
from .cubin import Cubin
from .report import Finding, make_finding

_FOLDER = os.path.join("nvidia_cutlass_dsl", "dsl_packages")
_POP_NAME = "pop_range"
#: Findings that say themselves why NVIDIA's parser refuses an image.
_REFUSED = {
    "two-plans",
    "no-metadata",
    "undeclared-event",
    "bad-metadata",
    "name-not-utf8",
    "id-range",
    "mixed-methods",
}
#: Sites without a record, which it does not list.
_UNLISTED = {"stamp-missing", "undeclared-event"}


def runtime() -> Any:
    """Return the package `iket`; its wheel keeps it in a folder that only the umbrella package puts on the path.

    Raises:
        ToolError: it is not installed.
    """
    try:
        import iket
    except ImportError:
        found = next(
            (os.path.join(entry, _FOLDER) for entry in sys.path if os.path.isdir(os.path.join(entry, _FOLDER, "iket"))),
            None,
        )
        if found is None:
            raise ToolError(
                "NVIDIA's IKET runtime is not installed", remedy="pip install nvidia-cutlass-dsl-libs-base"
            ) from None
        sys.path.append(found)
        import iket
    return iket


def compare(image: Image, cubin: Cubin, result: ImageResult, *, file: str, strict: bool) -> list[Finding]:
    """Return where NVIDIA's parser sees other events, kernels or sites than we do."""
    try:
        kernels = {
            kernel.kernel_name: [point.event_attr.event_name for point in kernel.instrument_points]
            for kernel in runtime().Context(image.data).get_kernels_instrument_info()
        }
    # The parser throws what its C++ side throws.
    except (RuntimeError, ValueError) as error:
        if result.sites and _REFUSED.isdisjoint(finding.rule for finding in result.findings):
            return [
                make_finding(
                    "official-differs",
                    f"NVIDIA's parser refuses the image: {error}",
                    strict=strict,
                    file=file,
                    image=image.name,
                )
            ]
        return []
    findings = []
    ours: dict[str, list[str]] = {}
    for site in result.sites:
        if not _UNLISTED.isdisjoint(site.verdict.split()):
            continue
        ours.setdefault(site.kernel, []).append(_POP_NAME if site.name == "(pop)" else site.name or f"id {site.id}")
    for name in sorted(ours.keys() | {name for name, events in kernels.items() if events}):
        theirs, own = kernels.get(name, []), ours.get(name, [])
        judged = any(function.name == name for function in cubin.functions)
        if judged and theirs != own:
            findings.append(
                make_finding(
                    "official-differs",
                    f"NVIDIA's parser sees {len(theirs)} sites in {name}, we {len(own)}: {_difference(theirs, own)}",
                    strict=strict,
                    file=file,
                    image=image.name,
                    kernel=name,
                )
            )
    return findings


def _difference(theirs: list[str], own: list[str]) -> str:
    for position, (left, right) in enumerate(zip(theirs, own, strict=False)):
        if left != right:
            return f"number {position + 1} is {left!r} there, {right!r} here"
    longer = theirs if len(theirs) > len(own) else own
    return f"{longer[min(len(theirs), len(own))]!r} is on one side only"
