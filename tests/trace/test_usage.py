# SPDX-License-Identifier: Apache-2.0
"""What newcomers ran into: outputs that are closed, files named twice, arguments that are not understood."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_traces import Maker, real

import iket_rewrite
from iket_rewrite.cli.trace_command import main
from iket_rewrite.rewriting.table import event_table

COMMAND = [sys.executable, "-m", "iket_rewrite.cli.trace_command"]
GRAPHS = os.fspath(real("clusters_divergence_graph"))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capfd):
    """Return a function that runs the command in this process."""

    def run_here(*arguments):
        try:
            code = main([os.fspath(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        return code, *capfd.readouterr()

    return run_here


@pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
@pytest.mark.parametrize("command", [["summary", GRAPHS], ["list", GRAPHS], ["compare", GRAPHS, GRAPHS]])
def test_a_closed_output_is_no_traceback(command, form):
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, *command, *form]
    done = subprocess.run(closed, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_finding():
    with subprocess.Popen([*COMMAND, "summary", GRAPHS], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compare", GRAPHS, GRAPHS, "--fail-slower", "much"], "'much' is no percentage: write 5%"),
        (["compare", GRAPHS, GRAPHS, "--fail-slower=-5"], "'-5' is no percentage: write 5%"),
        (["compare", GRAPHS, GRAPHS, "--fail-slower", "nan"], "'nan' is no percentage: write 5%"),
        (["report", GRAPHS, "-o", "a.html", "--limit", "0"], "'0' is no number of at least 1"),
        (["report", GRAPHS, "-o", "a.html", "--limit", "few"], "'few' is no number of at least 1"),
        (["open", GRAPHS, "--port", "65536"], "'65536' is no port: 0 to 65535"),
        (["open", GRAPHS, "--port", "http"], "'http' is no port: 0 to 65535"),
    ],
)
def test_an_argument_that_is_not_understood_is_said_in_words(run, arguments, said):
    code, _, err = run(*arguments)
    assert code == 2
    assert said in err
    assert "invalid _" not in err


@pytest.mark.parametrize("command", [["export"], ["report"]])
@pytest.mark.parametrize("through", ["k.trace.json", "link.json", "folder"])
def test_a_capture_is_never_overwritten_by_what_is_made_of_it(run, folder, command, through):
    kept = real("tirx_affine").read_bytes()
    Path("k.trace.json").write_bytes(kept)
    Path("link.json").symlink_to("k.trace.json")
    read, written = ("k.trace.json", through) if through != "folder" else (folder, "k.trace.json")
    code, _, err = run(*command, read, "-o", written)
    assert (code, err.splitlines()[0]) == (2, f"iket-trace: {written}: is what was read")
    assert Path("k.trace.json").read_bytes() == kept


def test_an_event_table_is_not_overwritten_either(run):
    table = event_table(iket_rewrite.rewrite("__global__ void k() {}\n", path="k.cu").plan)
    Path("table.json").write_text(json.dumps(table))
    assert run("export", real("tirx_affine"), "--events", "table.json", "-o", "table.json")[0] == 2
    assert json.loads(Path("table.json").read_text()) == table


def test_a_compressed_copy_beside_its_original_is_the_same_process():
    shutil.copy(real("tirx_affine"), "one.trace.json")
    for name in ("one", "two"):
        Path(f"{name}.trace.json.gz").write_bytes(gzip.compress(real("tirx_affine").read_bytes()))
    assert [process.label for process in iket_rewrite.load_trace(".").processes] == ["one", "two"]


@pytest.mark.parametrize("pattern", ["gemm<int[4], 'a'>", "gemm<int[4]*", "*[4], ?a?>"])
def test_brackets_in_a_kernel_s_name_are_themselves(run, pattern):
    maker = Maker("gemm<int[4], 'a'>").range("a", 0, 640).life(0, 999).again(kernelName="gemm<int4>")
    path = maker.range("a", 0, 640).life(0, 999).write(Path("t.trace.json"))
    code, out, _ = run("summary", path, "--kernel", pattern)
    assert code == 0
    assert "gemm<int[4], 'a'>: 1 launch" in out
    assert "gemm<int4>" not in out
    assert run("list", path, "--kernel", pattern)[1].count("gemm") == 1
    assert run("compare", path, path, "--kernel", pattern)[1].count("gemm") == 2


@pytest.mark.parametrize("command", [["summary", GRAPHS], ["list", GRAPHS], ["compare", GRAPHS, GRAPHS]])
def test_a_pattern_without_a_kernel_is_told_which_there_are(run, command):
    code, _, err = run(*command, "--kernel", "gemm*")
    said = "iket-trace: no kernel's name matches 'gemm*'\n  fix: the trace has clustered, divergent\n"
    assert (code, err) == (2, said)


def test_what_fails_a_comparison_is_named(run):
    native, extended = real("native_all_payloads"), real("extended_36_events")
    code, _, err = run("compare", native, extended, "--fail-slower", "5")
    assert code == 1
    named = [line.split(":")[2].strip() for line in err.splitlines()]
    assert named == [f"range '{x}'" for x in ("block", "tok", "tokp")]
    assert err.startswith("slower by more than 5%: k: range 'block': 2.583 ± 0.082 times\n")
    assert run("compare", native, native, "--fail-slower", "5")[::2] == (0, "")


def test_a_range_is_no_marker_to_align_on(run):
    shutil.copy(GRAPHS, "two.trace.json")
    code, _, err = run("list", GRAPHS, "two.trace.json", "--align", "marker:outer")
    assert (code, err) == (2, "iket-trace: no marker is named 'outer'\n  fix: choose from tick, lane\n")


def test_a_trace_without_launches_is_said_everywhere(run):
    Path("t.trace.json").write_text('{"launches": []}')
    code, out, _ = run("summary", "t.trace.json")
    assert code == 1
    assert out.startswith("warning [no-launches]: the trace holds no launch\n  fix: ")
    assert run("list", "t.trace.json") == (0, "the trace holds no launch\n", "")
    said = "nothing to compare: neither trace holds a launch that recorded anything\n"
    assert run("compare", "t.trace.json", "t.trace.json") == (0, said, "")


def test_a_name_of_two_lines_stays_on_one(run):
    name = "two\nlines \u202egnp.exe"
    path = Maker(name).range(name, 0, 20).mark(name, 5).life(0, 999).write(Path("t.trace.json"))
    code, out, _ = run("summary", path)
    assert code == 1
    assert out.count(r"two\nlines \u202egnp.exe") >= 4
    assert "\nlines" not in out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "is no event table: the key schema is missing"),
        ('{"schema": 1, "sites": [], "events": [{"kind": "mark"}]}', "is no event table: the key name is missing"),
        ("[]", "is no event table: a value is of another type"),
        ('{"schema": 9}', "is an event table of layout 9; 1 can be read"),
    ],
)
def test_what_is_wrong_with_an_event_table_is_said_in_words(run, content, said):
    Path("table.json").write_text(content)
    code, _, err = run("list", GRAPHS, "--events", "table.json")
    assert code == 2
    assert err.startswith(f"iket-trace: table.json: {said}\n  fix: ")


@pytest.mark.parametrize(
    "data", [b'{"launches": [', b"[]", b"{nonsense}", b'{"a":' * 9999, gzip.compress(b"{}" * 99, mtime=0)[:-9]]
)
def test_a_damaged_file_comes_with_a_way_out(run, data):
    Path("t.trace.json").write_bytes(data)
    code, out, err = run("summary", "t.trace.json")
    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert first.startswith("iket-trace: t.trace.json: ")
    assert second.startswith("  fix: ")


def test_a_range_that_ends_on_another_warp_is_noted(run):
    maker = Maker(block=64).range("a", 0, 640).range("b", 0, 640, warp=(0, 1)).life(0, 999).life(0, 999, warp=(0, 1))
    maker.launch["ranges"][0]["warpLocIdxs"] = [0, 1]
    code, out, _ = run("summary", maker.write(Path("t.trace.json")))
    assert code == 0
    assert "note [other-warp]: made: 1 ranges 'a' end on another warp" in out
