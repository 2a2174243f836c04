# SPDX-License-Identifier: Apache-2.0
"""Every test here uses the real TileLang, leaves no trace of its sessions, and fails on a warning it did not expect."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import warnings

import pytest

# TileLang reads it when it is imported.
_CACHE = tempfile.mkdtemp(prefix="tilelang-cache-")
os.environ["TILELANG_CACHE_DIR"] = _CACHE
os.environ.setdefault("TILELANG_PRINT_ON_COMPILATION", "0")
atexit.register(shutil.rmtree, _CACHE, ignore_errors=True)
# It puts itself on the path of every process that is started later, which is no business of other tests.
_PATH = os.environ.get("PYTHONPATH")
collect_ignore_glob = []
try:
    import tilelang  # noqa: F401
except ModuleNotFoundError:
    collect_ignore_glob = ["test_*.py"]
if _PATH is None:
    os.environ.pop("PYTHONPATH", None)
else:
    os.environ["PYTHONPATH"] = _PATH


@pytest.fixture(scope="session", autouse=True)
def _compiler():
    """NVRTC compiles what the tvm_ffi backend compiles: it needs no toolkit and takes a third of nvcc's time."""
    import tvm_ffi
    from tilelang_frontend.support import compile_with_nvrtc

    from iket_rewrite.tilelang import compat

    original = tvm_ffi.get_global_func(compat.COMPILE)
    tvm_ffi.register_global_func(compat.COMPILE, f=compile_with_nvrtc, override=True)
    yield original
    tvm_ffi.register_global_func(compat.COMPILE, f=original, override=True)


@pytest.fixture
def tilelangs_compiler(_compiler):
    """TileLang's own callback, which runs nvcc."""
    import tvm_ffi
    from builds import NVCC

    from iket_rewrite.tilelang import compat

    if NVCC is None:
        pytest.skip("no nvcc here (PATH, or the variable NVCC)")
    before = tvm_ffi.get_global_func(compat.COMPILE)
    tvm_ffi.register_global_func(compat.COMPILE, f=_compiler, override=True)
    yield
    tvm_ffi.register_global_func(compat.COMPILE, f=before, override=True)


@pytest.fixture(autouse=True)
def _clean_and_quiet(monkeypatch):
    import tvm_ffi
    from tilelang.env import CacheState

    from iket_rewrite import tilelang as iket
    from iket_rewrite.tilelang import active, compat

    monkeypatch.delenv("TL_IKET_OUTPUT_DIR", raising=False)
    iket.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", iket.IketWarning)
        yield
    try:
        _check(tvm_ffi, CacheState, iket, active, compat)
    finally:
        # One test that fails is enough.
        while iket.is_enabled():
            iket.disable(restore=False)
        CacheState.enable()
        iket.disable_runtime_payloads()
        iket.set_output_dir(None)


def _check(tvm_ffi, CacheState, iket, active, compat):
    assert not iket.is_enabled()
    assert tvm_ffi.get_global_func(compat.POSTPROC, allow_missing=True) is None
    assert CacheState.is_enabled()
    assert not active.scopes()
    assert not iket.runtime_payloads_enabled()
    assert iket.output_dir() is None
    assert "TL_IKET_OUTPUT_DIR" not in os.environ
