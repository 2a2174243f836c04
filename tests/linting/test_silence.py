# SPDX-License-Identifier: Apache-2.0
"""`// iket-lint: off`: a comment on the line silences it, text that only looks like one does not."""

from __future__ import annotations

import pytest

import iket_rewrite


def count(statement: str) -> int:
    text = f"__global__ void kernel(int* o, int n)\n{{\n  {statement}\n  o[0] = n;\n}}\n"
    return len(iket_rewrite.lint(text))


@pytest.mark.parametrize(
    "statement",
    [
        'IKET_RANGE_PUSH("a");  // iket-lint: off',
        'IKET_RANGE_PUSH("a");  //iket-lint:off',
        'IKET_RANGE_PUSH("a");  // the caller pops; iket-lint: off, as it must',
        'IKET_RANGE_PUSH("a"); /* iket-lint: off */ o[1] = 2;',
        '/* iket-lint: off */ IKET_RANGE_PUSH("a");',
        '/* why:\n  iket-lint: off */ IKET_RANGE_PUSH("a");',
        'IKET_RANGE_PUSH("a",  // iket-lint: off\n    IKET_I32(n));',
        'IKET_RANGE_PUSH("a",\n    IKET_I32(n));  // iket-lint: off',
        'const char* s = "\\"/*"; IKET_RANGE_PUSH("a");  // iket-lint: off',
    ],
)
def test_a_comment_silences_its_line_and_an_annotation_that_ends_there(statement):
    assert count(statement) == 0


@pytest.mark.parametrize(
    "statement",
    [
        '// iket-lint: off\n  IKET_RANGE_PUSH("a");',
        'IKET_RANGE_PUSH("a");\n  // iket-lint: off',
        'IKET_RANGE_PUSH("a"); const char* s = "// iket-lint: off";',
        'IKET_RANGE_PUSH("a"); const char* s = R"(" // iket-lint: off)";',
        'IKET_RANGE_PUSH("// iket-lint: off");',
        'IKET_RANGE_PUSH("a");  // iket-lint: offset',
        'IKET_RANGE_PUSH("a");  // iket-lint: on',
        '/* iket-lint: off\n */ IKET_RANGE_PUSH("a");',
    ],
)
def test_nothing_else_does(statement):
    assert count(statement) == 1
