# SPDX-License-Identifier: Apache-2.0
"""The command iket-trace, run as users run it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_traces import Maker, real

from iket_rewrite.cli.trace_command import SUBCOMMANDS, main, parser

COMMAND = [sys.executable, "-m", "iket_rewrite.cli.trace_command"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capfdbinary):
    """Return a function that runs the command in this process, which is much faster than a new one."""

    def run_here(*arguments):
        try:
            code = main([os.fspath(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        out, err = (text.decode() for text in capfdbinary.readouterr())
        assert "Traceback" not in err
        return code, out, err

    return run_here


def spawn(*arguments, **options):
    command = [*COMMAND, *map(os.fspath, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def cells(text):
    return [[cell for cell in line.split("  ") if cell] for line in text.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["summary", real("tirx_affine")], 0),
        (["summary", real("tilelang_gemm_sm90a")], 1),
        (["summary", "none.trace.json"], 2),
        (["summary", real("tirx_affine"), "--by", "colour"], 2),
        (["summary"], 2),
        (["list", real("tilelang_gemm_sm90a")], 0),
        (["nothing"], 2),
        ([], 2),
        (["--version"], 0),
        (["summary", "--help"], 0),
    ],
)
def test_exit_codes_of_a_process(arguments, code):
    done = spawn(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == (code == 2)


def test_the_summary_of_the_tirx_example(run):
    code, out, err = run("summary", real("tirx_affine"))
    assert (code, err) == (0, "")
    assert out.startswith("profiled_affine_kernel: 1 launch, grid 1x1x1, block 32x1x1, mean 320 ns, 1 warps")
    assert any(
        line[0] == "affine" and "192 ns" in " ".join(line) and "60.0%" in " ".join(line)
        for line in map(str.split, out.splitlines())
        if line
    )
    assert any(
        line[:4] == ["start", "of", "affine", "loaded"] and line[5:7] == ["64", "ns"]
        for line in map(str.split, out.splitlines())
    )


def test_the_gemm_s_empty_range_is_warned_of(run):
    code, out, _ = run("summary", real("tilelang_gemm_sm90a"))
    assert code == 1
    assert "warning [empty-range]: main_kernel: range 'copy' takes at most one tick (32 ns) 906 times of 1024" in out
    assert "  fix: put the range around the code that does the work; warps 0-3 record no range" in out


def test_json_of_a_summary(run):
    code, out, _ = run("summary", real("tilelang_gemm_sm90a"), "--by", "warp", "--json")
    values = json.loads(out)
    assert (code, values["schema"], values["ok"], values["by"]) == (1, 1, False, "warp")
    (kernel,) = values["kernels"]
    assert {row["name"]: row["duration"]["count"] for row in kernel["ranges"]} == {
        "copy": 1024,
        "mma": 1024,
        "epilogue": 128,
    }
    assert {row["group"] for row in kernel["groups"]} == {"warps 4-11"}
    assert [role["label"] for role in kernel["roles"]] == ["warps 0-3", "warps 4-11"]
    assert values["findings"][0]["code"] == "empty-range"
    assert kernel["balance"][0]["cta_imbalance"] > 1


def test_csv_of_a_summary(run):
    code, out, err = run("summary", real("native_all_payloads"), "--by", "payload", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 1
    assert "warning [empty-range]" in err
    assert [row["group"] for row in rows if row["name"] == "tokp"] == [str(32 * number) for number in range(8)]
    assert sum(int(row["count"]) for row in rows) == 32


def test_a_kernel_by_pattern(run):
    code, out, _ = run("summary", real("clusters_divergence_graph"), "--kernel", "div*", "--csv")
    assert code == 0
    assert {row["kernel"] for row in csv.DictReader(io.StringIO(out))} == {"divergent"}
    code, _, err = run("summary", real("clusters_divergence_graph"), "--kernel", "gemm")
    assert (code, err) == (
        2,
        "iket-trace: no kernel's name matches 'gemm'\n  fix: the trace has clustered, divergent\n",
    )


def test_the_list(run):
    code, out, _ = run("list", real("clusters_divergence_graph"))
    assert code == 0
    assert [word for line in out.splitlines() for word in line.split() if line.split()[:1] == ["5"]][2:4] == [
        "graph_exec_2:1",
        "4x1x1",
    ]
    code, out, _ = run("list", real("clusters_divergence_graph"), "--json")
    values = json.loads(out)
    assert [launch["ranges"] for launch in values["launches"]] == [64, 8, 2, 32, 2, 32]
    assert {(event["name"], event["count"], event["payload"]) for event in values["events"]} == {
        ("outer", 44, ""),
        ("stage", 96, "i32"),
        ("tick", 38, ""),
        ("lane", 12, "u32"),
    }
    code, out, _ = run("list", real("clusters_divergence_graph"), "--csv")
    assert [row["grid"] for row in csv.DictReader(io.StringIO(out))] == [
        "8x1x1",
        "2x1x1",
        "1x1x1",
        "4x1x1",
        "1x1x1",
        "4x1x1",
    ]


def test_long_tables_are_cut_and_said_so(run):
    maker = Maker()
    for number in range(60):
        maker.range(f"r{number}", 0, 640)
    path = maker.life(0, 999).write(Path("t.trace.json"))
    _, out, _ = run("summary", path)
    assert "20 more rows: --all shows them" in out
    _, out, _ = run("summary", path, "--all")
    assert "more rows" not in out
    assert "r59" in out


def test_a_comparison(run):
    slow = Maker()
    fast = Maker()
    for number in range(8):
        fast.range("a", number * 1000, number * 1000 + 320 + number).range("b", number * 1000, number * 1000 + 640)
        slow.range("a", number * 1000, number * 1000 + 640 + number).range("b", number * 1000, number * 1000 + 640)
        if number < 7:
            fast.again()
            slow.again()
    before, after = fast.write(Path("a.trace.json")), slow.write(Path("b.trace.json"))
    code, out, _ = run("compare", before, after)
    assert code == 0
    assert "slower" in next(line for line in out.splitlines() if " a " in line)
    assert "noise" in next(line for line in out.splitlines() if " b " in line)
    assert "what varies between runs of the program is not in it" in out
    assert run("compare", before, after, "--fail-slower", "10%")[0] == 1
    assert run("compare", before, after, "--fail-slower", "150")[0] == 0
    assert run("compare", after, before, "--fail-slower", "10")[0] == 0
    assert run("compare", after, before, "--fail-slower", "-1")[0] == 2
    _, out, _ = run("compare", before, after, "--json")
    assert {row["name"]: row["verdict"] for row in json.loads(out)["rows"] if row["name"]} == {
        "a": "slower",
        "b": "noise",
    }
    _, out, _ = run("compare", before, after, "--csv")
    assert [row["before_unit"] for row in csv.DictReader(io.StringIO(out))] == ["launch"] * 3


@pytest.mark.parametrize("name", ["out.pftrace", "out.json", "out.pftrace.gz", "out.json.gz"])
def test_an_export(run, name):
    code, out, _ = run("export", real("tirx_affine"), "-o", name)
    assert code == 0
    assert out.startswith(f"{name}: 1 launches, ")
    data = Path(name).read_bytes()
    data = gzip.decompress(data) if name.endswith(".gz") else data
    assert b"affine" in data
    assert json.loads(data)["traceEvents"] if ".json" in name else data[:1] == b"\n"


def test_an_export_to_nowhere_leaves_nothing(run, folder):
    assert run("export", real("tirx_affine"), "-o", "out.svg")[0] == 2
    assert run("export", real("tirx_affine"), "-o", "no/such/folder.json")[0] == 2
    assert run("export", "none.json", "-o", "out.json")[0] == 2
    Path("cut.json").write_bytes(real("tirx_affine").read_bytes()[:500])
    code, _, err = run("export", "cut.json", "-o", "out.json")
    assert (code, err.splitlines()[0]) == (2, "iket-trace: cut.json: the JSON text is cut short")
    assert run("export", real("tirx_affine"), "-o", "out.json", "--kernel", "x")[0] == 2
    assert sorted(path.name for path in folder.iterdir()) == ["cut.json"]


def test_alignment_on_the_command_line(run):
    files = [real("native_all_payloads"), real("extended_36_events")]
    code, out, _ = run("export", *files, "--align", "marker:m", "-o", "out.json")
    assert code == 0
    assert "aligned on marker 'm', passed 1 times by all: remaining error unknown after one passing" in out
    code, _, err = run("export", *files, "--align", "m", "-o", "out.json")
    assert (code, err) == (2, "iket-trace: --align m: is not understood\n  fix: write --align marker:NAME\n")
    code, _, err = run("export", files[0], "--align", "marker:m", "-o", "out.json")
    assert code == 2
    assert "one process only" in err
    _, out, _ = run("summary", *files)
    assert "note [clocks]: 2 processes, each with a clock of its own" in out


def test_source_lines_come_from_the_event_table(run):
    from iket_rewrite.cli.rewrite_command import main as rewrite

    source = '#include <iket_rewrite/iket.cuh>\n__global__ void k() {\n  IKET_RANGE("r");\n}\n'
    Path("k.cu").write_text(source)
    assert rewrite(["k.cu", "-q", "--events", "table.json"]) == 0
    path = Maker("k").range("r", 0, 640).life(0, 999).write(Path("t.trace.json"))
    code, out, _ = run("summary", path, "--events", "table.json")
    assert code == 0
    assert "k.cu:3" in out


def test_names_can_not_move_the_cursor(run):
    name = "\x1b[2J[bold]evil[/bold]\r\n<script>"
    path = Maker(name).range(name, 0, 640).mark(name, 5).life(0, 999).write(Path("t.trace.json"))
    for command in (["summary"], ["list"], ["summary", "--by", "sm"]):
        code, out, _ = run(command[0], path, *command[1:])
        assert code == 0
        assert "\x1b" not in out
        assert r"\x1b[2J[bold]evil[/bold]\r\n<script>" in out


def test_a_terminal_without_utf_8_gets_its_table():
    path = Maker("é").range("ü", 0, 20_000).life(0, 30_000).write(Path("t.trace.json"))
    done = spawn("summary", path, env={**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\xfc" in done.stdout


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m iket_rewrite.cli.trace_command list {real('extended_36_events')} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""


def test_help_loads_neither_numpy_nor_rich():
    line = "import sys; from iket_rewrite.cli.trace_command import parser; parser().format_help(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True, timeout=60)
    assert not {"numpy", "rich", "msgspec", "perfetto"} & set(done.stdout.split())


@pytest.mark.parametrize("missing", ["numpy", "msgspec", "rich", "perfetto"])
def test_a_missing_package_is_named_with_its_install_line(missing, folder):
    (folder / f"{missing}.py").write_text("raise ImportError('hidden')\n")
    output = [] if missing == "rich" else ["-o", "out.pftrace"]
    done = spawn(
        "export" if output else "summary", real("tirx_affine"), *output, env={**os.environ, "PYTHONPATH": str(folder)}
    )
    assert done.returncode == 2, done.stderr
    assert f"iket-trace: {'reading traces needs' if missing in ('numpy', 'msgspec') else ''}" in done.stderr
    assert missing in done.stderr
    assert "pip install 'iket-rewrite[trace]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_subcommand_is_in_the_help():
    text = parser().format_help()
    assert {"summary", "list", "compare", "export"} <= SUBCOMMANDS.keys()
    assert [name for name in SUBCOMMANDS if name not in text] == []
