# SPDX-License-Identifier: Apache-2.0
"""Overlays through nvcc: fat objects, separate compilation, plans that meet, and messages that name originals."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from building.projects import BASIC, write
from builds import check_declarations, embedded, needs_nvcc
from toolbox import INCLUDE, NVCC, STRICT, Official

import iket_rewrite
from iket_rewrite import rewrite_program, verify
from iket_rewrite.building.writing import OPTIONS

pytestmark = needs_nvcc

ARCHES = ("sm_90a", "sm_100a", "sm_120a")


def nvcc(*options: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [NVCC or "nvcc", f"-I{INCLUDE}", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def built(*options: str) -> None:
    done = nvcc(*options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr


def fat(*arches: str) -> list[str]:
    return [f"-gencode=arch=compute_{arch[3:]},code={arch}" for arch in arches]


def overlay(folder: str) -> list[str]:
    return ["--options-file", f"{folder}/{OPTIONS}"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def instrumented(path: str) -> list[tuple[str, bytes]]:
    """Return the images of a file that hold events: nvcc adds empty ones where it links device code."""
    return [(arch, image) for arch, image in embedded(Path(path)) if Official(image).instrumented]


def test_one_fat_object_of_an_overlay_holds_the_plan_for_each_architecture(here):
    write(BASIC)
    program = rewrite_program(["src/kernel.cu"])
    program.write("out")
    built("-c", *fat(*ARCHES), *STRICT, *overlay("out"), "out/src/kernel.cu", "-o", "k.o")
    images = instrumented("k.o")
    assert sorted(arch for arch, _ in images) == sorted(ARCHES)
    for _, image in images:
        found = check_declarations(program.plan, image)
        (events,) = found.kernels.values()
        assert sorted(set(events)) == ["in helper", "kernel", "pop_range", "traced"]
    report = verify("k.o", strict=True)
    assert report.ok, report.findings


UNIT = """
#include "shared.cuh"
extern __device__ void other_{0}(int*);
__device__ void mine_{0}(int* out) {{ IKET_RANGE("{0}"); helper(out, 2); }}
__global__ void kernel_{0}(int* out) {{ TRACE("kernel"); mine_{0}(out); {1} }}
"""
SHARED = BASIC["include/marks.cuh"]
MAIN = "int main() { return 0; }\n"
#: A device linker that optimises starts from what the host refers to.
LAUNCH = """
extern __global__ void kernel_a(int* out);
int main() { kernel_a<<<1, 1>>>(nullptr); kernel_b<<<1, 1>>>(nullptr); return 0; }
"""


def test_separate_compilation_links_and_the_linked_image_is_sound(here):
    write({"a.cu": UNIT.format("a", "other_a(out);"), "b.cu": UNIT.format("b", ""), "shared.cuh": SHARED})
    write({"b.cu": Path("b.cu").read_text() + "__device__ void other_a(int* out) { mine_b(out); }\n" + MAIN})
    program = rewrite_program(["a.cu", "b.cu"])
    program.write("out")
    built("-rdc=true", *fat("sm_90a"), *STRICT, *overlay("out"), "out/a.cu", "out/b.cu", "-o", "program")
    ((_, image),) = instrumented("program")
    found = check_declarations(program.plan, image)
    # A function of another unit is called, and holds its events itself.
    assert sorted(found.kernels) == ["_Z7other_aPi", "_Z8kernel_aPi", "_Z8kernel_bPi"]
    assert "b" in found.kernel("other_a")
    assert "b" not in found.kernel("kernel_a")
    report = verify("program")
    assert report.ok, report.findings


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Two sources, each with the header; a function that rewrites them apart and links them into one device image."""
    folder = tmp_path_factory.mktemp("libraries")
    write({"one/a.cu": UNIT.format("a", ""), "two/b.cu": UNIT.format("b", "") + LAUNCH}, folder)
    write({"one/shared.cuh": SHARED, "two/shared.cuh": SHARED}, folder)
    return folder


