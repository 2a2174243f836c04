# SPDX-License-Identifier: Apache-2.0
"""What the pages about TIRx show runs, up to the launch: docs/tirx.md and docs/tutorials/tirx.md."""

from __future__ import annotations

import sys
import types

import pytest
from pages import blocks, run, unknown_names
from tirx_frontend.support import TARGET, cubin
from toolbox import Official

from iket_rewrite.tirx import IketProfiler


@pytest.mark.parametrize(("page", "name"), [("docs/tirx.md", "affine"), ("docs/tutorials/tirx.md", "double")])
def test_the_blocks_of_a_page_run(page, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # PyTorch only makes the launch's tensors, and no page launches here.
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    names = run(page, {"TARGET": TARGET}, {'target="cuda"': "target=TARGET"})
    compiled = names["compiled"] if "compiled" in names else IketProfiler().compile(names[name], target=TARGET)
    assert Official(cubin(compiled)).kernel(name)[0] == name


def test_the_names_of_the_readme_exist():
    assert [found for block in blocks("README.md") for found in unknown_names(block)] == []
