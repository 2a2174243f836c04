# SPDX-License-Identifier: Apache-2.0
"""What one event costs, in nanoseconds: every form of it, with every payload, in empty loops and in dependent chains.

python benchmarks/event_cost/run.py [--output FILE] [--raw FILE]       needs a GPU; README.md says what is measured
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path

import iket_rewrite

sys.path.insert(0, str(Path(__file__).parent))
from forms import CUTE_DSL, FORMS, NOTHING, Case, cases, compile_form

LAUNCHES = 8
#: Turns of the loop: not captured, and captured, where each event is a record.
TURNS, CAPTURED_TURNS = 2048, 64
THREADS = 128
#: One warp; and as many blocks as fill the GPU (not captured) or as a capture can hold (captured).
GRIDS = {"one warp": (1, 32), "full": (528, THREADS)}
CAPTURED_GRIDS = {"one warp": (1, 32), "full": (16, THREADS)}
#: Two results of one form differ by so many nanoseconds from run to run, at least.
RESOLUTION = 0.3

#: Results by (case, grid, captured or not), then by form: nanoseconds per event of each launch.
Results = dict[tuple[Case, str, str], dict[str, list[float]]]


class Machine:
    """A stream, a buffer, and the time between two points of the stream."""

    def __init__(self) -> None:
        from cuda.bindings import driver
        from cuda.core import Device

        self.driver = driver
        self.device = Device()
        self.device.set_current()
        self.stream = self.device.create_stream()
        capability = self.device.compute_capability
        self.arch = f"sm_{capability.major}{capability.minor}a"
        self.buffer = int(self.check(driver.cuMemAlloc(4 * 528 * THREADS)))
        self.check(driver.cuMemsetD8(self.buffer, 0, 4 * 528 * THREADS))
        self.began, self.ended = (self.check(driver.cuEventCreate(0)) for _ in range(2))

    @staticmethod
    def check(result):
        """Return what a call of the driver returns beside its status, which must be success."""
        code, *values = result
        assert int(code) == 0, code
        return values[0] if values else None

    def load(self, cubin: bytes):
        """Load a binary; return the module and the measured kernel."""
        from cuda.core import ObjectCode

        module = ObjectCode.from_cubin(cubin)
        # The module lives as long as its kernel does: the runtime reads captured ones again.
        return module, module.get_kernel("measured")

    def launch(self, kernel, grid: tuple[int, int], turns: int) -> None:
        """Launch; do not wait."""
        from cuda.core import LaunchConfig, launch

        config = LaunchConfig(grid=(grid[0],), block=(grid[1],))
        launch(self.stream, config, kernel, ctypes.c_uint64(self.buffer), ctypes.c_uint32(turns))

    def nanoseconds(self, kernel, grid: tuple[int, int], turns: int) -> float:
        """Launch, wait, and return how long the kernel took."""
        handle = self.driver.CUstream(int(self.stream.handle))
        self.check(self.driver.cuEventRecord(self.began, handle))
        self.launch(kernel, grid, turns)
        self.check(self.driver.cuEventRecord(self.ended, handle))
        self.check(self.driver.cuEventSynchronize(self.ended))
        return 1e6 * self.check(self.driver.cuEventElapsedTime(self.began, self.ended))


def rotated(forms: list[str], by: int) -> list[str]:
    """Return the forms in another order each time, so that none profits from its place."""
    by %= len(forms)
    order = forms[by:] + forms[:by]
    return order[::-1] if by % 2 else order


def measure_plain(machine: Machine, case: Case, kernels: dict, results: Results) -> None:
    """Measure without a capture: the kernel's time, less that of the loop without events."""
    for grid, size in GRIDS.items():
        times = defaultdict(list)
        for form in kernels:
            machine.nanoseconds(kernels[form][1], size, TURNS)
        for number in range(LAUNCHES):
            for form in rotated(list(kernels), number):
                times[form].append(machine.nanoseconds(kernels[form][1], size, TURNS))
        base = min(times[NOTHING])
        for form in kernels:
            results[case, grid, "not captured"][form] = [(one - base) / TURNS for one in times[form]]


