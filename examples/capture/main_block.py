# SPDX-License-Identifier: Apache-2.0
"""Capture from a script's main block and publish files for viewers.

Run: python examples/capture/main_block.py trace              once, in this process
     python examples/capture/main_block.py trace replay       under run-iket, which starts this script twice more
"""

from __future__ import annotations

import sys

import iket_rewrite


def workload() -> None:
    """Everything that touches the GPU: with a replay it runs in each of two processes, with the other engine once."""
    from torch_and_core import square

    square()


if __name__ == "__main__":
    engine = sys.argv[2] if len(sys.argv) > 2 else "auto"
    result = iket_rewrite.run(workload, output_dir=sys.argv[1], engine=engine, clobber=True)
    print(result.engine, result.trace_json, result.perfetto, result.html, sep="\n")
