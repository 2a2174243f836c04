# SPDX-License-Identifier: Apache-2.0
"""`iket-rewrite` on programs: what it writes, says and returns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from building.projects import BASIC, write

from iket_rewrite.building.writing import OPTIONS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(BASIC)
    return tmp_path


def run(*arguments: str, code: int = 0) -> tuple[str, str]:
    command = [sys.executable, "-m", "iket_rewrite.cli.rewrite_command", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def test_an_overlay_a_table_and_what_to_do_next():
    _, told = run("src/kernel.cu", "-I", "include", "-o", "out", "--events", "table.json")
    assert told.splitlines() == [
        "out: 3 events at 3 sites in 2 files, NativeDump, plan d43a2d49f3f4a153",
        f'compile: nvcc -I"$(iket-rewrite --print-include-dir)" --options-file out/{OPTIONS} out/src/kernel.cu',
    ]
    table = json.loads(Path("table.json").read_text())
    assert [(site["file"], site["line"]) for site in table["sites"]] == [
        ("src/../include/marks.cuh", 8),
        ("src/kernel.cu", 6),
        ("src/kernel.cu", 8),
    ]
    assert sorted(str(path) for path in Path("out").rglob("*.cu*")) == [
        "out/iket-rewrite-definitions.cuh",
        "out/include/marks.cuh",
        "out/src/kernel.cu",
        "out/src/plain.cuh",
    ]


def test_sources_without_annotations_are_named():
    write({"src/plain.cu": "int x;\n"})
    _, told = run("src/kernel.cu", "src/plain.cu", "-o", "out")
    assert "nothing to instrument, compile the original: src/plain.cu" in told
    assert not Path("out/src/plain.cu").exists()


def test_check_sees_every_difference():
    run("src/kernel.cu", "-o", "out/", "--plan", "plan.json")
    run("src/kernel.cu", "-o", "out", "--plan", "plan.json", "--check")
    Path("out/more").write_text("")
    assert run("src/kernel.cu", "-o", "out", "--check", code=1)[1] == "out/more is out of date\n"
    os.unlink("out/more")
    write({"include/marks.cuh": BASIC["include/marks.cuh"].replace("in helper", "helper")})
    _, told = run("src/kernel.cu", "-o", "out", "--plan", "plan.json", "--check", code=1)
    assert "out/include/marks.cuh is out of date\n" in told
    assert "plan.json is out of date\n" in told


def test_a_plan_file_without_an_overlay_serves_two_libraries():
    write({"other.cu": 'void f() { IKET_MARK("other"); }\n'})
    _, told = run("src/kernel.cu", "other.cu", "--plan", "plan.json")
    assert "plan.json: 4 new events\n" in told
    before = Path("plan.json").read_bytes()
    for number, source in enumerate(("src/kernel.cu", "other.cu")):
        _, told = run(source, "-o", f"out{number}", "--plan", "plan.json")
        assert "4 events" in told
        assert "new events" not in told
    assert Path("plan.json").read_bytes() == before
    write({"other.cu": 'void f() { IKET_MARK("another"); }\n'})
    assert "plan.json: 1 new events; rewrite whatever else shares it" in run("other.cu", "--plan", "plan.json")[1]


def test_list_prints_the_whole_program():
    out, _ = run("src/kernel.cu", "-I", "include", "--list")
    assert out.splitlines()[0] == "src/kernel.cu: native, 3 events"
    out, _ = run("src/kernel.cu", "-I", "include", "--list", "--json")
    assert [event["name"] for event in json.loads(out)["events"]] == ["in helper", "kernel", "traced"]


def test_an_error_in_a_header_names_it_and_writes_nothing():
    write({"include/marks.cuh": "\nvoid f(int x) { IKET_MARK(name, x); }\n"})
    _, told = run("src/kernel.cu", "-o", "out", "--plan", "plan.json", code=1)
    assert told.startswith("src/../include/marks.cuh:2:27: the event's name is no string literal")
    assert sorted(os.listdir()) == ["include", "src"]


def test_a_single_file_leaves_annotated_headers_alone_and_says_so():
    _, told = run("src/kernel.cu", "-o", "kernel.iket.cu")
    assert told.splitlines()[0] == (
        "warning: src/../include/marks.cuh is annotated and stays as it is: "
        "iket-rewrite with -I and a folder for -o rewrites a source with its headers"
    )
    assert "warning" not in run("src/kernel.cu", "-q", "-o", "kernel.iket.cu")[1]
