# SPDX-License-Identifier: Apache-2.0
"""Rewritten sources through nvcc: fat objects with the host pass, device linking, debug builds, line numbers."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from builds import (
    CUDA,
    GENERATED,
    Fixture,
    check_declarations,
    check_kernels,
    check_records,
    embedded,
    names,
    needs_nvcc,
    rewritten,
    tilelang_headers,
)
from records import read_records
from toolbox import STRICT, Official, nvcc, nvdisasm

import iket_rewrite

pytestmark = needs_nvcc

FAT = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
#: Native and extended, straight-line and not, templates, wrappers, every payload type.
SELECTION = [
    one
    for one in CUDA
    if one.path.stem in ("all_payloads", "many_events", "templated", "scoped_exits", "wrappers", "long_names")
]


def gencode(*arches: str) -> list[str]:
    return [f"-gencode=arch=compute_{arch[3:]},code={arch}" for arch in arches]


def build(source: Path, output: Path, *options: str) -> Path:
    done = nvcc(source, output, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
    return output


@functools.cache
def fat(fixture: Fixture, pre_hopper: str = "off") -> dict[str, bytes]:
    """Compile a fixture to an object file as a strict user would; return the cubins in it by architecture."""
    text = fixture.path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.cu"
        source.write_text(iket_rewrite.rewrite(text, path=fixture.path, pre_hopper=pre_hopper).text, encoding="utf-8")
        output = build(source, source.with_suffix(".o"), "-c", "-std=c++17", *STRICT, *gencode(*FAT))
        return dict(embedded(output))


@pytest.mark.parametrize("fixture", SELECTION, ids=names(SELECTION))
def test_a_fat_object_holds_one_image_per_architecture(fixture):
    assert sorted(fat(fixture)) == sorted(FAT)


@pytest.mark.parametrize("arch", FAT[1:])
@pytest.mark.parametrize("fixture", SELECTION, ids=names(SELECTION))
def test_the_images_of_hopper_and_newer_hold_the_plan(fixture, arch):
    plan, binary = rewritten(fixture).plan, fat(fixture)[arch]
    found = check_declarations(plan, binary)
    check_kernels(fixture, plan, found)
    if fixture.triggers:
        assert {kernel: len(points) for kernel, points in found.triggers.items()} == fixture.triggers
    check_records(plan, binary, found)


@pytest.mark.parametrize("fixture", SELECTION, ids=names(SELECTION))
def test_the_image_before_hopper_holds_no_event(fixture):
    assert read_records(fat(fixture)["sm_80"]) == {}
    assert not Official(fat(fixture)["sm_80"]).instrumented


def test_before_hopper_rank_zero_is_emitted_on_request():
    fixture = next(one for one in SELECTION if one.path.stem == "all_payloads")
    images = fat(fixture, "rank0")
    (records,) = read_records(images["sm_80"]).values()
    assert not [one for one in records if one.fault]
    assert {one.shape for one in records} == {
        (("STS", 0),),
        (("STS", 0), ("STS", 4)),
        (("STS", 0), ("STS.64", 8)),
    }
    # The plain address, without a cluster's rank.
    assert {one.origin for one in records} == {("", 0x20)}
    assert {arch: read_records(images[arch]) for arch in FAT[1:]} == {
        arch: read_records(fat(fixture)[arch]) for arch in FAT[1:]
    }


# --- Sources of code generators, each with its generator's own options -----------------------------------------

NVCC_OF_GENERATORS = [one for one in GENERATED if "tokens" in one.name or "elementwise_sm_90a" in one.name]


@pytest.mark.parametrize("fixture", NVCC_OF_GENERATORS, ids=names(NVCC_OF_GENERATORS))
def test_generated_sources_hold_the_plan(fixture, tmp_path):
    headers = [f"-I{folder}" for folder in tilelang_headers()] if fixture.origin == "tilelang" else []
    source = tmp_path / "kernel.cu"
    source.write_text(rewritten(fixture, True).text, encoding="utf-8")
    options = ("--cubin", "-std=c++20", "-w", *headers, f"-arch={fixture.arches[0]}")
    binary = build(source, tmp_path / "kernel.cubin", *options).read_bytes()
    plan = rewritten(fixture, True).plan
    found = check_declarations(plan, binary)
    check_kernels(fixture, plan, found)
    check_records(plan, binary, found)


# --- Several translation units -----------------------------------------------------------------------------------

UNIT = """
#include <iket_rewrite/iket.cuh>
extern "C" __global__ void kernel_{unit}(int* out)
{{
    IKET_RANGE("range", IKET_I32(out[0]));
    out[1] = 2;
    IKET_MARK("{mark}", IKET_U64(out[2]));
}}
"""


def units(folder: Path, *marks: str) -> list[str]:
    """Write one rewritten unit per mark; return the paths."""
    paths = []
    for unit, mark in zip("abc", marks, strict=False):
        path = folder / f"{unit}.cu"
        path.write_text(iket_rewrite.rewrite(UNIT.format(unit=unit, mark=mark)).text, encoding="utf-8")
        paths.append(str(path))
    return paths


EVENTS = ["range", "mark", "pop_range"]


def test_two_units_with_one_plan_are_linked_for_the_device(tmp_path):
    main = tmp_path / "main.cpp"
    main.write_text("int main() { return 0; }\n", encoding="utf-8")
    options = ("-rdc=true", "-arch=sm_90a", *STRICT, *units(tmp_path, "mark", "mark"))
    ((_, image),) = embedded(build(main, tmp_path / "program", *options))
    assert Official(image).kernels == {"kernel_a": EVENTS, "kernel_b": EVENTS}


def test_units_with_plans_of_their_own_share_a_library(tmp_path):
    first, second = units(tmp_path, "one mark", "other mark")
    options = ("-shared", "-Xcompiler", "-fPIC", "-arch=sm_90a", *STRICT, second)
    images = [Official(image) for _, image in embedded(build(Path(first), tmp_path / "library.so", *options))]
    # One more image is nvcc's own, from linking nothing.
    assert sorted((one.kernels for one in images if one.instrumented), key=str) == [
        {"kernel_a": ["range", "one mark", "pop_range"]},
        {"kernel_b": ["range", "other mark", "pop_range"]},
    ]


# --- Debug builds and line numbers -----------------------------------------------------------------------------------

DEBUG = {"device-debug": ("-G",), "line-info": ("-lineinfo",), "ptxas-O0": ("-Xptxas", "-O0")}


@pytest.mark.parametrize("options", DEBUG.values(), ids=DEBUG)
@pytest.mark.parametrize("stem", ["all_payloads", "wrappers"])
def test_debug_builds_hold_the_plan(stem, options, tmp_path):
    """In NativeDump, that is.

    Without optimisation ptxas copies registers, and the official parser loses an ExtendedNativeDump event whose
    timestamp was copied before it was stored.
    """
    fixture = next(one for one in CUDA if one.path.stem == stem)
    source = tmp_path / "kernel.cu"
    source.write_text(rewritten(fixture).text, encoding="utf-8")
    binary = build(source, tmp_path / "kernel.cubin", "--cubin", "-arch=sm_90a", *STRICT, *options).read_bytes()
    found = check_declarations(rewritten(fixture).plan, binary)
    triggers = {kernel: len(points) for kernel, points in found.triggers.items() if points}
    assert triggers == fixture.triggers


USER = """\
#include <iket_rewrite/iket.cuh>

