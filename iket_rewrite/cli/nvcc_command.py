# SPDX-License-Identifier: Apache-2.0
"""`iket-nvcc`: nvcc, on rewritten copies of the sources where these are annotated.

It has no options of its own, and imports next to nothing before it knows that there is something to rewrite.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from ..building.toolkit import cache_in_front, find_nvcc, is_off
from .run import run_command

_REMEDY = (
    'put the cache behind: CMAKE_CUDA_COMPILER_LAUNCHER="iket-launch;ccache", or IKET_NVCC="ccache nvcc" with iket-nvcc'
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # This process is short and has memory enough.
    gc.disable()
    return run_command("iket-nvcc", lambda: run_nvcc(find_nvcc(os.environ), given))


def run_nvcc(nvcc: Sequence[str], arguments: Sequence[str]) -> int:
    """Compile with the nvcc that the command names; return its exit code.

    Raises:
        IketError: a compiler cache has called us, or the sources can not be rewritten.
    """
    from ..building.compiling import become, compile_with

    if is_off(os.environ):
        become(nvcc, arguments)
    cache = cache_in_front(os.environ)
    if cache is not None:
        from ..errors import OptionError

        raise OptionError(
            f"{cache} stands in front of the rewriter: it would serve binaries of other annotations",
            remedy=_remedy(cache),
        )
    return compile_with(nvcc, arguments, os.environ, lambda text: print(text, file=sys.stderr))


def _remedy(cache: str) -> str:
    return _REMEDY.replace("ccache", cache)


if __name__ == "__main__":
    sys.exit(main())
