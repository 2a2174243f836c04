# SPDX-License-Identifier: Apache-2.0
"""The public linter: text in, findings out.  It composes the stages and decides nothing itself."""

from __future__ import annotations

import os
from bisect import bisect_left

from ..errors import OptionError
from ..rewriting.core import find
from ..rewriting.scan import holds_metadata
from ..source import Source
from .branches import choices
from .finding import RULES, LintFinding
from .judging import Choice, judge
from .masking import blanked, mask
from .naming import check_names
from .parsing import parse
from .silence import Silence
from .sites import Site, find_sites

#: A text is not parsed beyond so many characters, which takes some seconds.
_LONGEST = 4_000_000
#: Rules that must hold whatever conditional compilation chooses: what another branch adds may be what is missing.
_EVERYWHERE = ("empty-range", "issue-time")


def lint(
    source: str | bytes, *, path: str | os.PathLike[str] | None = None, pedantic: bool = False
) -> tuple[LintFinding, ...]:
    """Look for annotations that do what their author hardly meant.

    Args:
        source: the text, or its bytes.
        path: the file that the text comes from, for messages.
        pedantic: look by the rules too that are off by default.

    Returns:
        The findings in the order of the text; those on a line with the comment `// iket-lint: off` are left out.

    Raises:
        AnnotationError: an annotation can not be understood.
        ToolError: tree-sitter is not installed.
        OptionError: the source is neither str nor bytes.
    """
    if not isinstance(source, (str, bytes)):
        raise OptionError(f"the source is {type(source).__name__}, not str or bytes")
    text = Source(source, os.fsdecode(path) if path is not None else None)
    if holds_metadata(text):
        return ()
    scanned, annotations = find(text)
    sites = find_sites(text, annotations)
    if not sites:
        return ()
    found = [*check_names([point for site in sites for point in site.points])]
    found += _flows(text, sites, frozenset(scanned.kernel_ends))
    kept = {
        (one.id, one.place.line, one.place.column): one
        for one in reversed(found)
        if (pedantic or RULES[one.id].by_default)
    }
    silence = Silence(text, sites)
    shown = (one for one in kept.values() if not silence.holds(one.place))
    return tuple(sorted(shown, key=lambda one: (one.place.line, one.place.column, one.id)))


def _flows(text: Source, sites: list[Site], kernels: frozenset[int]) -> list[LintFinding]:
    """Return what the rules find in the functions, for every choice of conditional compilation."""
    if len(text.logical) > _LONGEST:
        return [_given_up(sites, "the file is too long")]
    masked = mask(text, [(site.start, site.end) for site in sites])
    results: list[Choice] = []
    for left_out in choices(masked.directives, len(masked.text)):
        chosen = blanked(masked.text, left_out)
        root = parse(chosen)
        if root is None:
            return [_given_up(sites, "parsing it takes too long")]
        starts = [start for start, _ in left_out]
        present = [site for site in sites if not _is_left_out(site.start, starts, left_out)]
        results.append(judge(text, chosen, root, present, masked, kernels))
    return _merged(results)


def _given_up(sites: list[Site], why: str) -> LintFinding:
    return LintFinding("not-decided", f"no function of this file was looked at: {why}", sites[0].points[0].place)


def _is_left_out(at: int, starts: list[int], spans: tuple[tuple[int, int], ...]) -> bool:
    index = bisect_left(starts, at + 1) - 1
    return index >= 0 and at < spans[index][1]


def _merged(results: list[Choice]) -> list[LintFinding]:
    """Return the findings of all choices of branches."""
    merged = []
    for choice in results:
        for point, finding in choice.found:
            if finding.id == "not-decided":
                # Another choice of branches may have been readable.
                keep = point in choice.decided or all(point not in other.decided for other in results)
            elif finding.id in _EVERYWHERE:
                others = [other for other in results if point in other.decided]
                keep = all((point, finding.id) in other.keys for other in others)
            else:
                keep = True
            if keep:
                merged.append(finding)
    return merged
