# SPDX-License-Identifier: Apache-2.0
"""Small projects that tests of programs share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

#: A chain: a source, a plain header beside it, an annotated header one folder up that defines a wrapper too.
BASIC = {
    "src/kernel.cu": """\
#include "plain.cuh"
#include <cstdio>

__global__ void kernel(int* out, int n)
{
    IKET_RANGE("kernel");
    helper(out, n);
    TRACE("traced");
    out[1] = OTHER;
}
""",
    "src/plain.cuh": '#pragma once\n#include "../include/marks.cuh"\n#include "other.cuh"\n',
    "src/other.cuh": "#define OTHER 3\n",
    "include/marks.cuh": """\
#pragma once
#include <iket_rewrite/iket.cuh>

#define TRACE(name) IKET_RANGE(name)

__device__ __forceinline__ void helper(int* out, int n)
{
    IKET_MARK("in helper", IKET_I32(n));
    out[0] = n;
}
""",
}


def write(files: Mapping[str, str], folder: Path | str = ".") -> None:
    """Write a project's files."""
    for path, text in files.items():
        whole = Path(folder) / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(text, encoding="utf-8")
