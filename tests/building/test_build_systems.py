# SPDX-License-Identifier: Apache-2.0
"""`iket-launch` in real builds: CMake with Ninja, with ccache behind and in front, and Make."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from building.compilers import StandIn, command, environment
from building.projects import BASIC, write
from builds import embedded, needs_nvcc
from toolbox import INCLUDE, NVCC, Official

import iket_rewrite

#: Those of the wheels come first: they lie beside the interpreter, which need not be on the path.
PROGRAMS = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
CMAKE, NINJA = (shutil.which(name, path=PROGRAMS) for name in ("cmake", "ninja"))
needs_cmake = pytest.mark.skipif(not (CMAKE and NINJA), reason="no cmake or ninja here (requirements/test.txt)")
needs_ccache = pytest.mark.skipif(shutil.which("ccache") is None, reason="no ccache here (apt-get install ccache)")
pytestmark = needs_nvcc

PROJECT = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.25)
project(marked LANGUAGES CXX CUDA)
add_executable(app src/kernel.cu src/plain.cu main.cpp)
target_include_directories(app PRIVATE include ${IKET_INCLUDE})
""",
    "src/kernel.cu": '#include <marks.cuh>\n__global__ void kernel(int* out) { TRACE("kernel"); helper(out, 3); }\n',
    "src/plain.cu": "#include <plain.h>\n__global__ void plain(int* out) { *out = PLAIN; }\n",
    "main.cpp": "#include <plain.h>\nint main() { return PLAIN; }\n",
    "include/marks.cuh": BASIC["include/marks.cuh"],
    "include/plain.h": "#define PLAIN 0\n",
}


def program(folder: Path, name: str, module: str) -> str:
    """Write a script that is one of our commands, whatever is installed."""
    script = folder / name
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m iket_rewrite.cli.{module} "$@"\n')
    script.chmod(0o755)
    return str(script)


