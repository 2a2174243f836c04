# SPDX-License-Identifier: Apache-2.0
"""What is installed for capturing, compiling and judging, and what each missing part would enable.

Everything is looked for; nothing heavy is imported, and CUDA is asked in a process of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from ..errors import CaptureError, IketError
from ..verification.toolchain import find_tool, version_of
from . import failures, run_iket
from .devices import Asking, Driver, require_gpu
from .other_profilers import find_injected
from .runtime import Runtime, find_runtime
from .session import load_library

_LIBRARY = re.compile(r"libnvrtc\.so\.(\d+)$")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is looked for.

    Attributes:
        name: what it is.
        state: "found", "missing", or "unusable".
        version: its release, or what it says of itself.
        where: the path, or "".
        enables: what it is for.
        install: the line that brings it, or "" where it is there.
    """

    name: str
    state: str
    version: str
    where: str
    enables: str
    install: str


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found.

    Attributes:
        parts: everything that was looked for.
        problem: why a capture can not work here, or None.
        engines: which ways of capturing could work: "inprocess", "replay".
    """

    parts: tuple[Part, ...]
    problem: str | None
    engines: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "schema": 1,
            "capture": self.problem is None,
            "problem": self.problem,
            "engines": list(self.engines),
            "parts": [asdict(part) for part in self.parts],
        }


def check_up() -> Checkup:
    """Look for everything."""
    asking = Asking()
    runtime, problem, engines = _runtime()
    driver = asking.answer()
    parts = [
        runtime,
        _gpu(driver),
        _guarded("CUDA toolkit (nvcc)", "compiles CUDA C++", "install the CUDA toolkit", _nvcc),
        _guarded("NVRTC", "compiles CUDA C++ at run time", "pip install nvidia-cuda-nvrtc", _nvrtc),
        _guarded("nvdisasm", "iket-verify", "pip install 'iket-rewrite[verify]'", _nvdisasm),
        *(_package(*one) for one in _PACKAGES),
    ]
    try:
        require_gpu(driver)
    except CaptureError as error:
        problem = problem or error.message
    other = find_injected(os.environ)
    problem = problem or (failures.other_profiler(other).message if other else None)
    return Checkup(tuple(parts), problem, () if problem else engines)


def _runtime() -> tuple[Part, str | None, tuple[str, ...]]:
    what = "iket_rewrite.capture, iket_rewrite.run, iket-profile"
    try:
        found = find_runtime()
    except CaptureError as error:
        return _runtime_elsewhere(what, error)
    inside = _speaks(found)
    since = "" if inside is None else f", {inside}"
    engines = () if inside is not None else ("inprocess",)
    if os.environ.get(run_iket.VARIABLE):
        try:
            run_iket.find_run_iket()
        except CaptureError as error:
            part = Part("IKET runtime", "unusable", f"{found.version}, {error.message}", "", what, error.remedy)
            return part, None if engines else error.message, engines
    part = Part("IKET runtime", "found", f"{found.version}{since}", str(found.folder), what, "")
    return part, None, (*engines, "replay")


def _runtime_elsewhere(what: str, here: CaptureError) -> tuple[Part, str | None, tuple[str, ...]]:
    """Look for a run-iket that can be started though this environment holds no runtime."""
    try:
        found = run_iket.find_run_iket()
    except CaptureError:
        return Part("IKET runtime", "missing", "", "", what, here.remedy), here.message, ()
    where = os.environ.get(run_iket.VARIABLE) or shutil.which("run-iket") or found.command[0]
    return Part("IKET runtime", "found", f"{found.version}, of run-iket only", where, what, ""), None, ("replay",)


def _speaks(found: Runtime) -> str | None:
    """Return why the runtime can not capture in the process, or None."""
    if found.header is None:
        return failures.no_sessions(found.version).message
    try:
        load_library(found)
    except CaptureError as error:
        # Without a driver the library can not be loaded; the GPU's line says so.
        return None if error.slug == "no-gpu" else error.message
    return None


def _gpu(driver: Driver) -> Part:
    version = _driver_release()
    if driver.cuda is not None:
        version = f"{version} (CUDA {driver.cuda // 1000}.{driver.cuda % 1000 // 10})".strip()
    names = ", ".join(str(device) for device in driver.devices)
    state = "missing" if driver.error else "found" if any(one.supported for one in driver.devices) else "unusable"
    install = "" if state == "found" else driver.error or "the runtime supports compute capability 9.0 and above"
    return Part("driver and GPU", state, ", ".join(filter(None, (version, names))), "", "every capture", install)


def _driver_release() -> str:
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", text)
    return found.group(1) if found else ""


def _guarded(name: str, enables: str, install: str, look: Callable[[], tuple[str, str] | None]) -> Part:
    try:
        found = look()
    except (IketError, OSError, subprocess.SubprocessError) as error:
        message = error.message if isinstance(error, IketError) else str(error)
        return Part(name, "unusable", message, "", enables, install)
    if found is None:
        return Part(name, "missing", "", "", enables, install)
    return Part(name, "found", found[0], found[1], enables, "")


def _nvcc() -> tuple[str, str] | None:
    roots = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    beside = [os.path.join(root, "bin", "nvcc") for root in roots if root]
    path = next(filter(None, (shutil.which(one) for one in (os.environ.get("NVCC", ""), "nvcc", *beside) if one)), None)
    if path is None:
        return None
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=60)
    release = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    return (release.group(1) if release else "unknown", path)


def _nvdisasm() -> tuple[str, str] | None:
    try:
        path = find_tool("nvdisasm")
    except IketError:
        return None
    return version_of("nvdisasm"), path


def _nvrtc() -> tuple[str, str] | None:
    """Look where the wheels and the toolkit put it; the loader's own path comes last."""
    roots = [Path(entry) / "nvidia" for entry in sys.path if entry]
    folders = [folder for root in roots for folder in (root / "cu13" / "lib", root / "cuda_nvrtc" / "lib")]
    homes = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    folders += [Path(home) / "lib64" for home in (*homes, "/usr/local/cuda") if home]
    for folder in folders:
        for path in sorted(folder.glob("libnvrtc.so.*")) if folder.is_dir() else ():
            if (match := _LIBRARY.search(path.name)) is not None:
                return _installed("nvidia-cuda-nvrtc") or match.group(1), str(path)
    return None


def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


#: Name, distributions that bring it, what it enables, the line that installs it.
_PACKAGES = (
    ("numpy and msgspec", ("msgspec", "numpy"), "captured.trace, iket-trace", "pip install 'iket-rewrite[trace]'"),
    ("perfetto", ("perfetto",), "Perfetto files of captures in the process", "pip install 'iket-rewrite[trace]'"),
    ("PyTorch", ("torch",), "tensors for the examples", "pip install torch"),
    ("TileLang", ("tilelang",), "iket_rewrite.tilelang", "pip install 'iket-rewrite[tilelang]'"),
    ("TIRx", ("apache-tvm-tirx",), "iket_rewrite.tirx", "pip install 'iket-rewrite[tirx]'"),
    ("cuda.core", ("cuda-core",), "compiling and launching from Python", "pip install cuda-core"),
)


def _package(name: str, distributions: tuple[str, ...], enables: str, install: str) -> Part:
    return _guarded(name, enables, install, partial(_locate, distributions))


def _locate(distributions: tuple[str, ...]) -> tuple[str, str] | None:
    versions = [_installed(one) for one in distributions]
    if not all(versions):
        return None
    where = metadata.distribution(distributions[0]).locate_file("")
    return ", ".join(filter(None, versions)), str(where)