def linked(folder: Path, name: str, *more: str, **options) -> Path:
    before = os.getcwd()
    os.chdir(folder)
    try:
        sources = ("one/a.cu", "two/b.cu")
        for number, source in enumerate(sources):
            rewrite_program([source], **options).write(f"{name}{number}")
        for number, source in enumerate(sources):
            where = f"{name}{number}"
            copy = os.path.join(where, source)
            built("-dc", *(more or fat("sm_90a")), *overlay(where), copy, "-o", f"{where}.o")
        return folder / name
    finally:
        os.chdir(before)


def test_two_libraries_that_were_rewritten_apart_are_detected(libraries):
    program = linked(libraries, "apart")
    built(*fat("sm_90a"), f"{program}0.o", f"{program}1.o", "-o", str(program))
    report = verify(program)
    assert "two-plans" in {finding.rule for finding in report.findings}
    assert instrumented(str(program)) == []  # NVIDIA's parser sees nothing in it


def test_one_plan_file_is_the_way_out(libraries, monkeypatch):
    monkeypatch.chdir(libraries)
    rewrite_program(["one/a.cu", "two/b.cu"], plan="plan.json").write_plan()
    program = linked(libraries, "shared", plan="plan.json")
    built(*fat("sm_90a"), f"{program}0.o", f"{program}1.o", "-o", str(program))
    assert verify(program).ok
    ((_, image),) = instrumented(str(program))
    check_declarations(rewrite_program(["one/a.cu"], plan="plan.json").plan, image)


@pytest.fixture(scope="module")
def device_linker(tmp_path_factory) -> list[str]:
    """Return the command that links device code; with nvcc's own path to libnvvm, some installations do not."""
    folder = tmp_path_factory.mktemp("nvvm")
    (folder / "empty.cu").write_text(MAIN)
    said = nvcc("--dryrun", str(folder / "empty.cu")).stderr
    (top,) = (line.partition("=")[2].strip() for line in said.splitlines() if line.startswith("#$ TOP="))
    libraries = [Path(top, where) for where in ("nvvm/lib64/libnvvm.so", "lib64/libnvvm.so", "lib/libnvvm.so.4")]
    library = next((path for path in libraries if path.exists()), None)
    if library is None:
        pytest.skip("no libnvvm here, which link-time optimisation calls")
    (folder / "lib64").mkdir()
    (folder / "lib64/libnvvm.so").symlink_to(library.resolve())
    return [
        os.path.join(top, "bin", "nvlink"),
        "-m64",
        "-dlto",
        "--cpu-arch=X86_64",
        "--arch=sm_90a",
        f"-nvvmpath={folder}",
        f"-L{top}/lib64",
        f"-L{top}/targets/x86_64-linux/lib",
        f"-L{top}/lib",
    ]


def test_link_time_optimisation_keeps_the_metadata(libraries, device_linker, monkeypatch):
    """It drops every variable that neither device code nor the host refers to, `used` or not."""
    monkeypatch.chdir(libraries)
    rewrite_program(["one/a.cu", "two/b.cu"], plan="plan.json").write_plan()
    program = linked(libraries, "lto", "-gencode=arch=compute_90a,code=lto_90a", *STRICT, plan="plan.json")
    command = [*device_linker, f"{program}0.o", f"{program}1.o", "-lcudadevrt", "-o", f"{program}.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = check_declarations(
        rewrite_program(["one/a.cu"], plan="plan.json").plan, Path(f"{program}.cubin").read_bytes()
    )
    assert sorted(set(found.kernel("kernel_a"))) == ["a", "in helper", "kernel", "pop_range"]
    report = verify(f"{program}.cubin")
    assert report.ok, report.findings


def test_files_of_two_overlays_in_one_unit_are_refused(here):
    write({"a.cuh": 'void f() { IKET_MARK("a"); }\n', "b.cu": 'void g() { IKET_MARK("b"); }\n'})
    rewrite_program(["a.cuh"]).write("one")
    rewrite_program(["b.cu"]).write("two")
    write({"k.cu": '#include "one/a.cuh"\n#include "two/b.cu"\n'})
    done = nvcc("-c", "k.cu")
    assert done.returncode != 0
    assert "files of two IKET plans meet here: rewrite them together" in done.stderr


