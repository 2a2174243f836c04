# SPDX-License-Identifier: Apache-2.0
"""What the rewriter emits keeps its shape through every ptxas release at hand: nothing merged, nothing swapped.

Releases: those that `tests/fetch_ptxas.py` put into `.venv-ptxas-*`, nvcc's own, and every file called ptxas below the
folder that the variable IKET_PTXAS_DIR names.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from builds import CUDA, check_records, cuda_arch, pmtrig_words
from toolbox import INCLUDE, ROOT

import iket_rewrite

ARCHES = ("sm_90a", "sm_100a", "sm_120a")
#: The PTX version of each release that may be older than NVRTC's, and the first release that knows an architecture.
PTX_VERSION = {(12, 4): "8.4", (12, 5): "8.5", (12, 6): "8.5", (12, 8): "8.7", (12, 9): "8.8"}
FIRST_RELEASE = {900: (12, 0), 1000: (12, 8), 1200: (12, 8)}
#: Two modules of fixtures that agree on the payload of each name, one of them with fewer than 31 events.
MODULES = {
    "native": ("all_payloads", "tiled_gemm", "scoped_exits"),
    "extended": ("all_payloads", "cluster", "helper_two_kernels", "long_names", "many_events", "templated"),
}


@functools.cache
def releases() -> dict[str, Path]:
    """Return the path of every ptxas by its release."""
    places = [*ROOT.glob(".venv-ptxas-*")]
    if "IKET_PTXAS_DIR" in os.environ:
        places.append(Path(os.environ["IKET_PTXAS_DIR"]))
    files = [file for place in places for file in sorted(place.rglob("ptxas")) if os.access(file, os.X_OK)]
    if shutil.which("nvcc"):
        files.append(_of_nvcc())
    return {release: file for file in files if file is not None and (release := _release(file))}


def _of_nvcc() -> Path | None:
    done = subprocess.run(["nvcc", "--dryrun", "-x", "cu", "/dev/null"], capture_output=True, text=True, check=False)
    found = re.search(r"^#\$ _HERE_=(.*)$|^#\$ TOP=(.*)$", done.stderr, re.MULTILINE)
    beside = Path(found.group(1) or found.group(2)) if found else Path(shutil.which("nvcc") or "").resolve().parent
    return next((path for path in (beside / "ptxas", beside / "bin" / "ptxas") if path.is_file()), None)


def _release(ptxas: Path) -> str:
    done = subprocess.run([str(ptxas), "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"V(\d+\.\d+\.\d+)", done.stdout)
    return found.group(1) if found else ""


@functools.cache
def module(method: str) -> iket_rewrite.Rewrite:
    """Rewrite the fixtures of a module as one source, each in a namespace of its own."""
    texts = [one.path.read_text(encoding="utf-8") for one in CUDA if one.path.stem in MODULES[method]]
    spaces = "".join(f"namespace unit_{index} {{\n{text}\n}}\n" for index, text in enumerate(texts))
    return iket_rewrite.rewrite("#include <iket_rewrite/iket.cuh>\n" + spaces, method=method)


@functools.cache
def ptx(method: str, arch: str) -> str:
    """Compile to PTX through the bindings: cuda.core asks the driver whether it could load PTX."""
    from cuda.bindings import nvrtc

    def checked(result):
        code, *values = result
        assert code == nvrtc.nvrtcResult.NVRTC_SUCCESS, code
        return values[0] if values else None

    program = checked(nvrtc.nvrtcCreateProgram(module(method).text.encode(), b"module.cu", 0, [], []))
    options = [f"--gpu-architecture=compute_{arch[3:]}".encode(), b"--std=c++17", f"-I{INCLUDE}".encode()]
    checked(nvrtc.nvrtcCompileProgram(program, len(options), options))
    text = b" " * checked(nvrtc.nvrtcGetPTXSize(program))
    checked(nvrtc.nvrtcGetPTX(program, text))
    return text.rstrip(b"\0").decode()


def lowered(text: str, release: str) -> str:
    """Return PTX that an older release accepts: nothing in it is newer than its version line says."""
    version = PTX_VERSION.get(tuple(map(int, release.split(".")[:2])))
    return re.sub(r"^\.version .*$", f".version {version}", text, count=1, flags=re.MULTILINE) if version else text


def runs() -> list:
    found = releases()
    if not found:
        reason = "no ptxas here: python tests/fetch_ptxas.py"
        return [pytest.param("", "", "", "", marks=pytest.mark.skip(reason=reason))]
    return [
        pytest.param(release, arch, level, method, id=f"{release}-{arch}-{level}-{method}")
        for release in found
        for arch in ARCHES
        if tuple(map(int, release.split(".")[:2])) >= FIRST_RELEASE[cuda_arch(arch)]
        for level in ("-O1", "-O3")
        for method in MODULES
    ]


@pytest.mark.parametrize(("release", "arch", "level", "method"), runs())
def test_no_pair_is_merged_and_none_is_swapped(release, arch, level, method, tmp_path):
    source, output = tmp_path / "module.ptx", tmp_path / "module.cubin"
    source.write_text(lowered(ptx(method, arch), release), encoding="utf-8")
    command = [str(releases()[release]), f"-arch={arch}", level, str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    binary = output.read_bytes()
    records = check_records(module(method).plan, binary)
    # No trigger escapes the reader.
    assert sum(map(len, records.values())) == pmtrig_words(binary) > 0


def test_the_releases_that_were_found_are_printed(capsys):
    with capsys.disabled():
        print("\nptxas releases:", ", ".join(releases()) or "none", end=" ")
