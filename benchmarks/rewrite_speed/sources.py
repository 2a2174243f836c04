# SPDX-License-Identifier: Apache-2.0
"""The sources that the benchmark rewrites, made from the text of real fixtures."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
#: Calls in each kernel of `generated_kernels`: four with tokens, three pops.
CALLS = 7
_TOKEN = re.compile(r"(__tl_iket_v1_)([A-Za-z0-9_-]+)")
_CALL = re.compile(r"^ *TL_IKET_EVENT\w*\(.*\);\n", re.MULTILINE)


def _gemm() -> tuple[str, str]:
    """Return what stands before the kernel of TileLang's pipelined GEMM for sm_90a, and the kernel."""
    text = (FIXTURES / "tilelang" / "gemm_sm_90a.cu").read_text(encoding="utf-8")
    start = text.index('extern "C" __global__')
    return text[:start], text[start:]


def _named(kernel: str, number: int) -> str:
    return kernel.replace("gemm_kernel", f"gemm_kernel_{number}")


def generated_kernels(count: int) -> str:
    """Return a module of `count` kernels as TileLang prints them: one kernel of a fixture under many names."""
    head, kernel = _gemm()
    return head + "".join(_named(kernel, number) for number in range(count))


def distinct_events(count: int) -> str:
    """Return the same, but each kernel's events have names of their own, so that no token stands twice."""
    head, kernel = _gemm()
    return head + "".join(_renamed(_named(kernel, number), number) for number in range(count))


def _renamed(kernel: str, number: int) -> str:
    def rename(match: re.Match[str]) -> str:
        body = match.group(2)
        event = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        event["name"] += f"_{number}"
        text = json.dumps(event, sort_keys=True, separators=(",", ":"))
        return match.group(1) + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    return _TOKEN.sub(rename, kernel)


def distinct_payloads(count: int, salt: int = 0) -> str:
    """Return `count` kernels with seven hand-written marks each; no payload expression stands twice.

    Another `salt` gives other expressions, which no cache has seen.
    """
    head, kernel = _gemm()
    kernel = _CALL.sub("MARK\n", kernel)
    kernels = []
    for number in range(count):
        lines = iter(
            f'IKET_MARK("step_{step}", IKET_I32((blockIdx.x * {number + 1} + {step}) % 64 + {salt}));'
            for step in range(CALLS)
        )
        kernels.append(re.sub("^MARK$", lambda _, lines=lines: next(lines), _named(kernel, number), flags=re.MULTILINE))
    return "#include <iket_rewrite/iket.cuh>\n" + head + "".join(kernels)


def without_annotations(count: int) -> str:
    """Return `generated_kernels` without any annotation."""
    return _CALL.sub("", generated_kernels(count))


def continued_lines(count: int) -> str:
    """Return a source without annotations whose statements run over lines that end with a backslash."""
    return without_annotations(count).replace(") ", ") \\\n")
