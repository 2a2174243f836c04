# SPDX-License-Identifier: Apache-2.0
"""A trace as a page: one HTML file with its data, style and script inside, which asks nothing of anybody.

    trace -> what is shown (page_reduction) -> columns (page_columns), tables (page_tables) -> JSON -> template

Names of kernels and events are anybody's text.  They reach the page as JSON in which no `<` stands, are put into the
document as text only, and the page's own policy lets nothing run but the one script whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import __version__, abi
from ..verification.comparison import Comparison
from . import grouping
from .kinds import kind_name
from .model import COLOR_AUTOMATIC, Trace
from .page_code import chosen_code, code_findings, code_tables
from .page_columns import MARKER, Styles, columns
from .page_files import environment, script, style
from .page_reduction import LIMIT, Kept, choose
from .page_tables import kernel_tables, launch_tables
from .summary import KernelSummary, Summary, summarize


def render_page(
    trace: Trace,
    *,
    kernel: str | None = None,
    title: str = "",
    limit: int = LIMIT,
    progress: Callable[[float], None] | None = None,
    code: Comparison | None = None,
) -> str:
    """Return a trace as one self-contained HTML page.

    Args:
        trace: the trace.
        kernel: only kernels whose name matches this pattern (`*`, `?`).
        title: of the page; the names of the files without one.
        limit: ranges, markers and warps that are drawn; of larger traces the page says what is left out.
        progress: called with the share that is done, 0 to 1.
        code: what `compare_binaries` told of the binary that was captured; it is joined by names.

    Raises:
        OptionError: no kernel matches, or the binary holds none of the trace's.
    """
    heading = title or ", ".join(process.label for process in trace.processes) or "trace"
    data, launches = page_data(trace, kernel=kernel, limit=limit, progress=progress, code=code)
    light, dark, scripts = style("page.css"), style("dark.css"), script()
    return str(
        environment()
        .get_template("page.html.j2")
        .render(
            title=_clean(f"{heading} · iket"),
            heading=_clean(heading),
            generator=f"iket-rewrite {__version__}",
            tick=abi.TIMER_TICK_NS,
            style=light,
            style_hash=_digest(light),
            dark=dark,
            dark_hash=_digest(dark),
            script=scripts,
            script_hash=_digest(scripts),
            data=_json(data),
            launches=[_json(launch) for launch in launches],
        )
    )


def page_data(
    trace: Trace,
    *,
    kernel: str | None = None,
    limit: int = LIMIT,
    progress: Callable[[float], None] | None = None,
    code: Comparison | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what a page shows: about the trace, and of each launch its columns; plain values, ready for JSON."""
    advance = progress or (lambda share: None)
    found = _Summaries(trace, kernel)
    known = chosen_code(code, found.whole.kernels) if code else {}
    advance(0.4)
    launches = sorted(row for one in found.whole.kernels for row in one.launches)
    kept = choose(trace, launches, limit)
    styles, roles, parts = Styles(), _roles(trace, found.whole), []
    for place, one in enumerate(kept):
        parts.append(columns(trace, one, styles))
        parts[-1]["warps"]["role"] = roles[one.warps].tolist()
        advance(0.5 + 0.4 * place / len(kept))
    shown = [one.launch for one in kept]
    for part, tables in zip(parts, launch_tables(trace, found.whole, found.by_launch, shown), strict=True):
        part["tables"] = tables
    data = {
        "tick": abi.TIMER_TICK_NS,
        "styles": [_style_of(trace, *key) for key in styles.rows],
        "processes": [{"label": process.label, "path": process.path} for process in trace.processes],
        "kernels": [
            {
                "name": one.kernel,
                "short": short_name(one.kernel),
                "places": _places(trace, one.kernel, styles),
                "tables": [
                    *kernel_tables(one, found.by_role, found.by_payload),
                    *(code_tables(one, known[one.kernel]) if one.kernel in known else ()),
                ],
            }
            for one in found.whole.kernels
        ],
        "launches": [_launch(trace, found.whole.kernels, one) for one in kept],
        "first": next((place for place, one in enumerate(kept) if len(one.ranges) + len(one.markers)), 0),
        "findings": [
            {"severity": one.severity, "message": one.message, "remedy": one.remedy, "kernel": short_name(one.kernel)}
            for one in found.whole.findings
        ]
        + [
            {"severity": severity, "message": message, "remedy": "", "kernel": short_name(name)}
            for name, one in known.items()
            for severity, message in code_findings(one)
        ],
        "alignment": _alignment(trace),
        "left": _left_launches(len(kept), len(launches)),
    }
    return data, parts


class _Summaries:
    """The summary of the chosen kernels, and the divisions of it that have something to say (else None)."""

    def __init__(self, trace: Trace, kernel: str | None) -> None:
        self.whole = summarize(trace, kernel=kernel)
        kernels = self.whole.kernels
        several, roles = any(len(one.launches) > 1 for one in kernels), any(len(one.roles) > 1 for one in kernels)
        payloads = bool(np.any(trace.ranges.start_type))
        self.by_launch = summarize(trace, kernel=kernel, by="launch") if several else None
        self.by_role = summarize(trace, kernel=kernel, by="warp") if roles else None
        self.by_payload = summarize(trace, kernel=kernel, by="payload") if payloads else None


