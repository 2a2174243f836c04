# SPDX-License-Identifier: Apache-2.0
"""Every error, warning, lint id and verify rule has its paragraph, hence its anchor; every public name its entry."""

from __future__ import annotations

import ast
import re

import pytest
from toolbox import ROOT

import iket_rewrite
from iket_rewrite.capturing.failures import SLUGS
from iket_rewrite.linting.finding import RULES as LINT_RULES
from iket_rewrite.verification.rules import RULES as VERIFY_RULES

PACKAGE = ROOT / "iket_rewrite"
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def read(page: str) -> str:
    return (ROOT / "docs" / page).read_text(encoding="utf-8")


def paragraphs(page: str) -> dict[str, str]:
    """Return the text under each heading of the third level, which is what gives an anchor."""
    return dict(re.findall(r"^### (\S+)\n([\s\S]*?)(?=^#|\Z)", read(page), re.MULTILINE))


def class_slugs() -> dict[str, str]:
    """Return the names of the error classes by their slug, of every room: TIRx need not be installed."""
    return {
        statement.value.value: node.name
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and ast.unparse(statement.targets[0]) == "slug"
        and isinstance(statement.value, ast.Constant)
    }


def notice_slugs() -> set[str]:
    """Return the slugs of the rewriter's warnings: of every notice, and of the plan's own helper."""
    found = set()
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and path.parent.name in ("rewriting", "building"):
                name = ast.unparse(node.func)
                words = {word.arg: word.value for word in node.keywords}
                if name.endswith("Notice"):
                    slug = words.get("slug") or (node.args[2] if len(node.args) > 2 else None)
                elif name == "self._warn":
                    slug = words.get("slug") or node.args[2]
                else:
                    continue
                if isinstance(slug, ast.Constant) and slug.value:
                    found.add(slug.value)
    return found


def test_the_page_of_errors_has_every_slug_and_nothing_else():
    assert len(class_slugs()) > 15
    assert len(notice_slugs()) > 5
    assert list(paragraphs("errors.md")) == list(dict.fromkeys(paragraphs("errors.md")))
    assert set(paragraphs("errors.md")) == class_slugs().keys() | set(SLUGS) | notice_slugs()


@pytest.mark.parametrize("slug", class_slugs())
def test_a_paragraph_names_the_class_and_its_exit_code(slug):
    name = class_slugs()[slug]
    text = paragraphs("errors.md")[slug]
    if name != "CaptureError":
        assert f"`{name}`" in text
    error = getattr(iket_rewrite, name, None)
    if error is not None and f"`{name}`, exit code" in text:
        assert f"exit code {error.exit_code}." in text
    else:
        assert "exit code" not in text or name == "VerificationError"


@pytest.mark.parametrize("slug", SLUGS)
def test_a_capture_that_the_program_has_to_change_for_says_so(slug):
    source = (PACKAGE / "capturing" / "failures.py").read_text(encoding="utf-8")
    made = next(part for part in source.split("\ndef ")[1:] if f'"{slug}"' in part)
    assert paragraphs("errors.md")[slug].startswith("Exit code 1.") == ("exit_code=1" in made)


@pytest.mark.parametrize(("page", "rules"), [("lint.md", LINT_RULES), ("verify.md", VERIFY_RULES)])
def test_every_rule_has_its_paragraph(page, rules):
    assert [rule for rule in rules if not paragraphs(page).get(rule, "").strip()] == []


def shown(page: str, module: str) -> list[str]:
    return re.findall(rf"^::: {re.escape(module)}\.(\w+)$", read(f"reference/{page}"), re.MULTILINE)


def public(path: str) -> list[str]:
    """Return `__all__` as the source has it."""
    (names,) = (
        node.value
        for node in TREES[PACKAGE / path].body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    return ast.literal_eval(names)


def test_the_reference_has_every_public_name_once():
    assert sorted(shown("python.md", "iket_rewrite")) == sorted(iket_rewrite.__all__)
    assert sorted(shown("tilelang.md", "iket_rewrite.tilelang")) == sorted(public("tilelang/__init__.py"))
    assert sorted(shown("tirx.md", "iket_rewrite.tirx")) == sorted(public("tirx/__init__.py"))


def test_every_command_has_its_entry():
    scripts = re.findall(r'^(iket-\w+) = "', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(re.findall(r"^## (iket-\w+)$", read("reference/commands.md"), re.MULTILINE)) == sorted(scripts)
    from iket_rewrite.cli.trace_command import SUBCOMMANDS

    assert re.findall(r"^### iket-trace (\w+)$", read("reference/commands.md"), re.MULTILINE) == list(SUBCOMMANDS)
