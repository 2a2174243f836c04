# SPDX-License-Identifier: Apache-2.0
"""Programs that capture inside themselves; a process can be captured in one way only, so each runs alone.

python programs.py NAME FOLDER      leaves FOLDER/results.json, and traces
"""

from __future__ import annotations

import json
import sys
import threading
import warnings
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

import iket_rewrite  # noqa: E402
from iket_rewrite import CaptureError  # noqa: E402

FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else Path()


def kept(name: str) -> str:
    return str(FOLDER / f"{name}.trace.json")


def slug_of(work) -> str:
    """Return the slug of the error that work ends with."""
    try:
        work()
    except CaptureError as error:
        return error.slug
    return "none"


def before_cuda() -> dict:
    """The block begins before anything of CUDA is loaded, and ends without waiting for the kernel."""
    assert "cuda.bindings.driver" not in sys.modules
    with iket_rewrite.capture(output=kept("only")) as captured:
        from gpu.captures.launching import Kernels, begin

        kernels = Kernels(begin())
        kernels.count(3)
    return {"buffer": kernels.result(4 * 64), "launches": len(captured.launches), "text": repr(captured)}


def after_cuda() -> dict:
    """CUDA is initialised, the module loaded and the kernel launched before the block begins."""
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin())
    kernels.count(9)
    kernels.result(1)
    with iket_rewrite.capture(output=kept("only")):
        kernels.count(3)
    return {"buffer": kernels.result(4 * 64)}


def in_a_row() -> dict:
    """Three captures, launches between them, an exception in one, and temporary files."""
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin())
    with iket_rewrite.capture(output=kept("first")):
        kernels.count(3)
    kernels.count(7)
    try:
        with iket_rewrite.capture(output=kept("failed")):
            kernels.count(11)
            raise KeyError("the block's own")
    except KeyError as error:
        raised = str(error)
    with iket_rewrite.capture(output=FOLDER / "second") as second:
        kernels.count(5, grid=2)
        kernels.count(6, grid=1)
    with iket_rewrite.capture() as third:
        kernels.count(1)
    temporary = third.path
    found = {"raised": raised, "second": str(second.path), "third": third.contents.markers, "was": temporary.exists()}
    del third
    return found | {"failed": Path(kept("failed")).exists(), "is": temporary.exists(), "sum": kernels.result(1)}


def many_events(module: int):
    """Return a launch of a kernel with 40 marks of its own, which take ExtendedNativeDump; the module stays loaded."""
    from cuda.core import LaunchConfig, Program, ProgramOptions, launch
    from gpu.captures.launching import begin

    device = begin()
    marks = "\n".join(f'IKET_MARK("{module}: {number}", IKET_I32({number}));' for number in range(40))
    text = f'#include <iket_rewrite/iket.cuh>\nextern "C" __global__ void many_{module}() {{\n{marks}\n}}\n'
    major, minor = device.compute_capability
    options = ProgramOptions(arch=f"sm_{major}{minor}a", std="c++17", include_path=[iket_rewrite.include_dir()])
    loaded = Program(iket_rewrite.rewrite(text).text, "c++", options).compile("cubin")
    stream = device.create_stream()

    def start() -> None:
        launch(stream, LaunchConfig(grid=(1,), block=(32,)), loaded.get_kernel(f"many_{module}"))
        stream.sync()

    return start


def markers_of(*launches) -> int:
    """Capture launches; return how many markers were recorded."""
    with iket_rewrite.capture() as captured:
        for start in launches:
            start()
    return captured.contents.markers


def many_events_in_turn() -> dict:
    """Two modules of ExtendedNativeDump, the second one met in the second capture."""
    first, second = many_events(1), many_events(2)
    return {"first": markers_of(first), "second": slug_of(lambda: markers_of(second))}


def many_events_together() -> dict:
    """The same, both met in the first capture, and each again on its own."""
    first, second = many_events(1), many_events(2)
    return {"markers": [markers_of(first, second), markers_of(second), markers_of(first), markers_of(second, first)]}


def nested() -> dict:
    """A second capture at the same time, here and in another thread; the first one goes on."""
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin())
    slugs: list[str] = []
    with iket_rewrite.capture(output=kept("only")):
        slugs.append(slug_of(lambda: iket_rewrite.capture().__enter__()))
        thread = threading.Thread(target=lambda: slugs.append(slug_of(lambda: iket_rewrite.capture().__enter__())))
        thread.start()
        thread.join()
        kernels.count(3)
    return {"slugs": slugs, "buffer": kernels.result(4 * 64)}


def torch_and_core() -> dict:
    """Kernels of PyTorch, and ours on its tensor and its stream."""
    import torch
    from cuda.core import LaunchConfig, launch
    from gpu.captures.launching import begin, cubin

    device = begin()
    counted = cubin(device).get_kernel("counted")
    theirs = torch.cuda.Stream()

    class Stream:
        """PyTorch's stream, as cuda.core takes streams of others."""

        def __cuda_stream__(self):
            return 0, theirs.cuda_stream

    with torch.cuda.stream(theirs):
        out = torch.zeros(4 * 64, device="cuda", dtype=torch.int32)
        with iket_rewrite.capture(output=kept("only")) as captured:
            doubled = torch.ones(1 << 12, device="cuda") * 2
            arguments = words(out.data_ptr(), 3, 0)
            launch(device.create_stream(Stream()), LaunchConfig(grid=(4,), block=(64,)), counted, *arguments)
            total = (out + 1).sum()
        torch.cuda.synchronize()
    return {"buffer": out.tolist(), "total": int(total), "doubled": float(doubled.sum()), "text": repr(captured)}


