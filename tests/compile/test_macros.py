# SPDX-License-Identifier: Apache-2.0
"""Annotations in every sort of place that C++ has, switched off and rewritten, with the strictest warnings."""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path

import pytest
from builds import check_declarations, needs_nvcc, toolkit_headers
from toolbox import FIXTURES, INCLUDE, STRICT, Official, nvcc, nvrtc

import iket_rewrite
from iket_rewrite import abi

FILES = sorted((FIXTURES / "macros").glob("*.cu"))
STANDARDS = ("c++14", "c++17", "c++20")
#: As they are, with payloads recorded, with payloads left out.
MODES = {"off": None, "rewritten": True, "dropped": False}


@functools.cache
def text_of(path: Path, mode: str) -> tuple[str, iket_rewrite.Plan]:
    """Return the text to compile and its plan, which is empty where nothing is rewritten."""
    text = path.read_text(encoding="utf-8")
    result = iket_rewrite.rewrite(text, runtime_payloads=MODES[mode], path=path)
    return (text if mode == "off" else result.text), result.plan


def triggered(found: Official) -> set[int]:
    return {number for points in found.triggers.values() for number, _ in points}


def declared(plan: iket_rewrite.Plan) -> set[int]:
    """Return the ids that the kernels of a whole file trigger."""
    pops = any(event.kind is abi.EventKind.RANGE for event in plan.events)
    return {event.id for event in plan.events} | ({abi.ID_POP} if pops else set())


@pytest.mark.parametrize("std", STANDARDS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_nvrtc_compiles_it(path, mode, std):
    text, plan = text_of(path, mode)
    include = toolkit_headers() if "<cuda_fp16.h>" in text else ()
    binary = nvrtc(text, std=std, include=include)
    if mode == "off":
        assert not Official(binary).instrumented
        return
    found = check_declarations(plan, binary)
    # What stands under #if for another compiler, or another standard, is declared all the same.
    elsewhere = "__CUDACC_RTC__" in text or (std == "c++14" and "201703L" in text)
    assert triggered(found) <= declared(plan) if elsewhere else triggered(found) == declared(plan)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_nvrtc_compiles_it_where_events_are_nothing(path, mode):
    text, _ = text_of(path, mode)
    include = toolkit_headers() if "<cuda_fp16.h>" in text else ()
    nvrtc(text, "sm_80", include=include)


# --- nvcc ------------------------------------------------------------------------------------------------------
# One translation unit for all files but the one that renames the macros: a run of nvcc takes seconds.


@functools.cache
def everything(mode: str) -> tuple[str, iket_rewrite.Plan]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES if path.stem != "second_prefix")
    result = iket_rewrite.rewrite(text, runtime_payloads=MODES[mode])
    return (text if mode == "off" else result.text), result.plan


def strict(text: str, output: Path, *options: str) -> Path:
    """Compile with every warning an error, and not one printed."""
    source = output.with_suffix(".cu")
    source.write_text(text, encoding="utf-8")
    done = nvcc(source, output, "--extended-lambda", *STRICT, *options)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return output


@needs_nvcc
@pytest.mark.parametrize(
    ("mode", "std"),
    [*((mode, std) for mode in ("off", "rewritten") for std in STANDARDS), ("dropped", "c++17")],
)
def test_nvcc_compiles_everything_for_the_host_and_two_devices(mode, std, tmp_path):
    """The host, a device with events and one without: all three passes must see the same captures and variables."""
    devices = ("-gencode=arch=compute_90a,code=sm_90a", "-gencode=arch=compute_80,code=sm_80")
    strict(everything(mode)[0], tmp_path / "everything.o", "-c", f"-std={std}", *devices)


@needs_nvcc
def test_nvcc_keeps_every_event(tmp_path):
    text, plan = everything("rewritten")
    binary = strict(text, tmp_path / "everything.cubin", "--cubin", "-std=c++17", "-arch=sm_90a").read_bytes()
    assert triggered(check_declarations(plan, binary)) == declared(plan)


@needs_nvcc
@pytest.mark.parametrize("mode", MODES)
def test_nvcc_compiles_the_second_prefix(mode, tmp_path):
    path = FIXTURES / "macros" / "second_prefix.cu"
    strict(text_of(path, mode)[0], tmp_path / "second_prefix.o", "-c", "-arch=sm_90a")


# --- The header alone --------------------------------------------------------------------------------------------

HOST = shutil.which("g++")
needs_host = pytest.mark.skipif(HOST is None, reason="no g++ here")


def host(source: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    strictly = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}")
    command = [str(HOST), *strictly, *options, str(source), "-o", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_host
@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("std", ["c++11", *STANDARDS])
def test_plain_cxx_may_include_the_header(std, level, tmp_path):
    done = host(FIXTURES / "macros" / "host.cpp", tmp_path / "host", f"-std={std}", level)
    assert (done.returncode, done.stderr) == (0, "")
    assert subprocess.run([str(tmp_path / "host")], check=False).returncode == 0


@needs_host
@pytest.mark.parametrize("name", ["IKET_MARK", "IKET_RANGE", "IKET_EVENT"])
def test_the_header_refuses_a_name_that_is_taken(name, tmp_path):
    source = tmp_path / "taken.cpp"
    source.write_text(f"#define {name}(x)\n#include <iket_rewrite/iket.cuh>\n", encoding="utf-8")
    done = host(source, tmp_path / "taken.o", "-c")
    assert done.returncode != 0
    assert "define IKETR_ONLY and use the names IKETR_MARK" in done.stderr
    source.write_text("#define IKETR_ONLY\n" + source.read_text(encoding="utf-8"), encoding="utf-8")
    assert host(source, tmp_path / "taken.o", "-c").returncode == 0


@needs_host
@pytest.mark.parametrize(
    "wrong",
    ['IKET_MARK("a", IKET_I32(missing));', 'IKET_MARK("a", IKET_F32("text"));', 'IKET_MARK("a", IKET_PTR(3));'],
    ids=["unknown name", "no number", "no pointer"],
)
def test_a_payload_is_type_checked_while_it_is_off(wrong, tmp_path):
    source = tmp_path / "wrong.cpp"
    source.write_text(f"#include <iket_rewrite/iket.cuh>\nvoid f() {{ {wrong} }}\n", encoding="utf-8")
    assert host(source, tmp_path / "wrong.o", "-c").returncode != 0


def test_no_macro_of_the_header_lacks_its_second_name():
    text = (Path(INCLUDE) / "iket_rewrite" / "iket.cuh").read_text(encoding="utf-8")
    defined = {line.split()[1].split("(")[0] for line in text.splitlines() if line.startswith("#define IKET")}
    first = {name[len("IKET_") :] for name in defined if name.startswith("IKET_")}
    # A token names everything in itself and is printed by programs, which can print it where it is not taken.
    assert {f"IKETR_{name}" for name in first - {"EVENT"}} <= defined
