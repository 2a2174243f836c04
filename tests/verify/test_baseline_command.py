# SPDX-License-Identifier: Apache-2.0
"""What `iket-verify --baseline` prints: plain columns in a pipe, tables on a terminal, JSON; and its exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from verify.baselines import KINDS, marked, pipeline_pair, plain

import iket_rewrite

COMMAND = str(Path(sys.executable).with_name("iket-verify"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, Path, Path]:
    """A kernel without marks, with them, and with an array in shared memory that the first lacks."""
    folder = tmp_path_factory.mktemp("pair")
    more = KINDS.replace("tile[1024]", "tile[2048]")
    paths = folder / "plain.cubin", folder / "marked.cubin", folder / "more.cubin"
    for path, data in zip(paths, (plain(KINDS), marked(KINDS), marked(more)), strict=True):
        path.write_bytes(data)
    return paths


def test_a_pipe_gets_plain_columns(files):
    done = run("--baseline", *files[:2])
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["before", "after"] in rows
    assert ["named", "barriers", "1", "1"] in rows
    assert ["static", "shared", "memory,", "bytes", "5120", "5120"] in rows
    kernel = iket_rewrite.compare_binaries(*files[:2]).kernels[0]
    assert ["outside", "them", str(kernel.before.outside), str(kernel.after.outside)] in rows
    (compute,) = (row for row in rows if row[:1] == ["compute"])
    (address,) = (hex(one.address) for one in kernel.ranges if one.name == "compute")
    assert compute[1:3] == [f"(+{address})", "compute"]
    assert done.stdout.splitlines()[-1] == f"{files[1]}: ok: 1 kernel compared with {files[0]}"


def test_a_difference_that_matters_is_exit_code_1(files):
    done = run("--baseline", files[0], files[2], "-q")
    assert done.returncode == 1
    assert done.stdout == "kernel: warning [shared memory]: 5120 bytes before, 9216 bytes after\n"


def test_a_build_whose_marks_are_off_is_told(files):
    done = run("--baseline", files[0], files[0])
    assert done.returncode == 0
    assert f"{files[0]}: note: no kernel that was compared holds an event\n" in done.stdout
    assert "holds an event" not in run("--baseline", *files[:2]).stdout


def test_one_warning_is_one(files):
    assert ": not the same: 1 warning: 1 kernel" in run("--baseline", files[0], files[2]).stdout


def test_json_is_the_librarys_comparison(files):
    done = run("--baseline", files[0], files[2], "--json")
    values = json.loads(done.stdout)
    assert done.returncode == 1
    assert (values["schema"], values["ok"], values["plain"]) == (1, False, str(files[0]))
    (kernel,) = values["kernels"]
    assert kernel["after"]["shared_bytes"] - kernel["before"]["shared_bytes"] == 4096
    assert {one["name"]: one["label"] for one in kernel["ranges"]} == {
        name: name for name in ("issue only", "empty", "wait", "memory", "compute")
    }
    assert values == json.loads(json.dumps(iket_rewrite.compare_binaries(files[0], files[2]).as_json()))


def test_a_terminal_gets_tables(files):
    parent, child = pty.openpty()
    with subprocess.Popen(
        [COMMAND, "--baseline", *map(str, files[:2])],
        stdout=child,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ):
        os.close(child)
        shown = b""
        while True:
            try:
                part = os.read(parent, 4096)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(parent)
    text = shown.decode("utf-8")
    assert "\x1b[" in text
    assert "─" in text
    assert "issue only" in text


def test_source_lines_are_printed(tmp_path):
    paths = tmp_path / "off.cubin", tmp_path / "on.cubin"
    for path, data in zip(paths, pipeline_pair(), strict=True):
        path.write_bytes(data)
    done = run("--baseline", *paths)
    assert done.returncode == 0
    assert "consumer (kernel.cuh:34)" in done.stdout
    assert "order of shared memory operations, known by line: the same" in done.stdout


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--strict"], "--strict says nothing with --baseline"),
        (["--sarif", "-"], "--sarif says nothing with --baseline"),
        (["--kernel", "none*"], "no kernel matches none*"),
        (["again.cubin"], "--baseline compares with one binary"),
    ],
)
def test_wrong_usage_is_exit_code_2(files, extra, said):
    done = run("--baseline", *files[:2], *extra)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_none_is_named(files, tmp_path):
    missing, text = tmp_path / "missing.cubin", tmp_path / "text.cubin"
    text.write_text("no cubin")
    for pair, name in (((missing, files[1]), missing), ((files[0], text), text)):
        done = run("--baseline", *pair)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"iket-verify: {name}: ")
        assert "Traceback" not in done.stderr
