# SPDX-License-Identifier: Apache-2.0
"""Launch kernels for a test: run as `python workload.py JOBS.json`, plainly or under run-iket.

In: a list of jobs {source, kernel, arch, std, include, grid, block, cluster, arguments, output}.  An argument is
{"words": n} for a zeroed buffer of 32-bit words, {"data": [words]} for one with content, or
{"u32"|"i32"|"f32"|"f64"|"u64": value}.
Out: per job, [{address, words}] of its buffers in the JSON file that it names as output.
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


def run(job: dict, device: Device) -> list[dict]:
    """Compile, launch and wait; return the buffers."""
    options = ProgramOptions(arch=job["arch"], std=job["std"], include_path=job["include"])
    module = Program(Path(job["source"]).read_text(encoding="utf-8"), "c++", options).compile("cubin")
    kernel = module.get_kernel(job["kernel"])
    buffers, arguments = [], []
    for argument in job["arguments"]:
        ((kind, value),) = argument.items()
        if kind in ("words", "data"):
            words = [0] * value if kind == "words" else value
            host = (ctypes.c_uint32 * len(words))(*words)
            address = _check(driver.cuMemAlloc(4 * len(words)))
            _check(driver.cuMemcpyHtoD(address, ctypes.addressof(host), 4 * len(words)))
            buffers.append((int(address), len(words)))
            arguments.append(ctypes.c_uint64(int(address)))
        else:
            arguments.append(_SCALARS[kind](value))
    stream = device.create_stream()
    cluster = {"cluster": tuple(job["cluster"])} if job.get("cluster") else {}
    config = LaunchConfig(grid=tuple(job["grid"]), block=tuple(job["block"]), **cluster)
    launch(stream, config, kernel, *arguments)
    stream.sync()
    contents = []
    for address, words in buffers:
        host = (ctypes.c_uint32 * words)()
        _check(driver.cuMemcpyDtoH(ctypes.addressof(host), address, 4 * words))
        contents.append({"address": address, "words": list(host)})
    return contents


def main() -> None:
    """Run every job of the list."""
    device = Device()
    device.set_current()
    for job in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        Path(job["output"]).write_text(json.dumps(run(job, device)), encoding="utf-8")


if __name__ == "__main__":
    main()
