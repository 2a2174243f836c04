# SPDX-License-Identifier: Apache-2.0
"""Modules at the limits of each method, and texts at the limits of what compilers read."""

from __future__ import annotations

import pytest
from builds import check_declarations, check_records, needs_nvcc
from toolbox import FIXTURES, nvcc, nvrtc

import iket_rewrite


def module(events: int, kernels: int) -> str:
    """Return a source with so many events, spread over kernels: ptxas's time grows faster than a kernel."""
    lines = ["#include <iket_rewrite/iket.cuh>"]
    for kernel in range(kernels):
        lines.append(f'extern "C" __global__ void kernel_{kernel}(int x) {{')
        for event in range(kernel, events, kernels):
            payload = f", IKET_I32(x + {event})" if event % 3 == 0 else ""
            lines.append(f'    IKET_MARK("event {event:04d}"{payload});')
        lines.append("}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("events", "method", "ids"),
    [(1, "native", (1, 1)), (30, "native", (1, 30)), (31, "extended", (64, 94)), (4031, "extended", (64, 4094))],
)
def test_every_event_of_a_full_module_is_read(events, method, ids):
    result = iket_rewrite.rewrite(module(events, -(-events // 100)))
    assert result.plan.method.value == method
    binary = nvrtc(result.text)
    found = check_declarations(result.plan, binary)
    assert (min(found.events), max(found.events), len(found.events)) == (*ids, events)
    assert sum(map(len, found.triggers.values())) == events
    if events < 100:
        check_records(result.plan, binary, found)


REDUCE = (FIXTURES / "cuda" / "block_reduce.cu").read_bytes()
TEXTS = {
    "CRLF": REDUCE.replace(b"\n", b"\r\n"),
    "byte order mark": b"\xef\xbb\xbf" + REDUCE,
    "latin-1 comment": REDUCE.replace(b"// The code", b"// caf\xe9 The code"),
    "no newline at the end": REDUCE.rstrip(b"\n"),
    "spliced callee": REDUCE.replace(b"IKET_MARK(", b"IKET_\\\nMARK("),
    "alternative spelling": REDUCE.replace(b"{", b"<%").replace(b"}", b"%>"),
}


@needs_nvcc
@pytest.mark.parametrize("name", TEXTS)
def test_nvcc_reads_what_becomes_of_unusual_bytes(name, tmp_path):
    result = iket_rewrite.rewrite(TEXTS[name], path="block_reduce.cu")
    source, output = tmp_path / "kernel.cu", tmp_path / "kernel.cubin"
    source.write_bytes(result.text)
    done = nvcc(source, output, "--cubin", "-arch=sm_90a", "-std=c++17")
    assert (done.returncode, done.stderr) == (0, "")
    found = check_declarations(result.plan, output.read_bytes())
    assert [len(points) for points in found.triggers.values()] == [15]


@needs_nvcc
@pytest.mark.parametrize("path", ["a b/größe.cu", 'quote".cu', "back\\slash.cu", "per%cent.cu", "x\u4e2d.cu"])
def test_nvcc_names_files_with_unusual_names(path, tmp_path):
    text = REDUCE.decode().replace("float total =", "float total = undeclared +")
    source = tmp_path / "kernel.cu"
    source.write_text(iket_rewrite.rewrite(text, path=path).text, encoding="utf-8")
    done = nvcc(source, tmp_path / "kernel.o", "-c", "-arch=sm_90a")
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "undeclared" in line)
    assert f"{path}({line}): error" in done.stderr
