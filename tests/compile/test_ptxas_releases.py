# SPDX-License-Identifier: Apache-2.0
"""What the rewriter emits keeps its shape through every ptxas release at hand: nothing merged, nothing swapped."""

from __future__ import annotations

import functools

import pytest
from assembling import ARCHES, assemble, knows, releases
from builds import CUDA, check_records, pmtrig_words, ptx

import iket_rewrite

#: Two modules of fixtures that agree on the payload of each name, one of them with fewer than 31 events.
MODULES = {
    "native": ("all_payloads", "tiled_gemm", "scoped_exits"),
    "extended": ("all_payloads", "cluster", "helper_two_kernels", "long_names", "many_events", "templated"),
}


@functools.cache
def module(method: str) -> iket_rewrite.Rewrite:
    """Rewrite the fixtures of a module as one source, each in a namespace of its own."""
    texts = [one.path.read_text(encoding="utf-8") for one in CUDA if one.path.stem in MODULES[method]]
    spaces = "".join(f"namespace unit_{index} {{\n{text}\n}}\n" for index, text in enumerate(texts))
    return iket_rewrite.rewrite("#include <iket_rewrite/iket.cuh>\n" + spaces, method=method)


@functools.cache
def assembly(method: str, arch: str) -> str:
    return ptx(module(method).text, arch)


def runs() -> list:
    found = releases()
    if not found:
        reason = "no ptxas here: python tests/fetch_ptxas.py"
        return [pytest.param("", "", "", "", marks=pytest.mark.skip(reason=reason))]
    return [
        pytest.param(release, arch, level, method, id=f"{release}-{arch}-{level}-{method}")
        for release in found
        for arch in ARCHES
        if knows(release, arch)
        for level in ("-O1", "-O3")
        for method in MODULES
    ]


@pytest.mark.parametrize(("release", "arch", "level", "method"), runs())
def test_no_pair_is_merged_and_none_is_swapped(release, arch, level, method, tmp_path):
    binary = assemble(assembly(method, arch), release, arch, level, tmp_path)
    records = check_records(module(method).plan, binary)
    # No trigger escapes the reader.
    assert sum(map(len, records.values())) == pmtrig_words(binary) > 0


def test_the_releases_that_were_found_are_printed(capsys):
    with capsys.disabled():
        print("\nptxas releases:", ", ".join(releases()) or "none", end=" ")
