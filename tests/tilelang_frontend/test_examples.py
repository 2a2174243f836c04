# SPDX-License-Identifier: Apache-2.0
"""The examples run, with a GPU and without; a user can follow the page about TileLang."""

from __future__ import annotations

import re
import runpy
import shlex
import sys

import pytest
from toolbox import ROOT

from iket_rewrite import tilelang as iket

EXAMPLES = ROOT / "examples" / "tilelang"
PAGE = (ROOT / "docs" / "tilelang.md").read_text(encoding="utf-8")


def run(name: str, monkeypatch, capsys, *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_the_elementwise_example_shows_its_lines(monkeypatch, capsys):
    lines = run("elementwise.py", monkeypatch, capsys).splitlines()
    found = [re.fullmatch(r"(.+):(\d+): (\w+) +(\w*)", line).groups() for line in lines[:3]]
    assert [(kind, name) for _, _, kind, name in found] == [
        ("range_push", "block"),
        ("mark", "stored"),
        ("range_pop", ""),
    ]
    source = (EXAMPLES / "elementwise.py").read_text(encoding="utf-8").splitlines()
    assert 'iket.mark("stored"' in source[int(found[1][1]) - 1]
    assert "wrong" not in "".join(lines)


def test_the_gemm_example_shows_its_events_and_warns_of_its_copies(monkeypatch, capsys):
    with pytest.warns(iket.IketWarning, match="the range 'copy'"):
        lines = run("gemm.py", monkeypatch, capsys).splitlines()
    assert [line.split()[1:] for line in lines[:4]] == [
        ["mark", "tile", "i32"],
        ["range", "copy", "i32"],
        ["range", "multiply", "i32"],
        ["range", "store", "-"],
    ]


@pytest.mark.parametrize("name", ["elementwise.py", "gemm.py"])
def test_an_example_prints_the_command_that_captures_it(name, monkeypatch, capsys, tmp_path):
    parts = shlex.split(run(name, monkeypatch, capsys, "--command", str(tmp_path)))
    assert parts[-2:] == [sys.executable, str(EXAMPLES / name)]
    assert str(tmp_path) in parts


def test_the_page_names_everything_public():
    missing = [name for name in iket.__all__ if not re.search(rf"\b{name}\b", PAGE)]
    assert missing == []


def test_the_code_on_the_page_is_python():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        compile(block, "docs/tilelang.md", "exec")
