# SPDX-License-Identifier: Apache-2.0
"""No false alarm: on kernels of many shapes, on the project's own fixtures, and on its examples."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from builds import needs_nvcc
from toolbox import FIXTURES, INCLUDE, NVCC, ROOT

import iket_rewrite

CLEAN = sorted((FIXTURES / "lint" / "clean").glob("*.cu"))
OWN = sorted(path for room in ("cuda", "macros", "tilelang", "tirx") for path in (FIXTURES / room).glob("*.cu"))
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.cu*") if path.is_file())
#: What is true of fixtures.  Those of macros try the compiler with ranges around nothing; TileLang's warp
#: specialisation moves a copy out of its range and leaves a range open in the producer (docs/tilelang.md).
TRUE = {
    "macros/constant_evaluation": [(14, "empty-range")],
    "macros/control_flow": [(26, "empty-range")],
    "macros/if_constexpr": [(28, "empty-range")],
    "macros/lambdas": [(22, "empty-range"), (42, "empty-range")],
    "macros/second_prefix": [(23, "empty-range")],
    "macros/wrapped": [(36, "empty-range")],
    "tilelang/gemm_sm_80": [(line, "empty-range") for line in (59, 96, 122, 148)],
    "tilelang/gemm_sm_90a": [(43, "push-without-pop"), (66, "empty-range")],
    "tilelang/gemm_sm_100a": [(43, "push-without-pop"), (66, "empty-range")],
}


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def found(path: Path) -> list[tuple[int, str]]:
    return [(one.place.line, one.id) for one in iket_rewrite.lint(path.read_bytes(), path=path)]


def test_there_are_enough_clean_kernels():
    assert len(CLEAN) >= 20
    assert len(OWN) > 30


@pytest.mark.parametrize("path", CLEAN, ids=name)
def test_a_clean_kernel_is_decided_and_has_no_finding(path):
    assert found(path) == []
    assert iket_rewrite.rewrite(path.read_bytes(), path=path).plan.events


@pytest.mark.parametrize("path", OWN, ids=name)
def test_a_fixture_has_the_findings_that_are_true_and_no_other(path):
    assert found(path) == TRUE.get(name(path), [])


@pytest.mark.parametrize("path", EXAMPLES, ids=name)
def test_an_example_has_no_finding(path):
    assert found(path) == []


@needs_nvcc
def test_every_clean_kernel_and_every_fault_compiles(tmp_path):
    sources = [*CLEAN, *(FIXTURES / "lint" / "faults").glob("*.cu")]
    command = [NVCC, "-std=c++17", "-arch=sm_90a", "-cubin", "-t", "2", "-Xcicc", "-O0", f"-I{INCLUDE}"]
    done = subprocess.run([*command, *map(str, sources)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*.cubin"))) == len(sources)
