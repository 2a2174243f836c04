# SPDX-License-Identifier: Apache-2.0
"""Which GPUs there are, asked in another process, and whether the runtime supports one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import abi
from ..errors import OptionError
from . import failures

_SCRIPT = Path(__file__).with_name("gpu_probe.py")
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU."""

    name: str
    capability: tuple[int, int]

    @property
    def supported(self) -> bool:
        """Say whether the runtime supports it."""
        return self.capability[0] * 100 + self.capability[1] * 10 >= abi.FIRST_CUDA_ARCH

    def __str__(self) -> str:
        return f"{self.name} (compute capability {self.capability[0]}.{self.capability[1]})"


@dataclass(frozen=True, slots=True)
class Driver:
    """What the driver says.

    Attributes:
        cuda: the highest CUDA version that it serves, as 13000, or None.
        devices: the GPUs that this process would see.
        error: why there are none, or None.
    """

    cuda: int | None
    devices: tuple[Device, ...]
    error: str | None


class Asking:
    """A question to the driver, answered while something else goes on."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        hidden = ("CUDA_INJECTION64_PATH", "IKET_INJECTION_CONFIG", "SMODEL_INJECTION_CONFIG", "LD_PRELOAD")
        clean = {key: value for key, value in (environment or os.environ).items() if key not in hidden}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SCRIPT)],
                env=clean,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError as error:
            raise OptionError(f"no program can be started with this environment: {error.strerror}") from None

    def answer(self) -> Driver:
        """Wait for the answer."""
        try:
            text, _ = self._process.communicate(timeout=_TIMEOUT_S)
            found = json.loads(text)
        except (subprocess.TimeoutExpired, ValueError):
            self.close()
            return Driver(None, (), "the driver does not answer")
        devices = tuple(Device(one["name"], (one["capability"][0], one["capability"][1])) for one in found["devices"])
        return Driver(found["driver"], devices, found["error"])

    def close(self) -> None:
        """Do without the answer."""
        self._process.kill()
        self._process.communicate()


def ask_driver(environment: Mapping[str, str] | None = None) -> Driver:
    """Return what the driver says."""
    return Asking(environment).answer()


def require_gpu(driver: Driver) -> None:
    """Refuse a machine without a GPU that the runtime supports.

    Raises:
        CaptureError: there is none.
    """
    if driver.error is not None or not driver.devices:
        raise failures.no_gpu(driver.error or "the driver lists no device")
    if not any(device.supported for device in driver.devices):
        raise failures.gpu_unsupported([str(device) for device in driver.devices])