def test_a_header_that_host_sources_share(here):
    header = """\
#pragma once
#include <iket_rewrite/iket.cuh>
#if defined(__CUDACC__)
#define BOTH __host__ __device__
#else
#define BOTH
#endif
#define TRACE(n) IKET_RANGE(n)
BOTH inline int twice(int value)
{
    IKET_RANGE("twice", IKET_I32(value));
    TRACE("traced");
    IKET_MARK("half", IKET_F16(1.0f));
    IKET_MARK("address", IKET_PTR(&value));
    return 2 * value;
}
"""
    main = '#include "twice.h"\nint main() { return twice(21) == 42 ? 0 : 1; }\n'
    write({"twice.h": header, "k.cu": '#include "twice.h"\n__global__ void k(int* o) { *o = twice(*o); }\n'})
    write({"main.cpp": main})
    rewrite_program(["k.cu"]).write("out")
    built(*fat("sm_90a"), *STRICT, *overlay("out"), "-Iout", "out/k.cu", "main.cpp", "-o", "program")
    assert len(instrumented("program")) == 1
    assert subprocess.run(["./program"], check=False).returncode == 0
    # The same, with the header's copy in the host source.
    write({"out/main.cpp": main})
    compiler = ["c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-c", "out/main.cpp"]
    subprocess.run(compiler, check=True)


def test_messages_name_the_originals(here):
    write(BASIC)
    broken = BASIC["include/marks.cuh"].replace("out[0] = n;", "out[0] = undeclared;")
    write({"include/marks.cuh": broken, "src/kernel.cu": BASIC["src/kernel.cu"].replace("OTHER", "missing")})
    rewrite_program(["src/kernel.cu"]).write("out")
    done = nvcc("-c", *overlay("out"), "out/src/kernel.cu", "-o", "k.o")
    assert done.returncode != 0
    assert 'src/../include/marks.cuh(9): error: identifier "undeclared" is undefined' in done.stderr
    assert 'src/kernel.cu(9): error: identifier "missing" is undefined' in done.stderr
    assert "out/" not in done.stderr.replace('compilation of "out/src/kernel.cu"', "")


def test_a_quoted_include_finds_what_it_found_before(here):
    """Two copied files with a header of the same name beside each; a third that comes from a folder."""
    write(
        {
            "a/a.cuh": '#include "name.cuh"\n#include "far.cuh"\n__device__ inline int a() '
            '{ IKET_MARK("a"); return NAME + FAR; }\n#undef NAME\n',
            "a/name.cuh": "#define NAME 1\n",
            "b/b.cuh": '#include "name.cuh"\n__device__ inline int b() { IKET_MARK("b"); return NAME; }\n',
            "b/name.cuh": "#define NAME 2\n",
            "b/far.cuh": "#define FAR undeclared\n",
            "include/far.cuh": "#define FAR 0\n",
            "k.cu": '#include <iket_rewrite/iket.cuh>\n#include "b/b.cuh"\n#undef NAME\n#include "a/a.cuh"\n'
            "__global__ void k(int* out) { out[0] = 10 * a() + b(); }\n",
        }
    )
    program = rewrite_program(["k.cu"], include_dirs=["include"])
    assert sorted(copy.path for copy in program.copies if copy.original) == [
        "a/a.cuh",
        "a/far.cuh",
        "a/name.cuh",
        "b/b.cuh",
        "k.cu",
    ]
    program.write("out")
    built("-ptx", "-arch=sm_90a", *overlay("out"), "out/k.cu", "-o", "k.ptx")
    assert ", 12;" in Path("k.ptx").read_text()


def test_every_copy_compiles_by_itself_with_the_kept_events_of_a_plan_file(here):
    """A unit emits the whole plan, also events that it does not use, so that units agree."""
    write({"a.cu": UNIT.format("a", ""), "shared.cuh": SHARED, "z.cu": 'void z() { IKET_MARK("z", IKET_F64(1)); }\n'})
    rewrite_program(["z.cu", "a.cu"], plan="plan.json").write_plan()
    program = rewrite_program(["a.cu"], plan="plan.json")
    program.write("out")
    built("-c", *fat("sm_90a"), *STRICT, *overlay("out"), "out/a.cu", "-o", "a.o")
    ((_, image),) = instrumented("a.o")
    check_declarations(program.plan, image)
    assert {event.name for event in program.plan.events} == {"z", "a", "in helper", "kernel"}
    assert [finding.rule for finding in iket_rewrite.verify(image).findings] == ["unused-event"]
