# SPDX-License-Identifier: Apache-2.0
"""The site builds strictly, has every anchor that a program may name, and asks no other server for anything."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from toolbox import ROOT

import iket_rewrite
from iket_rewrite.capturing.failures import SLUGS
from iket_rewrite.linting.finding import RULES as LINT_RULES
from iket_rewrite.verification.rules import RULES as VERIFY_RULES

MKDOCS = Path(ROOT, os.environ.get("DOCS_VENV", ".venv-docs"), "bin", "mkdocs")
pytestmark = pytest.mark.skipif(not MKDOCS.exists(), reason="no environment of the documentation here (make docs)")


def build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [str(MKDOCS), "build", "--site-dir", str(folder), *options]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def anchors(page: Path) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("errors.html", SLUGS),
        ("lint.html", LINT_RULES),
        ("verify.html", VERIFY_RULES),
        ("reference/python.html", [f"iket_rewrite.{name}" for name in iket_rewrite.__all__]),
        ("reference/tirx.html", ["iket_rewrite.tirx.IketProfiler", "iket_rewrite.tirx.IketProfiler.compile"]),
        ("reference/commands.html", ["iket-rewrite", "iket-nvcc", "iket-trace-summary"]),
        ("traces.html", ["never-seen", "not-in-table", "empty-range"]),
    ],
)
def test_a_page_has_its_anchors(site, page, names):
    assert [name for name in names if name not in anchors(site / page)] == []


def test_the_reference_holds_what_the_docstrings_say(site):
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert iket_rewrite.verify.__doc__.splitlines()[0].split("`")[0].strip() in text
    assert "usage: iket-verify" in (site / "reference" / "commands.html").read_text(encoding="utf-8")


def test_no_page_asks_another_server(site):
    source = r'<(?:script|img|iframe|source)[^>]*\bsrc="(?:https?:)?//'
    style = r'<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//'
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    assert [str(page) for page in pages if re.search(f"{source}|{style}", page.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("[away](nowhere.md)", "nowhere.md"),
        ("[away](lint.md#no-such-rule)", "no-such-rule"),
        ("[away](../benchmarks/results/nothing.md)", "nothing.md"),
        ("::: iket_rewrite.no_such_name", "no_such_name"),
    ],
)
def test_what_leads_nowhere_ends_the_build(wrong, said, tmp_path):
    pages = tmp_path / "docs"
    pages.mkdir()
    (pages / "index.md").write_text(f"# Start\n\n[there](lint.md)\n\n{wrong}\n", encoding="utf-8")
    (pages / "lint.md").write_text("# Linting\n", encoding="utf-8")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[0]
    for old, new in {
        "docs_dir: docs": f"docs_dir: {pages}",
        "docs/site_hooks.py": str(ROOT / "docs" / "site_hooks.py"),
        "paths: [.]": f"paths: [{ROOT}]",
        "omitted_files: warn": "omitted_files: ignore",
    }.items():
        assert old in settings
        settings = settings.replace(old, new)
    (tmp_path / "mkdocs.yml").write_text(settings, encoding="utf-8")
    done = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
