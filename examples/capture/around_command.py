# SPDX-License-Identifier: Apache-2.0
"""Capture a whole program, of any language, and print its slowest ranges.

Run: python examples/capture/around_command.py ./app argument ...
The shell's way is: iket-profile -o trace -- ./app argument ...
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np

import iket_rewrite


def main() -> int:
    """Profile the command line's own program."""
    command = sys.argv[1:] or [sys.executable, "examples/capture/torch_and_core.py"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            result = iket_rewrite.profile(command, output_dir=f"{folder}/trace", postprocess="json", timeout=300)
        except iket_rewrite.CaptureError as error:
            print(f"nothing was captured ({error.slug}): {error}", file=sys.stderr)
            return error.exit_code
        trace = result.trace
    took = trace.ranges.duration_ns
    print(f"{len(trace.launches)} launches, {len(took)} ranges, up to {result.events_per_warp} events per warp")
    for row in np.argsort(took)[::-1][:10]:
        launch = trace.warps.launch[trace.ranges.warp[row]]
        print(f"{took[row]:8} ns  {trace.names[trace.ranges.name[row]]:24} {trace.launches.kernel[launch]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
