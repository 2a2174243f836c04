# SPDX-License-Identifier: Apache-2.0
"""A script with a main block: run as `python main_block.py FOLDER ENGINE`; FOLDER/log tells what ran, and where."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]
FOLDER, ENGINE = Path(sys.argv[1]), sys.argv[2]

import iket_rewrite  # noqa: E402


def note(what: str) -> None:
    with open(FOLDER / "log", "a", encoding="utf-8") as log:
        log.write(f"{what} {os.getpid()}\n")


note("module")


def workload() -> None:
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin())
    kernels.count(3)
    assert kernels.result(1) == [3]
    note("workload")


if __name__ == "__main__":
    result = iket_rewrite.run(workload, output_dir=FOLDER / "trace", engine=ENGINE, postprocess="all")
    note("after")
    values = {"engine": result.engine, "json": str(result.trace_json), "perfetto": str(result.perfetto)}
    (FOLDER / "results.json").write_text(json.dumps(values | {"html": str(result.html)}), encoding="utf-8")
