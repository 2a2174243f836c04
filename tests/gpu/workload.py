# SPDX-License-Identifier: Apache-2.0
"""Launch kernels for a test: run as `python workload.py JOBS.json`, plainly or under run-iket.

In: a list of jobs {source, kernel, arch, std, include, grid, block, cluster, arguments, output}.  An argument is
{"pointer": words} for a zeroed buffer of 32-bit words, or {"u32"|"i32"|"f32"|"f64"|"u64": value}.
Out: the buffers of every job as lists of words, in the JSON file that a job names as output.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path

from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

_SCALARS = {
    "i32": ctypes.c_int32,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "f32": ctypes.c_float,
    "f64": ctypes.c_double,
}


def _check(result):
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(code))
    return values[0] if values else None


def run(job: dict, device: Device) -> list[list[int]]:
    """Compile, launch and wait; return the buffers."""
    options = ProgramOptions(arch=job["arch"], std=job["std"], include_path=job["include"])
    module = Program(Path(job["source"]).read_text(encoding="utf-8"), "c++", options).compile("cubin")
    kernel = module.get_kernel(job["kernel"])
    buffers, arguments = [], []
    for argument in job["arguments"]:
        ((kind, value),) = argument.items()
        if kind == "pointer":
            address = _check(driver.cuMemAlloc(4 * value))
            _check(driver.cuMemsetD8(address, 0, 4 * value))
            buffers.append((int(address), value))
            arguments.append(ctypes.c_uint64(int(address)))
        else:
            arguments.append(_SCALARS[kind](value))
    stream = device.create_stream()
    cluster = {"cluster": tuple(job["cluster"])} if job.get("cluster") else {}
    config = LaunchConfig(grid=tuple(job["grid"]), block=tuple(job["block"]), **cluster)
    for _ in range(job.get("launches", 1)):
        launch(stream, config, kernel, *arguments)
    stream.sync()
    contents = []
    for address, words in buffers:
        host = (ctypes.c_uint32 * words)()
        _check(driver.cuMemcpyDtoH(ctypes.addressof(host), address, 4 * words))
        contents.append(list(host))
    return [[address, *words] for (address, _), words in zip(buffers, contents, strict=True)]


def main() -> None:
    """Run every job of the list."""
    device = Device()
    device.set_current()
    for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        Path(job["output"]).write_text(json.dumps(run(job, device)), encoding="utf-8")


if __name__ == "__main__":
    main()
