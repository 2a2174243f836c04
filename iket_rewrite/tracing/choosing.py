# SPDX-License-Identifier: Apache-2.0
"""Which kernels a pattern means."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from ..errors import OptionError


def matching(names: Iterable[str], pattern: str | None) -> list[str]:
    """Return the names that a pattern (`*`, `?`) means; a whole name means itself, whatever characters are in it.

    Args:
        names: names of kernels.
        pattern: the pattern, or None for all of them.

    Raises:
        OptionError: it means none.
    """
    known = list(names)
    if pattern is None:
        return known
    # A name such as `gemm<int[4]>` is no set of characters.
    escaped = pattern.replace("[", "[[]")
    found = [name for name in known if fnmatchcase(name, escaped)]
    if not found:
        raise OptionError(f"no kernel's name matches {pattern!r}", remedy=f"the trace has {', '.join(known) or 'none'}")
    return found
