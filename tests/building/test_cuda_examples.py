# SPDX-License-Identifier: Apache-2.0
"""The CUDA C++ examples: they build with their marks and hold them, and without marks they are what they would be."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from building.compilers import command, environment
from building.test_build_systems import CMAKE, NINJA, needs_cmake
from builds import embedded, needs_nvcc
from toolbox import INCLUDE, NVCC, ROOT, STRICT, Official, nvrtc

import iket_rewrite

EXAMPLES = ROOT / "examples" / "cuda"
#: The source of each, and the events of its kernel.
SOURCES = {
    "gemm": ("gemm/main.cu", ["block", "compute", "load", "stored"]),
    "tma_pipeline": (
        "tma_pipeline/main.cu",
        ["add", "consumer", "issue", "producer", "summed", "wait for room", "wait for tile"],
    ),
    "lookback_scan": (
        "lookback_scan/main.cu",
        ["found", "local scan", "look back", "published", "store", "tile", "wait for prefix"],
    ),
    "torch_extension": ("torch_extension/softmax.cu", ["maximum", "normaliser", "row", "store", "sum"]),
}
OPTIONS = ("-cubin", "-arch=sm_90a", "-std=c++17", f"-I{INCLUDE}", *STRICT)
# In the examples an annotation is a line of its own.
_ANNOTATION = re.compile(r"^ *IKET_[A-Z_]+\(.*\);$|^#include <iket_rewrite/iket.cuh>$", re.MULTILINE)


def blanked(text: str) -> str:
    """Return a source with blank lines in place of its marks."""
    return _ANNOTATION.sub("", text)


def compiled(source: Path, output: Path, *nvcc: str) -> bytes:
    done = subprocess.run(
        [*nvcc, *OPTIONS, str(source), "-o", str(output)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return output.read_bytes()


@needs_nvcc
@pytest.mark.parametrize("name", SOURCES)
def test_an_example_with_its_marks_is_sound_and_holds_them(name, tmp_path):
    source, events = SOURCES[name]
    cubin = compiled(EXAMPLES / source, tmp_path / "on.cubin", *command("nvcc_command"))
    (found,) = Official(cubin).kernels.values()
    assert sorted(set(found)) == sorted([*events, "pop_range"])
    report = iket_rewrite.verify(cubin, strict=True)
    assert report.ok, report.findings


@needs_nvcc
@pytest.mark.parametrize("name", SOURCES)
def test_an_example_without_its_marks_is_the_source_with_blank_lines(name, tmp_path):
    folder = tmp_path / "cuda"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    source = folder / SOURCES[name][0]
    with_marks = compiled(source, tmp_path / "off.cubin", NVCC or "nvcc")
    marks = 0
    for path in folder.rglob("*.cu*"):
        text = path.read_text(encoding="utf-8")
        marks += len(_ANNOTATION.findall(text))
        path.write_text(blanked(text), encoding="utf-8")
    assert marks > 20
    assert compiled(source, tmp_path / "absent.cubin", NVCC or "nvcc") == with_marks


#: What NVRTC can read without the host's headers, with the instance that it shall make.
KERNELS = {
    "gemm/gemm.cuh": "template __global__ void gemm<64, 16>(const float*, const float*, float*, int, int, int);\n",
    "lookback_scan/scan.cuh": "",
}


@pytest.mark.parametrize("path", KERNELS)
def test_nvrtc_says_the_same(path):
    text = (EXAMPLES / path).read_text(encoding="utf-8").replace("#pragma once", "") + KERNELS[path]
    assert nvrtc(text) == nvrtc(blanked(text))
    assert Official(iket_rewrite.compile_cubin(text, arch="sm_90a")).instrumented


@needs_nvcc
@needs_cmake
def test_an_example_is_built_as_its_page_says(tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("iket-launch", "launch_command"), ("iket-rewrite", "rewrite_command")):
        (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} -m iket_rewrite.cli.{module} "$@"\n')
        (programs / name).chmod(0o755)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    where = ["-S", str(EXAMPLES / "gemm"), "-B", str(tmp_path / "build"), "-G", "Ninja"]
    launched = [f"-DCMAKE_MAKE_PROGRAM={NINJA}", "-DCMAKE_CUDA_COMPILER_LAUNCHER=iket-launch"]
    for line in ([CMAKE, *where, *launched], [CMAKE, "--build", str(tmp_path / "build")]):
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment(PATH=path))
        assert done.returncode == 0, done.stdout + done.stderr
    images = [image for _, image in embedded(tmp_path / "build" / "gemm") if Official(image).instrumented]
    assert len(images) == 1
    assert iket_rewrite.verify(images[0], strict=True).ok


#: nvcc names what has internal linkage after the text of the whole file.
_MODULE_HASH = re.compile(rb"_INTERNAL_[0-9a-f]{8}_(\d+_\w+?)_[0-9a-f]{8}")
INTERNAL = """\
#include <iket_rewrite/iket.cuh>
static __device__ int table[64];
static __device__ __noinline__ int looked_up(int index)
{
    IKET_MARK("looked up", IKET_I32(index));
    return table[index];
}
__global__ void kernel(int* out)
{
    IKET_RANGE("kernel");
    table[threadIdx.x] = out[threadIdx.x];
    out[threadIdx.x] = looked_up(63 - threadIdx.x);
}
"""


@needs_nvcc
def test_where_names_hold_a_hash_of_the_text_nothing_but_the_hash_differs(tmp_path):
    source = tmp_path / "internal.cu"
    cubins = []
    for text in (INTERNAL, blanked(INTERNAL)):
        source.write_text(text, encoding="utf-8")
        cubins.append(compiled(source, tmp_path / "internal.cubin", NVCC or "nvcc"))
    masked = [_MODULE_HASH.sub(rb"\1", cubin) for cubin in cubins]
    assert masked[0] == masked[1] != cubins[0]