def measure_captured(machine: Machine, case: Case, kernels: dict, results: Results) -> None:
    """Measure in a capture: the median over warps of the loop's range, less that of the loop without events."""
    for grid, size in CAPTURED_GRIDS.items():
        order: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.trace.json"
            with iket_rewrite.capture(output=path):
                for number in range(LAUNCHES):
                    for form in rotated(list(kernels), number):
                        machine.launch(kernels[form][1], size, CAPTURED_TURNS)
                        order.append(form)
                machine.stream.sync()
            trace = json.loads(path.read_bytes())
        launches = sorted(trace["launches"], key=lambda launch: min(one["startTs"] for one in launch["ranges"]))
        assert len(launches) == len(order)
        times = defaultdict(list)
        for form, launch in zip(order, launches, strict=True):
            assert len(launch["markers"]) == (0 if form == NOTHING else CAPTURED_TURNS * len(launch["ranges"]))
            times[form].append(statistics.median(one["endTs"] - one["startTs"] for one in launch["ranges"]))
        base = min(times[NOTHING])
        for form in kernels:
            results[case, grid, "captured"][form] = [(one - base) / CAPTURED_TURNS for one in times[form]]


def compiled(arch: str) -> dict[tuple[Case, str], bytes]:
    """Compile everything, on all cores."""
    every = [(case, form) for case in cases() for form in FORMS]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        done = pool.map(compile_form, *zip(*[(form, case, arch) for case, form in every], strict=True))
        return dict(zip(every, done, strict=True))


def table(results: Results) -> list[str]:
    """Return the rows: median and spread of each form."""
    forms = [form for form in FORMS if form != NOTHING]
    lines = [f"| row | {' | '.join(forms)} |", "| --- |" + " --- |" * len(forms)]
    for (case, grid, how), found in results.items():
        cells = []
        for form in forms:
            values = found[form]
            middle, spread = statistics.median(values), (max(values) - min(values)) / 2
            cells.append(f"{middle:.1f} ± {spread:.1f}")
        lines.append(f"| {case}; {grid}; {how} | {' | '.join(cells)} |")
    return lines


def verdict(results: Results) -> list[str]:
    """Return each form's sum, and in how many rows it is above CuTe DSL's by more than both spreads."""
    forms = [form for form in FORMS if form != NOTHING]
    lines = ["| form | sum of the medians | rows above CuTe DSL's beyond the spread | the worst of them |"]
    lines.append("| --- | --- | --- | --- |")
    for form in forms:
        total, above = 0.0, []
        for (case, grid, how), found in results.items():
            mine, theirs = statistics.median(found[form]), statistics.median(found[CUTE_DSL])
            spread = max(RESOLUTION, *((max(one) - min(one)) / 2 for one in (found[form], found[CUTE_DSL])))
            total += mine
            if mine > theirs + spread:
                above.append((mine - theirs, f"{case}; {grid}; {how}: {mine:.1f} against {theirs:.1f}"))
        lines.append(f"| {form} | {total:.0f} ns | {len(above)} of {len(results)} | {max(above)[1] if above else ''} |")
    return lines


def driver_release() -> str:
    """Return the release of NVIDIA's driver."""
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def nvrtc_release() -> str:
    """Return the release of the compiler: its assembler decides how an event looks."""
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    return f"{major}.{minor}"


def main() -> int:
    """Measure everything; print the page, and write it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="write the page here too")
    parser.add_argument("--raw", type=Path, help="write every single result here, as JSON")
    options = parser.parse_args()
    # The processes that compile are started before CUDA is: it does not survive a fork.
    binaries = compiled(os.environ.get("EVENT_COST_ARCH", "sm_90a"))
    machine = Machine()
    results: Results = defaultdict(dict)
    kept = []
    for case in cases():
        kernels = {form: machine.load(binaries[case, form]) for form in FORMS}
        kept.append(kernels)
        measure_plain(machine, case, kernels, results)
    for case, kernels in zip(cases(), kept, strict=True):
        measure_captured(machine, case, kernels, results)
    versions = {name: metadata.version(name) for name in ("iket-rewrite", "cuda-core", "nvidia-cutlass-dsl-libs-base")}
    lines = ["# What an event costs", "", "Made by `benchmarks/event_cost/run.py`; its README says what is measured."]
    lines += ["", f"* GPU: {machine.device.name}, driver {driver_release()}", f"* NVRTC: {nvrtc_release()}"]
    lines += [f"* system: {platform.system()} {platform.machine()}", f"* Python: {platform.python_version()}"]
    lines += [f"* {name}: {version}" for name, version in versions.items()]
    lines += [
        f"* launches of each: {LAUNCHES}",
        "",
        *verdict(results),
        "",
        "Nanoseconds per event, median ± spread:",
        "",
    ]
    text = "\n".join([*lines, *table(results), ""])
    print(text)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    if options.raw:
        rows = [{"case": str(case), "grid": grid, "how": how, **found} for (case, grid, how), found in results.items()]
        options.raw.write_text(json.dumps(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
