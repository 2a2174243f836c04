# SPDX-License-Identifier: Apache-2.0
"""Traces: from a file of raw bits to answers.

    trace file -> load -> Trace (typed columns) -> summary, comparison, alignment, Perfetto and Chrome files

numpy carries the columns and msgspec reads the files, so both are needed here; the rest of the package does without.
"""

from __future__ import annotations

from ..errors import ToolError

try:
    import msgspec  # noqa: F401
    import numpy  # noqa: F401
except ImportError as missing:
    raise ToolError(
        f"reading traces needs numpy and msgspec ({missing})", remedy="pip install 'iket-rewrite[trace]'"
    ) from None