def short_name(kernel: str) -> str:
    """Return the name that a kernel has in its source, without scopes' arguments; a name that is not mangled as it is.

    Only what stands in every mangled name is read: lengths and identifiers.
    """
    found = re.match(r"_Z(N[KVr]*)?", kernel)
    if not found:
        return kernel
    at, parts = found.end(), []
    while number := re.match(r"(?:L|St)?(\d+)", kernel[at:]):
        first = at + number.end()
        at = first + int(number.group(1))
        if at > len(kernel):
            return kernel
        parts.append(kernel[first:at])
        if not found.group(1):
            break
    parts = [part for part in parts if not part.startswith("_GLOBAL__")]
    return "::".join(parts) or kernel


def _roles(trace: Trace, summary: Summary) -> Any:
    """Return for each warp the number of its role among those of its kernel."""
    found = np.zeros(len(trace.warps), np.int64)
    for one in summary.kernels:
        if len(one.roles) < 2:
            continue
        warps = np.concatenate([np.arange(len(trace.warps))[trace.launches.warps_of(row)] for row in one.launches])
        ranges = np.concatenate([np.arange(len(trace.ranges))[trace.launches.ranges_of(row)] for row in one.launches])
        _, found[warps] = grouping.find_roles(trace, warps, ranges)
    return found


def _style_of(trace: Trace, name: int, kind: int, color: int) -> dict[str, Any]:
    return {
        "name": trace.names[name],
        "kind": _kind(kind),
        "declared": None if color == COLOR_AUTOMATIC else f"#{color & abi.COLOR_HIGHEST:06x}",
    }


def _kind(kind: int) -> str:
    return abi.EventKind.MARK.value if kind == MARKER else kind_name(kind)


def _places(trace: Trace, kernel: str, styles: Styles) -> dict[int, list[str]]:
    found = {
        number: [str(place) for place in trace.places(_kind(kind), trace.names[name], kernel)]
        for (name, kind, _), number in styles.rows.items()
    }
    return {number: places for number, places in found.items() if places}


def _launch(trace: Trace, kernels: Sequence[KernelSummary], kept: Kept) -> dict[str, Any]:
    launches, row = trace.launches, kept.launch
    process = int(launches.process[row])
    kernel = next(number for number, one in enumerate(kernels) if one.kernel == launches.kernel[row])
    began = launches.start_ns[(launches.process == process) & (launches.start_ns > 0)]
    balance = next((one for one in kernels[kernel].balance if one.launch == row), None)
    ranges, markers, warps = launches.ranges_of(row), launches.markers_of(row), launches.warps_of(row)
    start = int(launches.start_ns[row])
    return {
        "kernel": kernel,
        "process": process,
        "number": row,
        "grid": launches.grid[row].tolist(),
        "block": launches.block[row].tolist(),
        "gridId": int(launches.grid_id[row]),
        "context": int(launches.context[row]),
        "graph": launches.graph[row],
        "cluster": f"only cluster ({','.join(map(str, launches.cluster[row].tolist()))})"
        if launches.single_cluster[row]
        else "",
        "start": start - int(began.min()) if start and len(began) else 0,
        "span": int(launches.end_ns[row]) - start,
        "ranges": ranges.stop - ranges.start,
        "markers": markers.stop - markers.start,
        "warps": warps.stop - warps.start,
        "left": _left(kept, ranges, markers),
        "balance": balance
        and {
            "ctas": balance.ctas,
            "sms": balance.sms,
            "imbalance": balance.cta_imbalance,
            "slowest": ",".join(map(str, balance.slowest_cta)),
            "tail": balance.tail_ns,
            "idle": balance.tail_idle,
        },
    }


def _left(kept: Kept, ranges: slice, markers: slice) -> str:
    """Say what of a launch is not drawn, "" where all of it is."""
    all_ranges, all_markers = ranges.stop - ranges.start, markers.stop - markers.start
    shown, total = kept.ctas
    if shown == total and not kept.longest:
        return ""
    how = "of which only the longest ranges" if kept.longest else "evenly spread, with the one that ends last"
    said = f"{shown:,} of {total:,} CTAs of this launch are, {how}: {len(kept.ranges):,} of {all_ranges:,} ranges"
    said += f", {len(kept.markers):,} of {all_markers:,} markers" if all_markers else ""
    return f"{said}. The tables count everything."


def _left_launches(shown: int, total: int) -> list[str]:
    if shown == total:
        return []
    return [
        f"{shown:,} of {total:,} launches are here: of every kernel the first, the last, and some between. The tables "
        "of all launches count everything."
    ]


def _alignment(trace: Trace) -> str:
    found = trace.alignment
    if found is None:
        return ""
    return (
        f"of all processes aligned on marker {found.marker} at {found.epochs} passes; they may be off by "
        f"{found.error_ns} ns"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(value: Any) -> str:
    # Plain ASCII: a name may hold what no encoding has (half a surrogate pair).  Not a number is no JSON.
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
