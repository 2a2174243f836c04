# SPDX-License-Identifier: Apache-2.0
"""The runtime's sessions inside the process, as its header `iket_profiling_session.h` declares them, through ctypes.

One object for the library, one for a session.  Nothing here decides what a failure means: a call that fails raises
`CallError` with its name, its result and what the runtime said meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .. import abi
from . import failures
from .messages import listening
from .runtime import Runtime

_PREFIX = "IketProfilingSession"


class ClusterIndex(ctypes.Structure):
    """Mirror of `IketProfilingSessionClusterIndex`."""

    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint16), ("z", ctypes.c_uint16))


class Options(ctypes.Structure):
    """Mirror of `IketProfilingSessionOptions`, version 1.0."""

    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("max_ts_per_warp", ctypes.c_uint64),
        ("device_buffer_size", ctypes.c_uint64),
        ("profiled_cuda_contexts", ctypes.POINTER(ctypes.c_void_p)),
        ("num_profiled_cuda_contexts", ctypes.c_uint64),
        ("enabled_cluster", ClusterIndex),
        ("log_level", ctypes.c_uint32),
    )


assert ctypes.sizeof(ClusterIndex) == abi.SESSION_CLUSTER_SIZE
assert ctypes.sizeof(Options) == abi.SESSION_OPTIONS_SIZE
assert {name: getattr(Options, name).offset for name, _ in Options._fields_} == abi.SESSION_OPTIONS_OFFSETS


class CallError(Exception):
    """A call of the runtime failed.

    Attributes:
        call: which, without its prefix.
        result: what it returned.
        messages: what the runtime said meanwhile.
    """

    def __init__(self, call: str, result: int, messages: Sequence[str]) -> None:
        name = abi.SESSION_RESULTS.get(result, "unknown")
        super().__init__(f"{call} returned {result} ({name})")
        self.call, self.result, self.messages = call, result, tuple(messages)


class Library:
    """The runtime's library, loaded, its version negotiated.

    Attributes:
        version: the interface's (major, minor) version.
    """

    def __init__(self, path: Path, release: str) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise failures.library_not_loaded(str(path), str(error)) from None
        if not hasattr(self._library, f"{_PREFIX}GetApiVersion"):
            raise failures.no_sessions(release)
        self.version = self._negotiate(release)

    def _negotiate(self, release: str) -> tuple[int, int]:
        major, minor = ctypes.c_uint32(), ctypes.c_uint32()
        self.call("GetApiVersion", ctypes.byref(major), ctypes.byref(minor))
        if major.value != abi.SESSION_API_MAJOR:
            raise failures.other_session_version(release, (major.value, minor.value))
        return major.value, minor.value

    def call(self, name: str, *arguments: Any) -> list[str]:
        """Call a function of the interface; return what the runtime said meanwhile.

        Raises:
            CallError: it does not return success.
        """
        function: Callable[..., int] = getattr(self._library, _PREFIX + name)
        # A function of ctypes, which mypy takes for the callable that it is used as.
        function.restype = ctypes.c_uint32  # type: ignore[attr-defined]
        with listening() as messages:
            result = function(*arguments)
        if result != abi.SESSION_SUCCESS:
            raise CallError(name, result, messages)
        return messages

    def defaults(self) -> Options:
        """Return the options as the runtime initialises them."""
        options = Options()
        options.struct_size = ctypes.sizeof(Options)
        self.call("OptionsInit", ctypes.byref(options))
        return options


@cache
def load_library(runtime: Runtime) -> Library:
    """Return the library of a runtime.

    Raises:
        CaptureError: it can not be loaded, has no sessions, or speaks another version.
    """
    return Library(runtime.library, runtime.version)


def settle(
    options: Options,
    *,
    max_events_per_warp: int | None,
    buffer_bytes: int | None,
    cluster: Sequence[int] | None,
    contexts: Sequence[int],
    warp_lifetimes_only: bool,
) -> None:
    """Write what the caller wants into options; what is None stays the runtime's default."""
    options.flags = abi.SESSION_FLAG_DEFER_TRACE_READBACK
    options.log_level = abi.SESSION_LOG_WARN
    if max_events_per_warp is not None:
        options.max_ts_per_warp = max_events_per_warp
    if buffer_bytes is not None:
        options.device_buffer_size = buffer_bytes
    if cluster is not None:
        options.flags |= abi.SESSION_FLAG_ENABLE_CLUSTER
        options.enabled_cluster = ClusterIndex(*cluster)
    if contexts:
        options.profiled_cuda_contexts = (ctypes.c_void_p * len(contexts))(*contexts)
        options.num_profiled_cuda_contexts = len(contexts)
    if warp_lifetimes_only:
        options.flags |= abi.SESSION_FLAG_WARP_LIFETIME_ONLY


class Session:
    """One session of the runtime; it must be closed.

    Attributes:
        messages: everything that the runtime said in its calls.
    """

    def __init__(self, library: Library, options: Options) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self.messages: list[str] = []
        self._call("Create", ctypes.byref(self._handle))
        try:
            self._call("SetOptions", self._handle, ctypes.byref(options))
        except CallError:
            self.close()
            raise

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            self.messages += self._library.call(name, *arguments)
        except CallError as error:
            self.messages += error.messages
            raise

    def start(self) -> None:
        """Begin to record."""
        self._call("Start", self._handle)

    def stop(self) -> None:
        """Wait for the kernels, collect what they recorded, and put them back as they were."""
        self._call("Stop", self._handle)

    def save(self, path: Path) -> None:
        """Write the trace."""
        self._call("SaveTrace", self._handle, ctypes.c_char_p(str(path).encode()))

    def close(self) -> None:
        """Let the runtime forget the session; one that is active is stopped."""
        if self._handle:
            handle, self._handle = self._handle, ctypes.c_void_p()
            self._call("Destroy", handle)
