# SPDX-License-Identifier: Apache-2.0
"""Annotations that are switched off leave no trace: the binary is the one that the source without them gives."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from builds import CUDA, Fixture, names, needs_nvcc
from elftools.elf.elffile import ELFFile
from toolbox import nvcc, nvrtc

# In the fixtures an annotation ends its line, with or without a semicolon (in a macro's body).
_ANNOTATION = re.compile(r"\bIKET_[A-Z_]+\(.*?\)(?=;?$)", re.DOTALL | re.MULTILINE)
_HEADER = "#include <iket_rewrite/iket.cuh>"


def without_annotations(text: str) -> str:
    """Return the source with every annotation and the header cut out, on the lines that it had."""
    return _ANNOTATION.sub(lambda found: "\n" * found.group().count("\n"), text).replace(_HEADER, "")


def sections(cubin: bytes) -> dict[str, bytes]:
    """Return the content of every section but those that describe the source to a debugger."""
    found = ELFFile(io.BytesIO(cubin)).iter_sections()
    return {section.name: section.data() for section in found if not section.name.startswith(".debug_")}


def test_cutting_out_keeps_the_lines_and_everything_else():
    text = 'int a;\n#include <iket_rewrite/iket.cuh>\nIKET_MARK("x",\n  IKET_I32(f(a)));\nint b;\n'
    assert without_annotations(text) == "int a;\n\n\n;\nint b;\n"


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("fixture", CUDA, ids=names(CUDA))
def test_nvrtc_makes_the_same_cubin(fixture: Fixture, arch: str):
    text = fixture.path.read_text(encoding="utf-8")
    assert nvrtc(text, arch) == nvrtc(without_annotations(text), arch)


@pytest.mark.parametrize("fixture", CUDA, ids=names(CUDA))
def test_nvrtc_makes_the_same_code_for_the_debugger(fixture: Fixture):
    text = fixture.path.read_text(encoding="utf-8")
    assert sections(nvrtc(text, debug=True)) == sections(nvrtc(without_annotations(text), debug=True))


@needs_nvcc
@pytest.mark.parametrize("fixture", CUDA, ids=names(CUDA))
def test_nvcc_makes_the_same_cubin(fixture: Fixture, tmp_path: Path):
    """Where nothing has internal linkage, that is: nvcc puts a hash of the text into the names of what has."""
    text = fixture.path.read_text(encoding="utf-8")
    cubins = []
    for version in (text, without_annotations(text)):
        source = tmp_path / "kernel.cu"
        source.write_text(version, encoding="utf-8")
        done = nvcc(source, tmp_path / "kernel.cubin", "--cubin", "-arch=sm_90a", "-std=c++17")
        assert done.returncode == 0, done.stderr
        cubins.append((tmp_path / "kernel.cubin").read_bytes())
    assert cubins[0] == cubins[1]
