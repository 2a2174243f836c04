# SPDX-License-Identifier: Apache-2.0
"""What the programs of these tests share: compile the annotated kernels with NVRTC, launch them, read buffers."""

from __future__ import annotations

import ctypes
from pathlib import Path

from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

import iket_rewrite

SOURCE = Path(__file__).with_name("counted.cu")


def check(result):
    """Return what a call of the driver returns beside its status, which must be success."""
    code, *values = result
    if code != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(code))
    return values[0] if values else None


def begin() -> Device:
    """Initialise CUDA."""
    device = Device()
    device.set_current()
    return device


def cubin(device: Device, *, annotated: bool = True):
    """Compile the kernels, with their events or without."""
    capability = device.compute_capability
    text = SOURCE.read_text(encoding="utf-8")
    if annotated:
        text = iket_rewrite.rewrite(text, path=SOURCE.name).text
    options = ProgramOptions(
        arch=f"sm_{capability.major}{capability.minor}a", std="c++17", include_path=[iket_rewrite.include_dir()]
    )
    return Program(text, "c++", options).compile("cubin")


class Kernels:
    """The compiled kernels, and a buffer for their results."""

    def __init__(self, device: Device, *, annotated: bool = True) -> None:
        # The runtime reads captured modules again at the next capture, so this one stays loaded.
        self.module = cubin(device, annotated=annotated)
        self.counted, self.paired = self.module.get_kernel("counted"), self.module.get_kernel("paired")
        self.stream = device.create_stream()
        self.words = 1 << 16
        self.address = int(check(driver.cuMemAlloc(4 * self.words)))

    def count(self, rounds: int, *, more: int = 0, grid: int = 4, block: int = 64) -> None:
        """Launch; do not wait."""
        config = LaunchConfig(grid=(grid,), block=(block,))
        arguments = (ctypes.c_uint64(self.address), ctypes.c_uint32(rounds), ctypes.c_uint32(more))
        launch(self.stream, config, self.counted, *arguments)

    def pair(self, grid: int = 8, block: int = 32) -> None:
        """Launch in clusters; do not wait."""
        launch(self.stream, LaunchConfig(grid=(grid,), block=(block,)), self.paired, ctypes.c_uint64(self.address))

    def result(self, words: int) -> list[int]:
        """Wait, and return the first words of the buffer."""
        self.stream.sync()
        host = (ctypes.c_uint32 * words)()
        check(driver.cuMemcpyDtoH(ctypes.addressof(host), self.address, 4 * words))
        return list(host)
