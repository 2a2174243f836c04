# SPDX-License-Identifier: Apache-2.0
"""What the tests without a compiler share: small sources, and the parts of a result that they look at."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from toolbox import FIXTURES

from iket_rewrite import IketError, Plan, rewrite

#: One range that needs every part of the definitions, for tests that only want some annotated source.
ANNOTATED = '__global__ void k(int n) {\n  IKET_MARK("a", IKET_I32(n));\n}\n'


def kernel(body: str, parameters: str = "int n, float* data") -> str:
    """Return a kernel around `body`, which starts on line 2, column 1."""
    return f"__global__ void k({parameters}) {{\n{body}\n}}\n"


def plan_of(text: str | bytes, **options) -> Plan:
    """Return the plan of a source."""
    return rewrite(text, **options).plan


def behind_line(text: str | bytes) -> str:
    """Return what follows the `#line` of the definitions: the user's text with its edits."""
    text = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    lines = text.splitlines(keepends=True)
    index = next(index for index, line in enumerate(lines) if line.startswith("#line 1"))
    return "".join(lines[index + 1 :])


def only_edited(text: str, result: str, *annotations: str) -> bool:
    """Say whether the result is the text with something in place of each annotation, and nothing else changed.

    The annotations stand in `text` in this order, on one line each.
    """
    pattern = re.escape(text)
    for annotation in annotations:
        assert re.escape(annotation) in pattern, annotation
        pattern = pattern.replace(re.escape(annotation), r"IKET_EMIT[^\n]*", 1)
    return re.fullmatch(pattern, behind_line(result)) is not None


def failure(text: str | bytes, kind: type[IketError] = IketError, **options) -> str:
    """Return the message with which the rewriter refuses the source."""
    with pytest.raises(kind) as caught:
        rewrite(text, path="k.cu", **options)
    return str(caught.value)


def place_and_caret(message: str) -> tuple[str, str]:
    """Return `line:column` of a message, and the text over its caret."""
    first, shown, caret = message.split("\n")[:3]
    start, end = caret.index("^"), len(caret)
    line, column = first.split(":")[1:3]
    return f"{line}:{column}", shown[start:end]


def expected(folder: str) -> dict[str, dict]:
    """Return what stands in the fixtures of a folder, by file stem."""
    return json.loads((FIXTURES / folder / "expected.json").read_text(encoding="utf-8"))


def fixture(folder: str, stem: str) -> Path:
    """Return the path of a fixture."""
    return FIXTURES / folder / f"{stem}.cu"
