# SPDX-License-Identifier: Apache-2.0
"""The code blocks of the README and of docs/, and what it means to check one that can not run here."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolbox import ROOT

from iket_rewrite import ToolError

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_NOTHING: Mapping[str, str] = {}
_BLOCK = re.compile(r"(?:^<!-- not run: (.+?) -->\n)?^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One code block.

    Attributes:
        page: the page's path, from the repository.
        line: of its first line of code.
        language: what stands behind the fence.
        text: the code.
        reason: why it is not run here, as a comment before it says, or an empty string.
    """

    page: str
    line: int
    language: str
    text: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def code(self, text: str | None = None):
        """Compile it, so that a traceback names its place on the page."""
        return compile("\n" * (self.line - 1) + textwrap.dedent(text or self.text), str(ROOT / self.page), "exec")


def _blocks(path: Path) -> list[Block]:
    text = path.read_text(encoding="utf-8")
    page = str(path.relative_to(ROOT))
    return [
        Block(page, text.count("\n", 0, found.start(3)) + 1, found[2], found[3], found[1] or "")
        for found in _BLOCK.finditer(text)
    ]


BLOCKS = tuple(block for path in PAGES for block in _blocks(path))


def blocks(page: str | None = None, language: str = "python") -> list[Block]:
    """Return the blocks of a language, of one page or of all."""
    return [block for block in BLOCKS if block.language == language and page in (None, block.page)]


def run(page: str, namespace: dict[str, object], replaced: Mapping[str, str] = _NOTHING) -> dict[str, object]:
    """Run a page's Python blocks one after the other, but for those that say why not; return what they define."""
    namespace.setdefault("__name__", "page")
    for block in blocks(page):
        if block.reason:
            unresolved = unknown_names(block)
            assert unresolved == [], f"{block}: {unresolved}"
            continue
        text = block.text
        for old, new in replaced.items():
            text = text.replace(old, new)
        exec(block.code(text), namespace)
    return namespace


def _value(node: ast.AST, names: dict[str, object]) -> object:
    """Return what an expression of names and attributes means; KeyError where the page alone does not tell."""
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, names)
        return getattr(owner, node.attr)
    raise KeyError(ast.dump(node))


def _imported(tree: ast.AST) -> dict[str, object]:
    """Return what the imports of our own modules bind; `iket_rewrite` needs none on a page.

    A frontend whose language is not installed binds nothing: another environment checks it.
    """
    names: dict[str, object] = {"iket_rewrite": importlib.import_module("iket_rewrite")}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "iket_rewrite":
            with contextlib.suppress(ToolError):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")
                    names[alias.asname or alias.name] = getattr(module, alias.name)
    return names


def unknown_names(block: Block) -> list[str]:
    """Return the names of ours in a block that do not exist, and arguments that their functions do not take."""
    tree = block.code() and ast.parse(textwrap.dedent(block.text))
    names = _imported(tree)
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            try:
                value = _value(node.func if isinstance(node, ast.Call) else node, names)
                if isinstance(node, ast.Call):
                    given = {word.arg: None for word in node.keywords if word.arg}
                    inspect.signature(value).bind_partial(*node.args, **given)
            except KeyError:
                continue
            except (AttributeError, TypeError) as error:
                wrong.append(f"{ast.unparse(node)}: {error}")
    return wrong
