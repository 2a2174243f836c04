# SPDX-License-Identifier: Apache-2.0
"""The main job on a real kernel: rewrite, compile, read back; where there is a GPU, capture and show.

Run: make demo
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import iket_rewrite

KERNEL = Path(__file__).resolve().parents[1] / "fixtures" / "cuda" / "tiled_gemm.cu"
#: The wheel of the runtime keeps its Python package in a folder of its own.
RUNTIME = str(metadata.distribution("nvidia-cutlass-dsl-libs-base").locate_file("nvidia_cutlass_dsl/dsl_packages"))
SIZE = 256


def main() -> None:
    """Do the whole job, or, as the child of a capture, launch the kernel."""
    if sys.argv[1:2] == ["--launch"]:
        launch(sys.argv[2])
        return
    result = iket_rewrite.rewrite(KERNEL.read_bytes(), path=KERNEL.name)
    plan = result.plan
    print(f"1. {KERNEL.name}: {len(plan.events)} events at {len(plan.sites)} sites, {plan.method.facts.title}\n")
    for event in plan.events:
        payload = event.payload.name if event.payload else "-"
        lines = ", ".join(str(site.place.line) for site in plan.sites if site.event is event)
        print(f"   {event.id:3}  {event.kind.value:12} {event.name:14} payload {payload:5} line {lines}")

    arch = device_arch()
    cubin = compile_cubin(result.text.decode(), arch or "sm_90a")
    print(f"\n2. compiled with NVRTC for {arch or 'sm_90a'}: a cubin of {len(cubin)} bytes")
    sys.path.append(RUNTIME)
    from iket import Context

    print("3. read back with NVIDIA's own parser:")
    for kernel in Context(cubin).get_kernels_instrument_info():
        names = [point.event_attr.event_name for point in kernel.instrument_points]
        print(f"   {kernel.kernel_name}: {' '.join(names)}")
    if arch is None:
        print("4. no GPU here (sm_90 or newer): nothing to capture")
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kernel.cubin").write_bytes(cubin)
        show(capture(Path(folder)))


def compile_cubin(source: str, arch: str) -> bytes:
    """Compile CUDA C++ with NVRTC; it needs no GPU."""
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(arch=arch, std="c++17", include_path=iket_rewrite.include_dir())
    return bytes(Program(source, "c++", options).compile("cubin").code)


def device_arch() -> str | None:
    """Return the architecture of the first GPU, or None where there is none that the runtime supports."""
    from cuda.bindings import driver

    try:
        if driver.cuInit(0)[0] != driver.CUresult.CUDA_SUCCESS:
            return None
    except RuntimeError:
        return None
    names = ("MAJOR", "MINOR")
    attributes = [
        getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{name}") for name in names
    ]
    major, minor = (driver.cuDeviceGetAttribute(attribute, 0)[1] for attribute in attributes)
    return f"sm_{major}{minor}a" if major >= 9 else None


def launch(cubin: str) -> None:
    """Multiply two matrices of SIZE by SIZE, as the child of a capture."""
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, ObjectCode
    from cuda.core import launch as launch_kernel

    device = Device()
    device.set_current()
    kernel = ObjectCode.from_cubin(Path(cubin).read_bytes()).get_kernel("tiled_gemm")
    addresses = [driver.cuMemAlloc(4 * SIZE * SIZE)[1] for _ in range(3)]
    for address in addresses:
        driver.cuMemsetD32(address, 0x3F800000, SIZE * SIZE)  # ones
    stream = device.create_stream()
    arguments = [ctypes.c_uint64(int(address)) for address in addresses] + [ctypes.c_int32(SIZE)] * 3
    launch_kernel(stream, LaunchConfig(grid=(SIZE // 16, SIZE // 16), block=(16, 16)), kernel, *arguments)
    stream.sync()


def capture(folder: Path) -> dict:
    """Run the launch under NVIDIA's run-iket and return its trace."""
    child = [sys.executable, __file__, "--launch", str(folder / "kernel.cubin")]
    try:
        result = iket_rewrite.profile(child, output_dir=folder / "trace", postprocess="json")
    except iket_rewrite.CaptureError as error:
        sys.exit(f"the capture failed: {error}")
    return json.loads(result.trace_json.read_text(encoding="utf-8"))


def show(trace: dict) -> None:
    """Print how long each range took."""
    launched = trace["launches"][0]
    durations = defaultdict(list)
    for one in launched["ranges"]:
        durations[trace["stringTable"][one["rangeNameIdx"]]].append(one["endTs"] - one["startTs"])
    print(f"4. captured {launched['kernelName']} of {len(launched['warpLifetimes'])} warps:")
    print("   range            count     mean ns      max ns")
    for name, values in durations.items():
        print(f"   {name:14} {len(values):7} {sum(values) / len(values):11.0f} {max(values):11}")


if __name__ == "__main__":
    main()
