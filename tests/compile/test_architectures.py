# SPDX-License-Identifier: Apache-2.0
"""Where records lie on each architecture: the allow-list as the preprocessor and as the machine code see it."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from builds import CUDA, cuda_arch
from records import listing
from toolbox import ARCHES, INCLUDE, nvrtc

import iket_rewrite

SOURCE = """\
#include <iket_rewrite/iket.cuh>
__global__ void kernel(int x) { IKET_MARK("m", IKET_I32(x)); IKET_RANGE("r"); }
"""
NOTHING = "(false ? (void)static_cast<unsigned>(static_cast<int>(x)) : (void)0);"
needs_preprocessor = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++ here")


def preprocessed(value: int | None, pre_hopper: str = "off") -> tuple[str, str]:
    """Return the user's line and the warnings, with `__CUDA_ARCH__` as given."""
    text = iket_rewrite.rewrite(SOURCE, path="user.cu", pre_hopper=pre_hopper).text
    define = [f"-D__CUDA_ARCH__={value}"] if value is not None else []
    command = ["g++", "-E", "-P", "-x", "c++", f"-I{INCLUDE}", *define, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1], done.stderr


@needs_preprocessor
@pytest.mark.parametrize("value", [900, 1000, 1030, 1100, 1200, 1210])
def test_an_architecture_of_the_list_records(value):
    line, warnings = preprocessed(value)
    assert "iket_emit_uniform<1>(static_cast<unsigned>(static_cast<int>(x)))" in line
    assert warnings == ""


@needs_preprocessor
@pytest.mark.parametrize("value", [901, 910, 1010, 1020, 1220, 1300, 2000])
def test_an_unknown_newer_architecture_records_nothing_and_warns(value):
    line, warnings = preprocessed(value)
    assert NOTHING in line
    assert "does not know where IKET records lie on this architecture" in warnings


@needs_preprocessor
@pytest.mark.parametrize("value", [None, 700, 750, 800, 860, 890])
def test_the_host_and_older_architectures_record_nothing_in_silence(value):
    line, warnings = preprocessed(value)
    assert NOTHING in line
    assert warnings == ""


@needs_preprocessor
@pytest.mark.parametrize(("value", "records"), [(None, False), (750, True), (890, True), (900, True), (1010, False)])
def test_the_documented_form_is_for_older_architectures_only(value, records):
    line, _ = preprocessed(value, "rank0")
    assert ("iket_emit_uniform<1>" in line) is records


@pytest.mark.parametrize("arch", ARCHES)
def test_a_record_lies_in_the_window_of_its_block_in_the_cluster(arch):
    """The machine code shifts the block's rank by 24 bits and adds the architecture's offset.

    The kernel has no shared memory of its own, whose address would need the rank too.
    """
    (code,) = listing(nvrtc(iket_rewrite.rewrite(SOURCE).text, arch)).values()
    assert any("SR_CgaCtaId" in one.operands for one in code)
    offset = "0x3f0" if cuda_arch(arch) == 900 else "0x20"
    shifts = ("ULEA", "LEA", "USHF.L.U32", "SHF.L.U32")
    shifted = [one for one in code if one.opcode in shifts and "0x18" in one.operands]
    based = [one for one in shifted if offset in one.operands]
    stored = [one for one in code if one.opcode.startswith("STS") and one.operands[0].endswith(f"+{offset}]")]
    assert shifted
    assert based or stored


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89"])
def test_the_documented_form_is_the_plain_address(arch):
    text = next(one.path for one in CUDA if one.path.stem == "block_reduce").read_text(encoding="utf-8")
    (code,) = listing(nvrtc(iket_rewrite.rewrite(text, pre_hopper="rank0").text, arch)).values()
    triggers = [one for one in code if one.opcode == "PMTRIG"]
    stamps = [one for one in code if one.opcode.startswith("STS") and one.operands[0] == "[0x20]"]
    assert len(triggers) == len(stamps) == 15
