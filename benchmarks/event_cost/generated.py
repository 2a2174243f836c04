# SPDX-License-Identifier: Apache-2.0
"""What TileLang and TIRx generate from the examples, with marks and without: text for `resources.py`, no GPU needed.

python benchmarks/event_cost/generated.py tilelang|tirx ARCH FOLDER     in the environment that holds the package

Writes NAME.plain.cu and NAME.marked.cu for each example, and generated.json: what it is launched with, and the options
that its compiler gets.
"""

from __future__ import annotations

import json
import math
import os
import runpy
import sys
import types
import warnings
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def tilelang(arch: str, folder: Path) -> dict[str, dict]:
    """Lower TileLang's examples."""
    os.environ["TILELANG_CACHE_DIR"] = str(folder / "cache")  # read when TileLang is imported
    import cuda.core  # noqa: F401  (before TileLang, whose own import of it may come from two threads)
    import tilelang
    from tilelang.env import CUTLASS_INCLUDE_DIR, TILELANG_TEMPLATE_PATH
    from tvm.target import Target

    import iket_rewrite
    from iket_rewrite import tilelang as iket

    described = {}
    for name, program, size in (("elementwise", "add", 1024), ("gemm", "gemm", 512)):
        function = runpy.run_path(str(EXAMPLES / "tilelang" / f"{name}.py"))[program]
        with Target({"kind": "cuda", "arch": arch}), warnings.catch_warnings():
            # That TileLang has moved the copies out of their range is no news here.
            warnings.simplefilter("ignore", iket.IketWarning)
            with iket.session(runtime_payloads=True) as session:
                lowered = tilelang.lower(function(size))
        (record,), (kernel,) = session.kernels, lowered.device_mod.functions.values()
        _write(folder, f"tilelang_{name}", iket_rewrite.strip(record.original).text, record.source)
        extents = kernel.attrs["thread_extent"]
        described[f"tilelang_{name}"] = {
            "threads": math.prod(int(extents[axis]) for axis in extents if axis.startswith("threadIdx")),
            "dynamic": int(kernel.attrs.get("dyn_shared_memory_buf", 0)),
            # Those of TileLang's own compiler callback.
            "options": ["-std=c++20", f"-I{TILELANG_TEMPLATE_PATH}", f"-I{CUTLASS_INCLUDE_DIR}"],
        }
    return described


def tirx(arch: str, folder: Path) -> dict[str, dict]:
    """Lower TIRx's example."""
    import tvm_tirx.script  # noqa: F401  (it looks for PyTorch itself, so it comes before the stand-in)
    from tvm_tirx.target import Target

    import iket_rewrite
    from iket_rewrite.tirx import IketProfiler

    # The example needs PyTorch to launch its kernel, which is not done here.
    sys.modules.setdefault("torch", types.ModuleType("torch"))
    example = runpy.run_path(str(EXAMPLES / "tirx" / "affine.py"))
    compiled = IketProfiler().compile(example["affine"], target=Target({"kind": "cuda", "arch": arch}))
    (module,) = (module for module in compiled.mod.imports if module.kind == "cuda")
    _write(folder, "tirx_affine", iket_rewrite.strip(module.inspect_source()).text, compiled.rewrites[0].text)
    return {"tirx_affine": {"threads": example["THREADS"], "dynamic": 0, "options": ["-std=c++17"]}}


def _write(folder: Path, name: str, plain: str, marked: str) -> None:
    (folder / f"{name}.plain.cu").write_text(plain, encoding="utf-8")
    (folder / f"{name}.marked.cu").write_text(marked, encoding="utf-8")


def main() -> None:
    """Write the texts and their description."""
    which, arch, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    described = {"tilelang": tilelang, "tirx": tirx}[which](arch, folder)
    (folder / "generated.json").write_text(json.dumps(described), encoding="utf-8")


if __name__ == "__main__":
    main()
