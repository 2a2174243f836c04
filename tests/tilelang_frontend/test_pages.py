# SPDX-License-Identifier: Apache-2.0
"""What the pages about TileLang show runs, up to the launch: docs/tilelang.md and docs/tutorials/tilelang.md."""

from __future__ import annotations

import json
import warnings

import pytest
from pages import blocks, run, unknown_names
from toolbox import ROOT

from iket_rewrite import tilelang as iket

#: Without a GPU a page's "cuda" has to be named.
TARGET = {'target="cuda"': 'target={"kind": "cuda", "arch": "sm_90a"}'}


@pytest.mark.parametrize(("page", "mark"), [("docs/tilelang.md", "stored"), ("docs/tutorials/tilelang.md", "done")])
def test_the_blocks_of_a_page_run(page, mark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").mkdir()
    try:
        names = run(page, {"json": json}, TARGET)
    finally:
        while iket.is_enabled():
            iket.disable()
        iket.disable_runtime_payloads()
        iket.set_output_dir(None)
    sites = [site for site in names["session"].kernels[0].table["sites"] if site["name"]]
    assert [site["name"] for site in sites] == ["block", mark]
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    shown = [lines[site["line"] - 1].strip() for site in sites]
    assert shown[0].startswith('with iket.range("block"')
    assert shown[1].startswith(f'iket.mark("{mark}"')


def test_the_names_of_the_readme_exist():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [name for block in blocks("README.md") for name in unknown_names(block)] == []
