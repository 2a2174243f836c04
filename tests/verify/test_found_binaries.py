# SPDX-License-Identifier: Apache-2.0
"""Binaries that the verifier once judged wrongly: what was reported and is sound, and what is not and passed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from builds import needs_nvcc
from toolbox import nvcc, nvrtc
from verify.planted import bend, binary, rewritten

import iket_rewrite
from iket_rewrite.verification import toolchain
from iket_rewrite.verification.branches import branch_targets
from iket_rewrite.verification.cubin import read_cubin

COMMAND = str(Path(sys.executable).with_name("iket-verify"))
HEADER = "#include <iket_rewrite/iket.cuh>\n"
KERNEL = 'extern "C" __global__ void kernel'
ARCHES = ["sm_90a", "sm_100a", "sm_120a"]


def text_of(source: str, **options) -> str:
    return iket_rewrite.rewrite(HEADER + source, **options).text


def rules(data: bytes | Path, **options) -> set[str]:
    return {finding.rule for finding in iket_rewrite.verify(data, **options).findings}


def run(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [COMMAND, *(one if isinstance(one, bytes) else str(one) for one in arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


# --- Records ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_100a", "sm_120a"])
def test_a_record_at_another_architectures_place_is_an_error(arch):
    bent = bend(rewritten(), ("#define IKET_EMIT_OFFSET 0x20\n", "#define IKET_EMIT_OFFSET 0x3f0\n"))
    assert rules(binary(bent, arch)) == {"record-address"}
    # Other tools use this place on sm_90 too; their captures show that the runtime takes it.
    bent = bend(rewritten(), ("#define IKET_EMIT_OFFSET 0x3f0\n", "#define IKET_EMIT_OFFSET 0x20\n"))
    assert rules(binary(bent, "sm_90a")) == set()


def test_an_event_whose_declaration_is_damaged_is_not_called_undeclared_too():
    bent = bend(rewritten(), ("{60,0,0,0,2,0,0,0,3,0,0,0,6,", "{60,0,0,0,2,0,0,0,3,0,0,0,99,"))
    assert rules(binary(bent)) == {"bad-metadata"}


# --- Graphs -------------------------------------------------------------------------------------------------------

CASES = (
    "".join(
        f'      case {number}: IKET_RANGE_PUSH("c{number}"); o[i] = o[i + {number}] * 3; IKET_RANGE_POP(); break;\n'
        for number in range(8)
    )
    + '      case 9: IKET_RANGE_PUSH("last"); o[i] = atomicAdd(o + 3, 5); IKET_RANGE_POP();\n'
)
SWITCH = (
    f"{KERNEL}(int* o, int n) {{\n  for (int i = 0; i < n; ++i) {{\n    switch (o[i]) {{\n{CASES}    }}\n  }}\n}}\n"
)


@pytest.mark.parametrize("arch", ARCHES[:2])
def test_a_switch_is_followed_into_each_of_its_cases(arch):
    data = nvrtc(text_of(SWITCH), arch)
    assert any(function.branches for function in read_cubin(data).functions), "no indirect jump: another test is needed"
    assert rules(data, official=True) == set()
    for number in (0, 3, 7):
        lost = bend(SWITCH, (f"o[i + {number}] * 3; IKET_RANGE_POP();", f"o[i + {number}] * 3;"))
        assert rules(nvrtc(text_of(lost), arch)) == {"unbalanced-range"}


@pytest.mark.parametrize("info", [b"", b"\x04\x34", b"\x04\x34\xff\xff" + bytes(9), b"\x04\x34\x0c\x00" + b"\xff" * 12])
def test_targets_of_jumps_that_are_damaged_are_none(info):
    assert branch_targets(info) == {}


@pytest.mark.parametrize("arch", ARCHES)
def test_a_condition_is_known_again_across_a_call(arch):
    scoped = f'{KERNEL}(int n) {{ IKET_RANGE("k", IKET_I32(n)); printf("%d", n); }}'
    assert rules(nvrtc(text_of(scoped), arch), strict=True) == set()
    guarded = (
        f"{KERNEL}(int* o, int n) {{ bool a = o[0] > n, b = o[1] > n;\n"
        '  if (a) IKET_RANGE_PUSH("k"); printf("%d", o[2]); if (b) o[3] = 1; if (a) IKET_RANGE_POP(); o[4] = 1; }'
    )
    assert rules(nvrtc(text_of(guarded), arch)) == set()
    other = bend(guarded, ("if (a) IKET_RANGE_POP()", "if (b) IKET_RANGE_POP()"))
    assert rules(nvrtc(text_of(other), arch)) == {"unbalanced-range"}


ROLES = (
    f"{KERNEL}(const float* in, float* o, int n) {{ const bool lead = threadIdx.x / 32 == 0;\n"
    "  for (int i = 0; i < n; ++i) {\n"
    '    if (lead) IKET_RANGE_PUSH("w0");\n'
    "    __syncthreads(); o[i + threadIdx.x] = in[i];\n"
    '    if (lead) IKET_RANGE_POP();\n    if (!lead) IKET_RANGE_PUSH("w1");\n'
    "    __syncthreads(); o[i + threadIdx.x] += in[i + 1];\n"
    "    if (!lead) IKET_RANGE_POP();\n  }\n}\n"
)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_condition_is_known_again_in_another_form(arch):
    assert rules(nvrtc(text_of(ROLES), arch)) == set()
    # What each turn of an unrolled loop reads from one place may go together, by the code that ptxas makes of it.
    lost = bend(ROLES, ("if (!lead) IKET_RANGE_POP();", "if (in[2] > 1.0f) IKET_RANGE_POP();"))
    assert rules(nvrtc(text_of(lost), arch)) == {"unbalanced-range" if arch == "sm_90a" else "not-decided"}
    # The first warp pops once more than it pushes.
    wider = bend(ROLES, ("if (!lead) IKET_RANGE_POP();", "if (threadIdx.x < 64) IKET_RANGE_POP();"))
    assert rules(nvrtc(text_of(wider), arch)) == {"unbalanced-range"}


FLAGS = (
    f"{KERNEL}(const int* in, int* o, int n, int m) {{ const bool b = in[0] > m;\n#pragma unroll\n"
    "  for (int i = 0; i < 8; ++i) { int v = in[i * 7 + threadIdx.x];\n"
    '    if (v > m) { IKET_RANGE("hit"); o[i * 3] = v * 2; if (v == 99) continue; o[i] += v; }\n'
    '    if (b) IKET_RANGE_PUSH("b"); o[i * n] ^= in[v & 1023]; if (b) IKET_RANGE_POP();\n'
    "    if (v == 7) atomicMax(o + 3, v);\n  }\n}\n"
)


def test_a_condition_is_known_again_where_ptxas_made_it_a_flag():
    # It sets a predicate to false, and to true on the branch that opens the range.
    assert rules(nvrtc(text_of(FLAGS))) == set()
    lost = bend(FLAGS, ("if (b) IKET_RANGE_POP()", "if (o[m] > 5) IKET_RANGE_POP()"))
    assert rules(nvrtc(text_of(lost))) == {"unbalanced-range"}
    # Other conditions test this value as well, and may go together with both.
    tested = bend(FLAGS, ("if (b) IKET_RANGE_POP()", "if (v > 5) IKET_RANGE_POP()"))
    assert rules(nvrtc(text_of(tested))) == {"not-decided"}


@needs_nvcc
def test_code_that_ptxas_did_not_optimise_is_told(tmp_path):
    for method, expected in (("extended", {"unoptimised-extended", "not-decided"}), ("native", {"not-decided"})):
        (tmp_path / "k.cu").write_text(rewritten(method=method), encoding="utf-8")
        for level in ("-O0", "-O1"):
            done = nvcc(tmp_path / "k.cu", tmp_path / "k.cubin", "-arch=sm_90a", "-cubin", "-Xptxas", level)
            assert done.returncode == 0, done.stderr
            assert rules(tmp_path / "k.cubin") == (expected if level == "-O0" else set())


# --- Files --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two units of one plan's source each, for relocatable objects and static libraries."""
    folder = tmp_path_factory.mktemp("units")
    for name in ("one", "two"):
        source = f'__global__ void {name}(int* o) {{ IKET_RANGE("{name}", 1); o[0] = 1; }}\n'
        (folder / f"{name}.cu").write_text(text_of(source), encoding="utf-8")
    return folder


