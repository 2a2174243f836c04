# SPDX-License-Identifier: Apache-2.0
"""What is said where TileLang is missing or lacks something, and what importing costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import tilelang

import iket_rewrite
from iket_rewrite import tilelang as iket
from iket_rewrite.tilelang import compat


def python(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout


def test_without_tilelang_the_import_names_the_extra():
    program = """
import sys
sys.modules["tilelang"] = None
import iket_rewrite
try:
    from iket_rewrite import tilelang
except ImportError as error:
    print(type(error).__name__, isinstance(error, iket_rewrite.ToolError), error.name)
    print(error)
"""
    assert python(program).splitlines() == [
        "TileLangMissingError True tilelang",
        "TileLang is not installed",
        "  fix: pip install 'iket-rewrite[tilelang]'",
    ]


def test_a_broken_tilelang_is_not_called_a_missing_one():
    program = """
import sys
sys.modules["tvm_ffi"] = None
try:
    from iket_rewrite import tilelang
except ModuleNotFoundError as error:
    print(type(error).__name__, error.name)
"""
    assert python(program).split() == ["ModuleNotFoundError", "tvm_ffi"]


@pytest.mark.parametrize(
    ("module", "path"), [("tilelang.env", "CacheState.no_such_thing"), ("tilelang.no_such_module", "x")]
)
def test_a_release_that_lacks_a_hook_is_refused_with_its_name(module, path):
    with pytest.raises(ImportError) as caught:
        compat.hook(module, path, "do something")
    text = str(caught.value)
    assert f"TileLang {tilelang.__version__} has no {module}.{path}, which iket_rewrite uses to do something" in text
    assert "tilelang==0.1.15" in text
    assert isinstance(caught.value, iket_rewrite.ToolError)
    assert isinstance(caught.value, iket.TileLangError)


def test_a_session_that_verifies_needs_what_compiles(monkeypatch):
    from tilelang.jit.adapter.libgen import LibraryGenerator

    monkeypatch.delattr(LibraryGenerator, "compile_lib")
    with pytest.raises(iket.TileLangError, match=r"tilelang\.jit\.adapter\.libgen\.LibraryGenerator\.compile_lib"):
        iket.session(verify=True).__enter__()
    assert not iket.is_enabled()


def test_the_package_alone_does_not_load_tilelang():
    program = "import sys, iket_rewrite as i; i.rewrite(''); print('tilelang' in sys.modules, 'tvm' in sys.modules)"
    assert python(program).split() == ["False", "False"]


def test_the_release_is_one_that_was_tried():
    assert compat.release() in compat.TRIED


def test_everything_public_is_exported():
    assert all(hasattr(iket, name) for name in iket.__all__)
    assert iket.__all__ == sorted(iket.__all__)
