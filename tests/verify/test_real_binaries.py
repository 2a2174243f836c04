# SPDX-License-Identifier: Apache-2.0
"""No alarm on sound binaries: ours, TIRx's, TileLang's and CuTe DSL's; and the same sites as NVIDIA's parser sees."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path

import pytest
from builds import CUDA, GENERATED, NVCC, Fixture, cubin, cuda_arch, names, needs_nvcc, nvrtc_options
from toolbox import FIXTURES, ROOT, nvcc, nvrtc

import iket_rewrite

CUTEDSL = ROOT / ".venv-cutedsl" / "bin" / "python"
ORACLE = FIXTURES / "oracle" / "make_cutedsl_oracle.py"

#: What is at fault in the sources themselves, and rightly found.
FAULTS = {
    # TileLang's pipelining leaves `copy` around nothing, and `tile` open in producer warps.
    "tilelang/gemm": {"empty-range", "unbalanced-range"},
    # The compiler moves pure arithmetic out of `silu`; `transfer` holds a __syncwarp, which is no instruction here.
    "cuda/helper_two_kernels": {"empty-range"},
    "cuda/all_payloads": {"empty-range"},
}


def findings(binary: bytes, *, strict: bool = True) -> set[str]:
    """Return the rules that a binary breaks; NVIDIA's parser must see the same sites."""
    report = iket_rewrite.verify(binary, strict=strict, official=True)
    return {finding.rule for finding in report.findings if finding.fails}


def faults(name: str) -> set[str]:
    return next((rules for start, rules in FAULTS.items() if name.startswith(start)), set())


BUILDS = [
    pytest.param(fixture, arch, captured, id=f"{fixture.name}-{arch}-{captured}")
    for fixture in [*CUDA, *GENERATED]
    for arch in fixture.arches
    for captured in ((True, False) if fixture.origin == "tilelang" else (None,))
]


@pytest.mark.parametrize(("fixture", "arch", "captured"), BUILDS)
def test_what_the_rewriter_makes_is_clean_under_strict(fixture: Fixture, arch, captured):
    assert findings(cubin(fixture, arch, captured)) <= faults(fixture.name)


@pytest.mark.parametrize("fixture", CUDA, ids=names(CUDA))
def test_so_is_the_other_method(fixture: Fixture):
    assert findings(cubin(fixture, "sm_90a", None, "extended")) <= faults(fixture.name)


OTHERS = [
    *sorted((FIXTURES / "tirx").glob("native_*.cu")),
    *sorted((FIXTURES / "tirx").glob("extended_*.cu")),
    *sorted((FIXTURES / "tilelang").glob("*.instrumented.cu")),
]


@functools.cache
def other(path: Path) -> tuple[bytes, str]:
    """Compile what another tool has instrumented."""
    arch = "sm_" + path.name.split("_sm_")[1].split(".")[0]
    return nvrtc(path.read_text(encoding="utf-8"), arch, **nvrtc_options(path.parent.name)), arch


@pytest.mark.parametrize("path", OTHERS, ids=[path.name for path in OTHERS])
def test_what_other_tools_instrument_has_the_faults_that_are_known(path):
    binary, arch = other(path)
    expected = set()
    if path.parent.name == "tilelang":
        expected = {"tilelang-header"}
        if cuda_arch(arch) < 900:
            # Below sm_90 TileLang's records overwrite the kernel's shared memory; NVIDIA's parser does not look there.
            expected |= {"pre-hopper", "official-differs"}
        if path.name.startswith("gemm"):
            expected |= faults("tilelang/gemm")
    found = findings(binary, strict=False)
    assert found <= expected
    assert ("tilelang-header" in found) is (path.parent.name == "tilelang")
    assert ("pre-hopper" in found) is (cuda_arch(arch) < 900)


def test_tilelangs_empty_copy_range_and_its_open_tile_range_are_named():
    binary, _ = other(FIXTURES / "tilelang" / "gemm_sm_90a.no_payload.instrumented.cu")
    messages = {finding.rule: finding.message for finding in iket_rewrite.verify(binary).findings}
    assert "'copy'" in messages["empty-range"]
    assert "'tile'" in messages["unbalanced-range"]


@pytest.mark.skipif(not CUTEDSL.exists(), reason="CuTe DSL is not installed (make .venv-cutedsl/.ready)")
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_103a", "sm_120a"])
@pytest.mark.parametrize("case", ["native", "native_payload", "extended", "extended_payload"])
def test_cute_dsls_own_binaries(case, arch, tmp_path):
    command = [str(CUTEDSL), str(ORACLE), "--child", case, arch, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (path,) = tmp_path.glob("*.cubin")
    assert path.stat().st_size, done.stderr
    # The oracle's kernel opens and closes its ranges around nothing, which is planted.
    assert findings(path.read_bytes(), strict=False) <= {"empty-range"}
    report = iket_rewrite.verify(path)
    assert len(report.sites) == {"native": 7, "native_payload": 21, "extended": 37, "extended_payload": 51}[case]


@needs_nvcc
def test_a_fat_object_an_executable_and_a_folder_of_them(tmp_path):
    assert NVCC
    source = tmp_path / "kernel.cu"
    text = iket_rewrite.rewrite((FIXTURES / "cuda" / "tiled_gemm.cu").read_text(encoding="utf-8")).text
    source.write_text(text + "\nint main() { return 0; }\n", encoding="utf-8")
    codes = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in ("80", "90a", "100a", "120a")]
    for name, more in (("kernel.o", ["-c"]), ("kernel", [])):
        done = nvcc(source, tmp_path / name, *codes, "-gencode=arch=compute_90,code=compute_90", *more)
        assert done.returncode == 0, done.stderr
        report = iket_rewrite.verify(tmp_path / name, strict=True)
        assert report.ok, report.findings
        assert {finding.rule for finding in report.findings} == {"ptx-not-judged"}
        sites = {site.image.split()[0] for site in report.sites}
        assert sites == {"sm_90a", "sm_100a", "sm_120a"}
    done = subprocess.run(
        [str(ROOT / ".venv" / "bin" / "iket-verify"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([line for line in done.stdout.splitlines() if ": ok: " in line]) == 2


@needs_nvcc
def test_ptx_alone_can_not_be_judged(tmp_path):
    source = tmp_path / "kernel.cu"
    source.write_text('extern "C" __global__ void kernel(int* x) { *x = 1; }\n', encoding="utf-8")
    done = nvcc(source, tmp_path / "kernel.o", "-gencode=arch=compute_90,code=compute_90", "-c")
    assert done.returncode == 0, done.stderr
    with pytest.raises(iket_rewrite.CubinError, match="PTX only"):
        iket_rewrite.verify(tmp_path / "kernel.o")
