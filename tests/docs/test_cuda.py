# SPDX-License-Identifier: Apache-2.0
"""CUDA blocks of the README and of docs/ compile with NVRTC, marks on and off, and their binaries are sound."""

from __future__ import annotations

import re

import pytest
from builds import nvrtc
from pages import BLOCKS, Block
from toolbox import ROOT

import iket_rewrite

CUDA = [block for block in BLOCKS if block.language == "cuda"]
HEADER = "#include <iket_rewrite/iket.cuh>\n"


def whole(block: Block) -> str:
    """Return a block as a source that compiles: a part of a kernel gets one around it, wrappers are used."""
    text = block.text if "#include" in block.text or "IKET_EVENT" in block.text else HEADER + block.text
    if "__global__" in text:
        return text
    used = [
        f"  {name}({'threadIdx.x' if 'VALUE' in name else chr(34) + name + chr(34)});"
        for name in re.findall(r"^#define (\w+)\(", text, re.MULTILINE)
    ]
    pops = ["  IKET_RANGE_POP();" for _ in re.findall(r"^#define .*IKET_RANGE_PUSH", text, re.MULTILINE)]
    if used:
        return "\n".join([text, "__global__ void kernel() {", *used, "  __syncthreads();", *pops, "}\n"])
    head, body = (text, "") if text.lstrip().startswith("#include") else ("", text)
    return f"{head}\n__global__ void kernel(int k) {{\n{body}}}\n"


@pytest.mark.parametrize("block", [one for one in CUDA if "<cstdio>" not in one.text], ids=str)
def test_a_block_compiles_and_is_sound(block):
    source = whole(block)
    result = iket_rewrite.rewrite(source, path=block.page)
    calls = re.findall(r"\bIKET_(?:EVENT|MARK|RANGE\w*)\(", re.sub(r"//.*", "", block.text))
    assert bool(result.plan.sites) == bool(calls)
    errors = [one for one in iket_rewrite.verify(nvrtc(result.text)).findings if one.severity.value == "error"]
    assert errors == [] or (not result.plan.sites)
    if "IKET_EVENT" not in block.text:
        assert nvrtc(source)


def test_a_program_for_the_host_is_built_by_the_commands_of_its_page():
    (host,) = [one for one in CUDA if "<cstdio>" in one.text]
    page = (ROOT / host.page).read_text(encoding="utf-8")
    assert re.search(r"^\$ nvcc .*main\.cu -o app", page, re.MULTILINE)


def test_what_cmake_is_told_is_what_the_examples_tell_it():
    (block,) = [one for one in BLOCKS if one.language == "cmake"]
    example = (ROOT / "examples" / "cuda" / "gemm" / "CMakeLists.txt").read_text(encoding="utf-8").split()
    words = re.sub(r"\bapp\b", "gemm", block.text).replace("STRIP_TRAILING_WHITESPACE)", "STRIP_TRAILING_WHITESPACE")
    assert [word for word in words.split() if word not in example] == []


def test_every_language_has_its_test():
    assert {block.language for block in BLOCKS} <= {"python", "console", "cuda", "cmake", ""}