@needs_nvcc
def test_an_object_that_is_still_to_be_linked_has_its_metadata(folder):
    done = nvcc(folder / "one.cu", folder / "one.o", "-arch=sm_90a", "-rdc=true", "-c")
    assert done.returncode == 0, done.stderr
    report = iket_rewrite.verify(folder / "one.o", official=True)
    assert {finding.rule for finding in report.findings} <= {"ptx-not-judged"}
    assert [event.name for event in report.events] == ["one"]
    assert len(report.sites) == 2


@needs_nvcc
def test_a_static_library_is_judged_named_and_in_a_folder(folder, tmp_path):
    done = nvcc(folder / "one.cu", tmp_path / "libboth.a", "-arch=sm_90a", "-lib", str(folder / "two.cu"))
    assert done.returncode == 0, done.stderr
    report = iket_rewrite.verify(tmp_path / "libboth.a", official=True)
    assert report.ok, report.findings
    assert sorted(event.name for event in report.events) == ["one", "two"]
    done = run(tmp_path)
    assert (done.returncode, b"libboth.a: ok" in done.stdout) == (0, True), done.stdout + done.stderr


@needs_nvcc
def test_nvidias_parser_agrees_where_it_refuses_what_we_refuse(folder, tmp_path):
    (tmp_path / "main.cu").write_text("int main() { return 0; }\n", encoding="utf-8")
    units = [str(folder / "one.cu"), str(folder / "two.cu")]
    done = nvcc(tmp_path / "main.cu", tmp_path / "app", "-arch=sm_90a", "-rdc=true", *units)
    assert done.returncode == 0, done.stderr
    assert rules(tmp_path / "app", official=True) == {"two-plans"}
    own = f'{KERNEL}(int* o) {{ IKET_MARK("a"); o[0] = 1; asm volatile("pmevent 5;"); }}'
    assert rules(nvrtc(text_of(own)), official=True) == {"undeclared-event"}