def words(address: int, *values: int) -> list:
    import ctypes

    return [ctypes.c_uint64(address), *(ctypes.c_uint32(value) for value in values)]


def cupy_kernel() -> dict:
    """Our kernel, loaded and launched by CuPy."""
    import cupy
    from gpu.captures.launching import begin, cubin

    path = FOLDER / "counted.cubin"
    path.write_bytes(bytes(cubin(begin()).code))
    kernel = cupy.RawModule(path=str(path)).get_function("counted")
    out = cupy.zeros(4 * 64, dtype=cupy.uint32)
    with iket_rewrite.capture(output=kept("only")):
        kernel((4,), (64,), (out, cupy.uint32(3), cupy.uint32(0)))
        more = out + 1
    return {"buffer": out.tolist(), "more": int(more[0])}


def lifetimes() -> dict:
    """Warp lifetimes of PyTorch's own kernel and of a kernel without events."""
    import torch
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin(), annotated=False)
    x = torch.ones(1 << 16, device="cuda")
    torch.cuda.synchronize()
    with iket_rewrite.capture(output=kept("only"), warp_lifetimes_only=True) as captured:
        y = x + 1
        kernels.count(3)
        torch.cuda.synchronize()
    return {"kernels": captured.contents.kernels, "sum": float(y.sum()), "buffer": kernels.result(4 * 64)}


def graph() -> dict:
    """A CUDA graph that is replayed twice."""
    from cuda.bindings import driver
    from gpu.captures.launching import Kernels, begin, check

    kernels = Kernels(begin())
    handle = driver.CUstream(int(kernels.stream.handle))
    with iket_rewrite.capture(output=kept("only")):
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        check(driver.cuStreamBeginCapture(handle, mode))
        kernels.count(3)
        recorded = check(driver.cuStreamEndCapture(handle))
        ready = check(driver.cuGraphInstantiate(recorded, 0))
        for _ in range(2):
            check(driver.cuGraphLaunch(ready, handle))
        kernels.stream.sync()
    return {"buffer": kernels.result(4 * 64)}


def clusters() -> dict:
    """A cluster launch, whole; one cluster of it; and one that does not exist."""
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin())
    with iket_rewrite.capture(output=kept("whole")):
        kernels.pair()
    with iket_rewrite.capture(output=kept("one"), cluster=(1, 0, 0)):
        kernels.pair()
    with iket_rewrite.capture(output=kept("block"), cluster=(3, 0, 0)):
        kernels.count(3)

    def beyond() -> None:
        with iket_rewrite.capture(cluster=(9, 0, 0)):
            kernels.pair()

    return {"beyond": slug_of(beyond), "buffer": kernels.result(8 * 32)}


def budget() -> dict:
    """More events than the budget: in one block of four, in all, and with a larger budget in none."""
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin())
    # Blocks have 90, 170, 250 and 330 marks, and two events more for their range.
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with iket_rewrite.capture(output=kept("some")) as captured:
            kernels.count(90, more=80)
        captured.trace  # noqa: B018
    some = [str(one.message) for one in heard if issubclass(one.category, iket_rewrite.CaptureWarning)]

    def every() -> None:
        with iket_rewrite.capture():
            kernels.count(2000)

    slug = slug_of(every)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with iket_rewrite.capture(output=kept("all"), max_events_per_warp=2100) as captured:
            kernels.count(2000)
        captured.trace  # noqa: B018
    return {"some": some, "slug": slug, "all": [str(one.message) for one in heard], "buffer": kernels.result(4 * 64)}


def nothing() -> dict:
    """No CUDA at all, then kernels without events."""

    def empty() -> None:
        with iket_rewrite.capture():
            pass

    found = {"no_cuda": slug_of(empty)}
    from gpu.captures.launching import Kernels, begin

    kernels = Kernels(begin(), annotated=False)

    def plain() -> None:
        with iket_rewrite.capture():
            kernels.count(3)

    def no_lifetime() -> None:
        with iket_rewrite.capture(warp_lifetimes_only=True):
            pass

    return found | {"plain": slug_of(plain), "no_lifetime": slug_of(no_lifetime), "buffer": kernels.result(4 * 64)}


def contexts() -> dict:
    """Only one context is recorded."""
    from cuda.bindings import driver
    from gpu.captures.launching import Kernels, begin, check

    kernels = Kernels(begin())
    current = int(check(driver.cuCtxGetCurrent()))
    with iket_rewrite.capture(output=kept("only"), contexts=[current]):
        kernels.count(3)
    return {"buffer": kernels.result(4 * 64)}


def run_here() -> dict:
    """`run` inside the process: once, with the same kinds of file as a replay."""
    calls = []

    def workload() -> None:
        from gpu.captures.launching import Kernels, begin

        kernels = Kernels(begin())
        kernels.count(3)
        calls.append(kernels.result(4 * 64))

    result = iket_rewrite.run(workload, output_dir=FOLDER / "published")
    return {
        "buffer": calls[0],
        "calls": len(calls),
        "engine": result.engine,
        "files": [str(result.trace_json), str(result.perfetto), str(result.html)],
        "launches": len(result.launches),
    }


if __name__ == "__main__":
    found = globals()[sys.argv[1]]()
    (FOLDER / "results.json").write_text(json.dumps(found), encoding="utf-8")
