# SPDX-License-Identifier: Apache-2.0
"""Ask the driver for its GPUs, in a process of its own: asking initialises CUDA, which the caller may not want yet.

Run as a script, it prints JSON: {"driver": 13000, "devices": [{"name": ..., "capability": [9, 0]}], "error": null}.
"""

from __future__ import annotations

import ctypes
import json
import sys

#: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
_CAPABILITY = (75, 76)


def ask() -> dict[str, object]:
    """Return the driver's CUDA version, the devices, and what went wrong."""
    found: dict[str, object] = {"driver": None, "devices": [], "error": None}
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return found | {"error": "the driver's library libcuda.so.1 is not here"}
    number = ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        found["driver"] = number.value
    code = cuda.cuInit(0)
    if code == 0:
        code = cuda.cuDeviceGetCount(ctypes.byref(number))
    if code != 0:
        return found | {"error": f"the driver says: {_words(cuda, code)}"}
    found["devices"] = [_device(cuda, index) for index in range(number.value)]
    return found if number.value else found | {"error": "the driver lists no device"}


def _device(cuda: ctypes.CDLL, index: int) -> dict[str, object]:
    device, name, values = ctypes.c_int(), ctypes.create_string_buffer(128), []
    cuda.cuDeviceGet(ctypes.byref(device), index)
    cuda.cuDeviceGetName(name, len(name), device)
    for attribute in _CAPABILITY:
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        values.append(value.value)
    return {"name": name.value.decode("utf-8", "replace"), "capability": values}


def _words(cuda: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    cuda.cuGetErrorString(code, ctypes.byref(text))
    return f"{(text.value or b'error').decode('utf-8', 'replace')} ({code})"


if __name__ == "__main__":
    json.dump(ask(), sys.stdout)
