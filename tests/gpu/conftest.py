# SPDX-License-Identifier: Apache-2.0
"""GPU tests skip on one probe only: no device, or one that the runtime does not support.  All else fails loudly."""

from __future__ import annotations

import pytest
from gpu.capture import run_jobs
from gpu.jobs import jobs


def _capability() -> tuple[int, int] | None:
    """Return the compute capability of the first device, or None where there is no driver or no device."""
    from cuda.bindings import driver

    try:
        (code,) = driver.cuInit(0)
    except RuntimeError:  # there is no libcuda
        return None
    if code == driver.CUresult.CUDA_ERROR_NO_DEVICE:
        return None
    assert code == driver.CUresult.CUDA_SUCCESS, code
    names = ("MAJOR", "MINOR")
    attributes = [
        getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{name}") for name in names
    ]
    values = [driver.cuDeviceGetAttribute(attribute, 0)[1] for attribute in attributes]
    return values[0], values[1]


def arch_here() -> str:
    """Return the architecture to compile for."""
    capability = _capability()
    assert capability is not None
    return f"sm_{capability[0]}{capability[1]}a"


def pytest_collection_modifyitems(items):
    gpu_items = [item for item in items if "gpu" in item.path.parts]
    capability = _capability() if gpu_items else None
    for item in gpu_items:
        item.add_marker(pytest.mark.gpu)
        if capability is None:
            item.add_marker(pytest.mark.skip(reason="no GPU"))
        elif capability < (9, 0):
            item.add_marker(pytest.mark.skip(reason="the IKET runtime supports sm_90 and newer"))


@pytest.fixture(scope="session")
def captured(tmp_path_factory):
    """Every job, captured in one process under run-iket."""
    return run_jobs(jobs(), tmp_path_factory.mktemp("jobs"), arch_here())
