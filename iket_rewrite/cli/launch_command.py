# SPDX-License-Identifier: Apache-2.0
"""`iket-launch`: a compiler launcher for CMake, Ninja and Make; it rewrites what nvcc compiles and leaves all else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..building.toolkit import split_launched
from .nvcc_command import run_nvcc
from .run import run_command

_USAGE = """\
usage: iket-launch [LAUNCHER...] nvcc ARGUMENTS...

Rewrites the annotated sources that nvcc compiles, then runs the command on the copies.  Other compilers run unchanged.
  cmake -DCMAKE_CUDA_COMPILER_LAUNCHER=iket-launch ...
  cmake -DCMAKE_CUDA_COMPILER_LAUNCHER="iket-launch;ccache" ...    with a compiler cache, which stands behind
IKET=0 switches the marks off.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return run_command("iket-launch", lambda: _main(given))


def _main(command: list[str]) -> int:
    if not command or command[0] in ("-h", "--help"):
        print(_USAGE, end="", file=sys.stdout if command else sys.stderr)
        return 0 if command else 2
    split = split_launched(command)
    if split is None:
        from ..building.compiling import become

        become(command, [])
    return run_nvcc(*split)


if __name__ == "__main__":
    sys.exit(main())