def test_a_file_whose_name_is_no_text_is_reported_as_sarif_too(tmp_path):
    path = os.fsencode(tmp_path) + b"/m\xff.cubin"
    data = binary(bend(rewritten(), ("st.volatile.shared.b32", "st.shared.b32")))
    with open(path, "wb") as file:
        file.write(data)
    for name in (path, os.path.relpath(path)):
        done = run(name, "--sarif", "-")
        assert done.returncode == 1, done.stderr
        assert b"Traceback" not in done.stderr
        assert b"m%FF.cubin" in done.stdout
        done.stdout.decode("utf-8")
        assert b"\\udc" not in done.stdout


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe"):
        done = run(path)
        assert done.returncode == 2
        assert b"is no regular file" in done.stderr


def test_ptx_is_called_by_its_name(tmp_path):
    (tmp_path / "k.ptx").write_text("// made by hand\n\n.version 9.0\n.target sm_90a\n", encoding="utf-8")
    done = run(tmp_path / "k.ptx")
    assert (done.returncode, b"this is PTX" in done.stderr) == (2, True)


def test_a_pattern_that_no_function_has_is_wrong_usage(tmp_path):
    (tmp_path / "k.cubin").write_bytes(binary(rewritten()))
    done = run(tmp_path / "k.cubin", "--kernel", "nothing*")
    assert done.returncode == 2
    assert b"no function matches nothing*" in done.stderr
    assert b"no-trigger" not in done.stdout


def test_a_tool_is_waited_for_as_long_as_its_file_is_large(tmp_path, monkeypatch):
    monkeypatch.delenv("IKET_TOOL_TIMEOUT", raising=False)
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "large").write_bytes(bytes(5_000_000))
    small, large = (toolchain.RunningTool(["true", str(tmp_path / name)]) for name in ("small", "large"))
    assert small.result() == large.result() == b""
    assert small.seconds < 90 < large.seconds
    monkeypatch.setenv("IKET_TOOL_TIMEOUT", "soon")
    with pytest.raises(iket_rewrite.IketError, match="soon"):
        toolchain.RunningTool(["true"])
