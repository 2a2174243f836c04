# SPDX-License-Identifier: Apache-2.0
"""`iket-rewrite --lint`: what it prints, what it returns, and what does not go with it."""

from __future__ import annotations

import io
import json
import sys

import pytest

from iket_rewrite.cli.rewrite_command import main

OPEN = '__global__ void k(int* o) { IKET_RANGE_PUSH("a"); o[0] = 1; }\n'
FINE = '__global__ void k(int* o) { IKET_RANGE("a"); o[0] = 1; }\n'
LANES = '__global__ void k() { IKET_MARK("a", IKET_U32(threadIdx.x)); }\n'


@pytest.fixture(autouse=True)
def sources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("open.cu", OPEN), ("fine.cu", FINE), ("lanes.cu", LANES)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    yield
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fine.cu", "lanes.cu", "open.cu"]


@pytest.mark.parametrize(
    ("arguments", "code", "last"),
    [
        (["--lint", "open.cu"], 0, "open.cu: 1 warning"),
        (["open.cu", "--lint"], 0, "open.cu: 1 warning"),
        (["--lint=error", "open.cu"], 1, "open.cu: 1 warning"),
        (["--lint=error", "open.cu", "fine.cu"], 1, "fine.cu: no findings"),
        (["--lint=error", "fine.cu"], 0, "fine.cu: no findings"),
        (["--lint=all", "lanes.cu"], 0, "lanes.cu: 1 note"),
        (["--lint=error,all", "lanes.cu"], 0, "lanes.cu: 1 note"),
        (["--lint=error", "lanes.cu"], 0, "lanes.cu: no findings"),
    ],
)
def test_warnings_fail_only_where_that_is_asked_for(capsys, arguments, code, last):
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == last
    assert captured.err == ""


def test_a_finding_is_printed_as_errors_are(capsys):
    main(["--lint", "-q", "open.cu"])
    lines = capsys.readouterr().out.splitlines()
    message = 'warning: the range "a" is still open at the end of the function [push-without-pop]'
    assert lines[0] == f"open.cu:1:29: {message}"
    assert lines[2] == " " * 30 + "^" * len("IKET_RANGE_PUSH")
    assert lines[-1].startswith("  fix: ")


def test_json_holds_the_same(capsys):
    assert main(["--lint=error", "--json", "open.cu", "fine.cu"]) == 1
    table = json.loads(capsys.readouterr().out)
    assert table["schema"] == 1
    (finding,) = table["findings"]
    assert (finding["file"], finding["line"], finding["column"]) == ("open.cu", 1, 29)
    assert (finding["id"], finding["severity"]) == ("push-without-pop", "warning")
    assert finding["others"] == [{"role": "left open here", "file": "open.cu", "line": 1, "column": 61}]


def test_standard_input_is_read(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OPEN.encode())))
    assert main(["--lint=error", "-"]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:1:29: warning: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lint=loud", "open.cu"], "unknown --lint=loud"),
        (["--lint", "open.cu", "-o", "out.cu"], "--lint writes nothing"),
        (["--lint", "open.cu", "--events", "table.json"], "--lint writes nothing"),
        (["--lint", "open.cu", "-I", "."], "reads the named files alone"),
        (["--lint", "missing.cu"], "missing.cu: can not be read"),
        (["--lint"], "no input"),
    ],
)
def test_wrong_usage_is_told(capsys, arguments, message):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_two_modes_are_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--lint", "--check", "open.cu"])
    assert ended.value.code == 2
    assert "not allowed with" in capsys.readouterr().err
