# SPDX-License-Identifier: Apache-2.0
"""Find the real nvcc, and see who calls us."""

from __future__ import annotations

import os
from collections.abc import Mapping

#: What caches compilations by a hash of their input.
_CACHES = ("ccache", "sccache", "buildcache")
#: ccache sets it for what it runs, also where it gives up and lets the compiler take its place.
_CCACHE_SAYS = "UNCACHED_ERR_FD"
_INSTALL = "install a CUDA toolkit, or set IKET_NVCC to the path of nvcc"


def find_nvcc(environment: Mapping[str, str]) -> list[str]:
    """Return the command that runs nvcc, which may begin with a cache.

    Looked for in this order: IKET_NVCC, PATH, CUDA_HOME and CUDA_PATH, and where cuda-pathfinder looks.

    Raises:
        ToolError: it is nowhere.
    """
    named = environment.get("IKET_NVCC")
    if named:
        # Imported here: most builds set no such variable, and every compilation would pay for it.
        import shlex
        from shutil import which

        command = [named] if os.path.exists(named) else shlex.split(named)
        if not command or which(command[0]) is None or _is_us(which(command[-1]) or ""):
            from ..errors import ToolError

            raise ToolError(f"IKET_NVCC names {named}, which can not be run as nvcc", remedy="name the real nvcc")
        return command
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    folders += [os.path.join(environment[name], "bin") for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)]
    for folder in folders:
        candidate = os.path.join(folder, "nvcc")
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK) and not _is_us(candidate):
            return [candidate]
    found = _by_pathfinder()
    if found is None:
        from ..errors import ToolError

        raise ToolError("nvcc is not installed", remedy=_INSTALL)
    return [found]


def _is_us(path: str) -> bool:
    """Say whether a program is our own, which somebody has put in nvcc's place."""
    return bool(path) and os.path.basename(os.path.realpath(path)) in ("iket-nvcc", "iket-launch")


def _by_pathfinder() -> str | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return None
    try:
        found = find_nvidia_binary_utility("nvcc")
    except Exception:  # it knows no such program, or can not look
        return None
    return str(found) if found else None


def cache_in_front(environment: Mapping[str, str]) -> str | None:
    """Return the name of the compiler cache that has started us, or None.

    A cache in front hashes the source before it is rewritten: it would hand out what was built of another header.
    """
    if _CCACHE_SAYS in environment:
        return "ccache"
    try:
        with open(f"/proc/{os.getppid()}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
    except OSError:
        return None
    return name if name in _CACHES else None


def split_launched(command: list[str]) -> tuple[list[str], list[str]] | None:
    """Split a command behind the nvcc in it; None where it runs another compiler.

    In front of nvcc may stand caches and whatever else starts compilers.
    """
    for index, word in enumerate(command):
        name = os.path.basename(word)
        if name == "nvcc" or name.startswith("nvcc-"):
            return command[: index + 1], command[index + 1 :]
        if word.startswith("-") or (index and not _starts_compilers(command[index - 1])):
            return None
    return None


def _starts_compilers(word: str) -> bool:
    return os.path.basename(word) in (*_CACHES, "distcc", "icecc", "time", "nice", "env") or "=" in word


def is_off(environment: Mapping[str, str]) -> bool:
    """Say whether the marks are switched off."""
    return environment.get("IKET", "").strip().lower() in ("0", "off", "false", "no")


__all__ = ["cache_in_front", "find_nvcc", "is_off", "split_launched"]
