# SPDX-License-Identifier: Apache-2.0
"""Compile, launch and capture TIRx kernels for a test: run as `python tirx_workload.py FOLDER`.

Out: FOLDER/<kernel>.trace.json of each kernel, captured inside this process, and FOLDER/results.json with the largest
difference from PyTorch by kernel.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

import torch  # noqa: E402
import tvm_tirx  # noqa: E402
from tirx_frontend import kernels  # noqa: E402

import iket_rewrite  # noqa: E402
from iket_rewrite.tirx import IketProfiler  # noqa: E402


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    torch.cuda.synchronize()
    return float((found.double() - expected.double()).abs().max())


def two_tensors(run, expected) -> float:
    a, b = torch.arange(32, dtype=torch.float32, device="cuda"), torch.zeros(32, device="cuda")
    wanted = expected(a)
    run(a, b)
    return difference(b, wanted)


def every_payload(run) -> float:
    a = torch.arange(32, dtype=torch.float32, device="cuda") + 1.5
    run(a, (a * 2).half(), (a * 4).bfloat16())
    return 0.0


def tokens(run) -> float:
    return two_tensors(run, lambda a: sum((a + i) * i for i in range(4)))


LAUNCHES = {
    "affine": lambda run: two_tensors(run, lambda a: 2 * a + 1),
    "every_payload": every_payload,
    "tokens": tokens,
    "many": lambda run: two_tensors(run, lambda a: a + 1),
    "theirs": lambda run: two_tensors(run, lambda a: 2 * a + 1),
}


def main(folder: Path) -> None:
    differences = {}
    for name, launch in LAUNCHES.items():
        compiled = IketProfiler().compile(getattr(kernels, name), target="cuda")
        with iket_rewrite.capture(output=folder / f"{name}.trace.json"):
            differences[name] = launch(compiled)
    # A regular compilation of a kernel that was instrumented in this very process.
    plain = tvm_tirx.tirx.compile(tvm_tirx.IRModule.from_expr(kernels.affine), target="cuda")
    try:
        with iket_rewrite.capture():
            LAUNCHES["affine"](plain)
        regular = "events were captured"
    except iket_rewrite.CaptureError as error:
        regular = error.slug
    values = {"differences": differences, "regular": regular}
    (folder / "results.json").write_text(json.dumps(values), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
