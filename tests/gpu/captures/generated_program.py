# SPDX-License-Identifier: Apache-2.0
"""Compile, launch and capture the generated programs.

python generated_program.py FOLDER MODULES CAPTURES      leaves FOLDER/results.json, and the traces
"""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from generated.interpreting import INPUT  # noqa: E402
from generated.making import make_module  # noqa: E402
from generated.printing import source  # noqa: E402

import iket_rewrite  # noqa: E402

#: Programs record no more than `making.LONGEST` events in a warp.
BUDGET = 256


def compiled(job: tuple[int, str]) -> bytes:
    """Rewrite and compile a module; runs in a process of its own."""
    from toolbox import nvrtc

    seed, arch = job
    return nvrtc(iket_rewrite.rewrite(source(make_module(seed))).text, arch)


def capability() -> str:
    """Return the architecture of the device that is here."""
    from gpu.captures.launching import begin

    found = begin().compute_capability
    return f"sm_{found.major}{found.minor}a"


def main(folder: Path, modules: int, captures: int) -> None:
    # Processes that start before CUDA does, and ask no device.
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(modules, os.cpu_count() or 1)) as pool:
        arch = pool.apply(capability)
        cubins = pool.map(compiled, [(seed, arch) for seed in range(modules)], chunksize=1)
    results = capture_all(folder, cubins, captures)
    (folder / "results.json").write_text(json.dumps(results | {"arch": arch}), encoding="utf-8")


def capture_all(folder: Path, cubins: list[bytes], captures: int) -> dict:
    """Launch every program, a share of the modules in each capture."""
    from cuda.bindings import driver
    from cuda.core import ObjectCode
    from gpu.captures.launching import begin, check

    device = begin()
    stream = device.create_stream()
    # The runtime reads captured modules again at the next capture, so they all stay loaded.
    loaded = [ObjectCode.from_cubin(cubin) for cubin in cubins]
    data = (ctypes.c_uint32 * len(INPUT))(*INPUT)
    address = int(check(driver.cuMemAlloc(ctypes.sizeof(data))))
    check(driver.cuMemcpyHtoD(address, ctypes.addressof(data), ctypes.sizeof(data)))
    outputs: dict[str, list[int]] = {}
    share = -(-len(loaded) // captures)
    for number in range(captures):
        pending = []
        with iket_rewrite.capture(output=str(folder / f"part_{number}.trace.json"), max_events_per_warp=BUDGET):
            for seed in range(number * share, min((number + 1) * share, len(loaded))):
                pending += [(one, started(one, loaded[seed], stream, address)) for one in make_module(seed).programs]
            stream.sync()
        for program, output in pending:
            outputs[program.name] = words(output, 32 * program.warps * program.blocks)
    return {"outputs": outputs, "input": address}


def started(program, module, stream, address: int) -> int:
    """Launch a program; return the address of its results."""
    from cuda.bindings import driver
    from cuda.core import LaunchConfig, launch
    from gpu.captures.launching import check

    output = int(check(driver.cuMemAlloc(4 * 32 * program.warps * program.blocks)))
    config = LaunchConfig(grid=(program.blocks,), block=(32 * program.warps,))
    arguments = (ctypes.c_uint64(address), ctypes.c_uint64(output), ctypes.c_uint32(program.n))
    launch(stream, config, module.get_kernel(program.name), *arguments)
    return output


def words(address: int, count: int) -> list[int]:
    """Return words of the device's memory."""
    from cuda.bindings import driver
    from gpu.captures.launching import check

    found = (ctypes.c_uint32 * count)()
    check(driver.cuMemcpyDtoH(ctypes.addressof(found), address, 4 * count))
    return list(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