class Build:
    """A CMake project with Ninja.

    Args:
        folder: where everything lies.
        launchers: what stands in front of nvcc.
    """

    def __init__(self, folder: Path, launchers: str) -> None:
        self.folder = folder
        write(PROJECT, folder)
        self.variables = environment(CCACHE_DIR=str(folder / "cache"), PYTHONPATH=os.environ.get("PYTHONPATH", ""))
        del self.variables["IKET_NVCC"]
        self.configured = self.run(
            CMAKE or "cmake",
            f"-DCMAKE_MAKE_PROGRAM={NINJA}",
            *("-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_CUDA_COMPILER={NVCC}"),
            *("-DCMAKE_CUDA_ARCHITECTURES=90a-real", f"-DIKET_INCLUDE={INCLUDE}"),
            f"-DCMAKE_CUDA_COMPILER_LAUNCHER={launchers}",
        )

    def run(self, *line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(line, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False)

    def build(self) -> list[str]:
        """Build; return the objects that were made."""
        done = self.run(NINJA or "ninja", "-C", "build", "-v", "-j", "2")
        assert done.returncode == 0, done.stdout
        return sorted(set(re.findall(r" -o CMakeFiles/app\.dir/(\S+)\.o", done.stdout)))

    def events(self) -> list[str]:
        (image,) = (image for _, image in embedded(self.folder / "build/app") if Official(image).instrumented)
        assert iket_rewrite.verify(image).ok
        return sorted({name for names in Official(image).kernels.values() for name in names})


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The project, configured and built once with a cache behind the launcher, where there is one."""
    folder = tmp_path_factory.mktemp("cmake")
    cache = ";ccache" if shutil.which("ccache") else ""
    build = Build(folder, program(folder, "iket-launch", "launch_command") + cache)
    assert build.configured.returncode == 0, build.configured.stdout + build.configured.stderr
    assert build.build() == ["main.cpp", "src/kernel.cu", "src/plain.cu"]
    return build


@needs_cmake
def test_a_cmake_project_is_built_with_its_marks_on_and_leaves_nothing_else(built):
    assert built.events() == ["in helper", "kernel", "pop_range"]
    assert [path for path in built.folder.rglob("*") if path.name.startswith(".iket")] == []


@needs_cmake
def test_touching_the_annotated_header_rebuilds_what_depends_on_it(built):
    assert built.build() == []
    for header, rebuilt in {"marks.cuh": ["src/kernel.cu"], "plain.h": ["main.cpp", "src/plain.cu"]}.items():
        os.utime(built.folder / "include" / header)
        assert built.build() == rebuilt
    assert built.build() == []
    write({"include/marks.cuh": BASIC["include/marks.cuh"].replace('"in helper"', '"changed"')}, built.folder)
    assert built.build() == ["src/kernel.cu"]
    assert built.events() == ["changed", "kernel", "pop_range"]


def statistics(build: Build) -> str:
    return build.run("ccache", "--print-stats").stdout


def counted(build: Build) -> tuple[int, int]:
    """Return how many compilations the cache has served, and how many it has not."""
    found = dict(re.findall(r"^(\w+)\t(\d+)$", statistics(build), re.MULTILINE))
    return int(found["direct_cache_hit"]) + int(found["preprocessed_cache_hit"]), int(found["cache_miss"])


@needs_cmake
@needs_ccache
def test_a_cache_behind_serves_what_it_has_seen_and_nothing_else(built):
    write(PROJECT, built.folder)
    built.build()
    before = built.events()
    assert before == ["in helper", "kernel", "pop_range"]
    shutil.rmtree(built.folder / "build/CMakeFiles/app.dir/src")
    hits, misses = counted(built)
    assert "src/kernel.cu" in built.build()
    assert counted(built) == (hits + 2, misses)
    assert built.events() == before
    # What differs in an annotation of a header only is not what the cache has.
    write({"include/marks.cuh": BASIC["include/marks.cuh"].replace('"in helper"', '"in haste"')}, built.folder)
    built.build()
    assert counted(built) == (hits + 2, misses + 1)
    assert built.events() == ["in haste", "kernel", "pop_range"]
    # A file that came from the cache still knows the originals that it depends on.
    assert built.build() == []
    os.utime(built.folder / "include" / "marks.cuh")
    assert built.build() == ["src/kernel.cu"]


def with_cache_in_front(folder: Path, *compiler: str) -> subprocess.CompletedProcess[str]:
    write(PROJECT, folder)
    line = ["ccache", *compiler, "-arch=sm_90a", f"-I{INCLUDE}", "-Iinclude", "-c", "src/kernel.cu", "-o", "k.o"]
    variables = environment(CCACHE_DIR=str(folder / "cache"))
    return subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True, check=False)


@needs_ccache
def test_a_cache_in_front_is_refused(tmp_path):
    done = with_cache_in_front(tmp_path, program(tmp_path, "iket-nvcc", "nvcc_command"))
    assert done.returncode == 2
    assert "ccache stands in front of the rewriter" in done.stderr
    assert 'fix: put the cache behind: CMAKE_CUDA_COMPILER_LAUNCHER="iket-launch;ccache"' in done.stderr
    assert not (tmp_path / "k.o").exists()


@needs_ccache
def test_a_cache_in_front_of_the_launcher_caches_nothing(tmp_path):
    """ccache takes nvcc for a second source, gives up, and lets the launcher take its place unseen."""
    done = with_cache_in_front(tmp_path, program(tmp_path, "iket-launch", "launch_command"), NVCC or "nvcc")
    assert (done.returncode, done.stderr) == (0, "")
    assert len([image for _, image in embedded(tmp_path / "k.o") if Official(image).instrumented]) == 1
    line = ["ccache", "--print-stats"]
    variables = environment(CCACHE_DIR=str(tmp_path / "cache"))
    told = subprocess.run(line, env=variables, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^files_in_cache\t0$", told, re.MULTILINE)


MAKEFILE = """\
NVCC = {nvcc}
program: kernel.o other.o
\t$(NVCC) -arch=sm_90a $^ -o $@
%.o: src/%.cu
\t$(NVCC) -I{include} -arch=sm_90a -MD -c $< -o $@
-include kernel.d other.d
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="no make here")
def test_make_knows_what_depends_on_an_annotated_header(tmp_path):
    write({**BASIC, "src/other.cu": "int main() { return 0; }\n"}, tmp_path)
    nvcc = " ".join(command("nvcc_command"))
    write({"Makefile": MAKEFILE.format(nvcc=nvcc, include=INCLUDE)}, tmp_path)

    def make() -> str:
        line = ["make", "--no-builtin-rules"]
        done = subprocess.run(line, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert make().count(" -c ") == 2
    assert "is up to date" in make()
    os.utime(tmp_path / "include/marks.cuh")
    again = make()
    assert " -c src/kernel.cu" in again
    assert again.count(" -c ") == 1
    assert len([image for _, image in embedded(tmp_path / "program") if Official(image).instrumented]) == 1


# --- The command by itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "called"),
    [
        (["{nvcc}", "-c", "k.cu"], ["-c", "k.cu"]),
        (["env", "A=1", "{nvcc}", "-c", "k.cu"], ["-c", "k.cu"]),
        (["{other}", "-c", "nvcc"], ["-c", "nvcc"]),
    ],
)
def test_the_compiler_is_found_behind_other_launchers(line, called, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text("int plain;\n")
    nvcc = StandIn(tmp_path / "bin")
    other = nvcc.path.with_name("c++")
    shutil.copy(nvcc.path, other)
    words = [word.format(nvcc=nvcc.path, other=other) for word in line]
    done = subprocess.run(command("launch_command", *words), env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert nvcc.call["arguments"] == called


def test_the_launcher_rewrites_for_the_nvcc_it_is_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(BASIC)
    nvcc = StandIn(tmp_path / "bin")
    line = command("launch_command", str(nvcc.path), "-c", "src/kernel.cu", "-o", "kernel.o")
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (copy,) = (path for path in nvcc.call["arguments"] if path.endswith(".cu"))
    assert copy == ".iket-kernel.o/src/kernel.cu"
    assert "IKET_EMIT_SCOPE" in nvcc.call["files"][copy]


def test_wrong_use_of_the_launcher_is_told():
    done = subprocess.run(command("launch_command"), env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage: iket-launch" in done.stderr
    line = command("launch_command", "/nowhere/nvcc", "-c", "k.cu")
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "iket-launch: /nowhere/nvcc can not be started: No such file" in done.stderr