extern "C" __global__ void kernel(float* out)
{
    IKET_RANGE_PUSH("whole",
                    IKET_F32(out[3]));
    out[0] = out[1] * 2.0f;
    IKET_MARK("stored");
    out[2] = 7.0f;
    IKET_RANGE_POP();
}
"""


@pytest.fixture
def user_file(tmp_path, monkeypatch) -> Path:
    """A source in a folder of its own, named by a relative path, whose rewritten text lies elsewhere."""
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("build").mkdir()
    return Path("src/user.cu")


def test_an_error_of_the_compiler_names_the_users_line(user_file):
    text = USER.replace("7.0f", "undeclared")
    Path("build/user.iket.cu").write_text(iket_rewrite.rewrite(text, path=user_file).text, encoding="utf-8")
    done = nvcc("build/user.iket.cu", Path("build/user.o"), "-c", "-arch=sm_90a")
    assert done.returncode != 0
    assert 'src/user.cu(9): error: identifier "undeclared" is undefined' in done.stderr


def test_the_line_table_names_the_users_lines(user_file):
    Path("build/user.iket.cu").write_text(iket_rewrite.rewrite(USER, path=user_file).text, encoding="utf-8")
    binary = build(
        Path("build/user.iket.cu"), Path("build/user.cubin"), "--cubin", "-lineinfo", "-arch=sm_90a", *STRICT
    )
    done = subprocess.run([nvdisasm(), "-gi", "-c", str(binary)], capture_output=True, text=True, check=True)
    lines: dict[str, list[int]] = {}
    frames: list[tuple[str, int]] = []
    frame = ("", 0)
    for text in done.stdout.splitlines():
        if found := re.search(r'//## File "([^"]+)", line (\d+)$', text):
            frame = (found.group(1), int(found.group(2)))
        elif (found := re.search(r"\b(STG|PMTRIG)\b", text)) and "/*" in text:
            frames.append(frame)
            lines.setdefault(found.group(1), []).append(frame[1])
    # Inlined code ends with the frame that it was inlined into.
    assert {Path(path).relative_to(Path.cwd()) for path, _ in frames} == {user_file}
    assert lines == {"PMTRIG": [5, 8, 10], "STG": [7, 9]}
