# SPDX-License-Identifier: Apache-2.0
"""Every Python block of the README and of docs/ runs; one that says why it can not has names that exist.

Pages of TileLang run in tests/tilelang_frontend, those of TIRx in tests/tirx_frontend, in their own environments.
"""

from __future__ import annotations

import shutil

import pytest
from builds import FIXTURES, nvrtc
from pages import blocks, run, unknown_names
from toolbox import ROOT

import iket_rewrite

KERNEL = blocks("docs/tutorials/cuda.md", "cuda")[0].text
#: Pages that other tests run, in the environment of their frontend.
ELSEWHERE = {
    "docs/tilelang.md": "tilelang_frontend/test_pages.py",
    "docs/tutorials/tilelang.md": "tilelang_frontend/test_pages.py",
    "docs/tirx.md": "tirx_frontend/test_pages.py",
    "docs/tutorials/tirx.md": "tirx_frontend/test_pages.py",
}
HERE = sorted({block.page for block in blocks()} - ELSEWHERE.keys())


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """A folder with the files that pages name: a kernel, its binary, a trace with its table, a program."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.cu").write_text(KERNEL, encoding="utf-8")
    (tmp_path / "kernel.cubin").write_bytes(nvrtc(iket_rewrite.rewrite(KERNEL).text))
    (tmp_path / "trace").mkdir()
    shutil.copy(FIXTURES / "trace" / "tilelang_gemm_sm90a.trace.json", tmp_path / "trace")
    (tmp_path / "src").mkdir()
    (tmp_path / "include").mkdir()
    for name in ("a", "b"):
        text = KERNEL.replace("scale", name).replace("#include", '#include "marked.cuh"\n#include', 1)
        (tmp_path / "src" / f"{name}.cu").write_text(text, encoding="utf-8")
    header = "#pragma once\n#include <iket_rewrite/iket.cuh>\n#define MARKED(n) IKET_MARK(n)\n"
    (tmp_path / "include" / "marked.cuh").write_text(header, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("page", HERE)
def test_the_blocks_of_a_page_run(page, scene, capsys):
    namespace = {"iket_rewrite": iket_rewrite, "source": KERNEL}
    if page == "docs/traces.md":
        table = iket_rewrite.rewrite(KERNEL, path="kernel.cu")
        import json

        from iket_rewrite.rewriting.table import event_table

        (scene / "table.json").write_text(json.dumps(event_table(table.plan)), encoding="utf-8")
    run(page, namespace)


def test_every_page_with_python_is_run_somewhere():
    for page, test in ELSEWHERE.items():
        assert blocks(page)
        assert page in (ROOT / "tests" / test).read_text(encoding="utf-8"), page
    assert len(HERE) > 5


def test_a_wrong_name_and_a_wrong_argument_are_found():
    from pages import Block

    text = "import iket_rewrite\niket_rewrite.verifi('a')\niket_rewrite.capture(outputs='a')\nother.capture(1, x=2)\n"
    wrong = unknown_names(Block("README.md", 1, "python", text, "a test"))
    assert len(wrong) >= 2
    assert any("verifi" in one for one in wrong)
    assert any("outputs" in one for one in wrong)
