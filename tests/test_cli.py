# SPDX-License-Identifier: Apache-2.0
"""The command iket-rewrite, run as users run it."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from texts import ANNOTATED, expected, fixture

import iket_rewrite
from iket_rewrite.cli.rewrite_command import main

COMMAND = Path(sys.executable).with_name("iket-rewrite")
WRONG = "__global__ void k() {\n  IKET_MARK(name);\n}\n"
REWRITTEN = iket_rewrite.rewrite(ANNOTATED.encode(), path="k.cu").text


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in an empty folder with one annotated source."""
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(ANNOTATED, newline="")
    return tmp_path


@dataclass
class Done:
    """What a run of the command left behind."""

    returncode: int
    stdout: bytes
    stderr: bytes


@pytest.fixture
def run(capfdbinary, monkeypatch):
    """Return a function that runs the command in this process, which is much faster than a new one."""

    def run_here(*arguments, data=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            code = main([os.fspath(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code
        return Done(code, *capfdbinary.readouterr())

    return run_here


def spawn(*arguments, data=None, **options):
    """Run the installed command in a process of its own."""
    command = [str(COMMAND), *map(os.fspath, arguments)]
    return subprocess.run(command, input=data, capture_output=True, check=False, timeout=60, **options)


def listing():
    return sorted(path.name for path in Path().iterdir())


def told(done) -> str:
    message = done.stderr.decode("utf-8", "surrogateescape")
    assert "Traceback" not in message
    return message


def test_the_output_stands_beside_the_input():
    done = spawn("k.cu")
    assert (done.returncode, done.stdout) == (0, b"")
    assert Path("k.iket.cu").read_bytes() == REWRITTEN
    assert listing() == ["k.cu", "k.iket.cu"]
    assert told(done).startswith("k.cu -> k.iket.cu: 1 events at 1 sites, NativeDump, plan ")


@pytest.mark.parametrize(
    ("name", "output"),
    [("k.cuh", "k.iket.cuh"), ("k", "k.iket.cu"), ("a.b.cu", "a.b.iket.cu"), ("é k.cpp", "é k.iket.cpp")],
)
def test_the_default_name_keeps_the_suffix(name, output):
    shutil.copy("k.cu", name)
    assert main([name, "-q"]) == 0
    assert Path(output).exists()


def test_the_output_can_be_named():
    assert main(["k.cu", "-o", "out.cu"]) == 0
    assert Path("out.cu").read_bytes() == REWRITTEN


def test_a_source_without_annotations_is_copied(run):
    Path("k.cu").write_bytes(b"\xff int a;\r\n")
    done = run("k.cu")
    assert Path("k.iket.cu").read_bytes() == b"\xff int a;\r\n"
    assert told(done) == "k.cu: nothing to instrument; k.iket.cu is a copy\n"


def test_a_dash_writes_to_standard_output():
    done = spawn("k.cu", "-o", "-")
    assert done.stdout == REWRITTEN
    assert listing() == ["k.cu"]


def test_a_dash_reads_standard_input():
    done = spawn("-", data=ANNOTATED.encode())
    assert done.stdout == iket_rewrite.rewrite(ANNOTATED.encode(), path="<stdin>").text
    assert spawn("-", "-o", "out.cu", data=b"int a;\xff").returncode == 0
    assert Path("out.cu").read_bytes() == b"int a;\xff"


def test_an_error_in_standard_input_has_a_place():
    done = spawn("-", data=WRONG.encode())
    assert (done.returncode, done.stdout) == (1, b"")
    assert told(done).startswith("<stdin>:2:13: the event's name is no string literal")


def test_several_files_are_written_beside_each_other():
    shutil.copy("k.cu", "l.cu")
    assert main(["k.cu", "l.cu"]) == 0
    assert listing() == ["k.cu", "k.iket.cu", "l.cu", "l.iket.cu"]


def test_of_several_files_none_is_written_when_one_is_wrong(run):
    Path("wrong.cu").write_text(WRONG)
    done = run("k.cu", "wrong.cu")
    assert done.returncode == 1
    assert "wrong.cu:2:13" in told(done)
    assert listing() == ["k.cu", "wrong.cu"]


def test_an_error_leaves_the_old_output_as_it_is():
    Path("k.cu").write_text(WRONG)
    Path("k.iket.cu").write_text("old")
    assert main(["k.cu"]) == 1
    assert Path("k.iket.cu").read_text() == "old"
    assert listing() == ["k.cu", "k.iket.cu"]


def test_the_table_of_events_is_written_as_json():
    Path("k.cu").write_text(
        '__global__ void k(int n) {\n  IKET_MARK("größe", IKET_I32(n));\n  IKET_RANGE_PUSH("r", IKET_COLOR(0xFF));\n'
        "  IKET_RANGE_POP();\n}\n"
    )
    assert main(["k.cu", "--events", "t.json", "-q"]) == 0
    table = json.loads(Path("t.json").read_text(encoding="utf-8"))
    assert "größe" in Path("t.json").read_text(encoding="utf-8")
    assert (table["schema"], table["method"], len(table["plan"])) == (1, "native", 16)
    assert table["events"] == [
        {
            "id": 1,
            "kind": "mark",
            "name": "größe",
            "payload": "i32",
            "declared": "i32",
            "range_id": None,
            "color": None,
        },
        {
            "id": 2,
            "kind": "range",
            "name": "r",
            "payload": None,
            "declared": None,
            "range_id": iket_rewrite.rewrite(Path("k.cu").read_text()).plan.events[1].range_id,
            "color": "#0000ff",
        },
    ]
    place = {"kernel": "k", "file": "k.cu", "column": 3}
    plain = {"expression": None, "form": None}
    assert table["sites"] == [
        {"event": 1, "kind": "mark", "name": "größe", "expression": "n", "form": "uniform", "line": 2, **place},
        {"event": 2, "kind": "range_push", "name": "r", "line": 3, **plain, **place},
        {"event": None, "kind": "range_pop", "name": None, "line": 4, **plain, **place},
    ]


def test_the_table_gives_the_position_of_a_generators_user(run):
    token = iket_rewrite.encode_event("mark", "a", file="kernel.py", line=7, column=5)
    Path("k.cu").write_text(f'void f() {{ IKET_EVENT("{token}"); }}')
    done = run("k.cu", "--events", "-")
    (site,) = json.loads(done.stdout)["sites"]
    assert (site["file"], site["line"], site["column"]) == ("kernel.py", 7, 5)
    assert site["generated"] == {"file": "k.cu", "line": 1, "column": 12}
    assert Path("k.iket.cu").exists()


def test_the_list_is_a_table_for_people(run):
    done = run("k.cu", "--list")
    assert done.stdout.decode() == (
        "k.cu: native, 1 event\n  id  kind  name  payload  color\n  1   mark  a     i32      -\n"
    )
    assert listing() == ["k.cu"]


def test_the_list_says_which_payloads_are_not_captured(run):
    assert b"i32 (not captured)" in run("k.cu", "--list", "--no-runtime-payloads").stdout


def test_names_that_would_break_the_table_are_escaped(run):
    Path("k.cu").write_text('void f() { IKET_MARK("a\\n\\tb\\x1b"); }')
    assert "a\\n\\tb\\x1b" in run("k.cu", "--list").stdout.decode()


@pytest.mark.parametrize(
    ("folder", "stem"),
    [("tirx", "native_sm_90a"), ("tilelang", "gemm_sm_90a.instrumented"), ("tirx", "extended_sm_100a")],
)
def test_instrumented_sources_are_listed(run, folder, stem):
    done = run(fixture(folder, stem), "--list", "--json")
    table = json.loads(done.stdout)
    wanted = expected(folder)[stem.split(".")[0]]["events"]
    assert {event["name"] for event in table["events"]} == {event["name"] for event in wanted}
    assert len(table["events"]) == len(wanted)


def test_our_own_output_is_listed_like_its_input(run):
    main(["k.cu", "-q"])
    before, after = (json.loads(run(path, "--list", "--json").stdout) for path in ("k.cu", "k.iket.cu"))
    assert [(e["id"], e["kind"], e["name"], e["payload"]) for e in before["events"]] == [
        (e["id"], e["kind"], e["name"], e["payload"]) for e in after["events"]
    ]
    assert run("k.cu", "k.iket.cu", "--list").returncode == 0


def test_an_instrumented_source_is_copied_and_told_so(run):
    main(["k.cu", "-q"])
    done = run("k.iket.cu", "-o", "again.cu")
    assert Path("again.cu").read_bytes() == Path("k.iket.cu").read_bytes()
    assert "k.iket.cu is instrumented already" in told(done)
    assert "k.iket.cu: instrumented already; again.cu is a copy" in told(done)


def test_metadata_that_can_not_be_decoded_is_told(run):
    Path("k.cu").write_text("unsigned char __iket_meta_info[3] = {1, 2, x};")
    done = run("k.cu", "--list")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "k.cu:1:15: the array __iket_meta_info is no list of bytes" in told(done)


def test_check_compares_with_what_is_on_disk(run):
    done = run("k.cu", "--check")
    assert (done.returncode, done.stdout) == (1, b"")
    assert told(done) == "k.iket.cu is missing; run: iket-rewrite k.cu\n"
    main(["k.cu", "-q"])
    assert run("k.cu", "--check").returncode == 0
    Path("k.cu").write_text(ANNOTATED.replace('"a"', '"b"'))
    done = run("k.cu", "--check")
    assert (done.returncode, told(done)) == (1, "k.iket.cu is out of date; run: iket-rewrite k.cu\n")
    assert Path("k.iket.cu").read_bytes() == REWRITTEN


@pytest.mark.parametrize("stem", [stem for stem in expected("tilelang") if stem != "tokens_sm_90a"])
def test_stripping_frees_tilelangs_source_of_calls(stem):
    assert main([os.fspath(fixture("tilelang", stem)), "--strip", "-o", "out.cu"]) == 0
    text, before = Path("out.cu").read_text(), fixture("tilelang", stem).read_text()
    assert "IKET" not in text
    assert text.count("\n") == before.count("\n")
    changed = [pair for pair in zip(before.split("\n"), text.split("\n"), strict=True) if pair[0] != pair[1]]
    assert len(changed) == expected("tilelang")[stem]["sites"]
    assert all(new.strip() == "((void)0);" for _, new in changed)


def test_a_stripped_source_stands_beside_the_input():
    assert main(["k.cu", "--strip"]) == 0
    assert "IKET" not in Path("k.stripped.cu").read_text()


@pytest.mark.parametrize("option", ["--runtime-payloads", "--no-runtime-payloads"])
def test_capturing_is_chosen_by_an_option(option):
    main([os.fspath(fixture("tilelang", "gemm_sm_90a")), "-o", "out.cu", option, "-q"])
    wanted = iket_rewrite.rewrite(
        fixture("tilelang", "gemm_sm_90a").read_bytes(),
        path=fixture("tilelang", "gemm_sm_90a"),
        runtime_payloads=option == "--runtime-payloads",
    )
    assert Path("out.cu").read_bytes() == wanted.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--arch", "sm_80"], "warning: sm_80: the IKET runtime supports sm_90 and newer"),
        (["--arch", "sm_80", "--pre-hopper", "rank0"], "overwrites the user's shared memory"),
        (["--method", "extended"], "ExtendedNativeDump"),
    ],
)
def test_what_the_author_should_know_goes_to_standard_error(run, options, message):
    done = run("k.cu", *options)
    assert (done.returncode, done.stdout) == (0, b"")
    assert message in told(done)
    assert told(run("k.cu", *options, "-q")) == ""


def test_help_version_and_include_folder_are_printed(run):
    assert b"exit codes: 0 fine; 1 annotation errors" in run("--help").stdout
    assert run("--version").stdout.decode() == f"iket-rewrite {iket_rewrite.__version__}\n"
    folder = Path(run("--print-include-dir").stdout.decode().strip())
    assert (folder / "iket_rewrite" / "iket.cuh").is_file()


USAGE = [
    ([], "no input"),
    (["--unknown"], "unrecognized arguments"),
    (["missing.cu"], "missing.cu: can not be read: No such file"),
    (["."], ".: can not be read: Is a directory"),
    (["k.cu", "-o", "."], ".: the folder for the overlay holds the source k.cu"),
    (["k.cu", "-o", "no/such/k.cu"], "no/such/k.cu: can not be written: No such file"),
    (["k.cu", "-o", "k.cu/x"], "k.cu/x: can not be written"),
    (["k.cu", "-o", "/proc/k.cu"], "/proc/k.cu: can not be written"),  # not even by root
    (["k.cu", "-o", "k.cu"], "k.cu: the output is an input"),
    (["k.cu", "-o", "./../link.cu"], "the output is an input"),
    (["k.cu", "--events", "k.cu"], "k.cu: the output is an input"),
    (["k.cu", "--events", "k.iket.cu"], "--events and k.cu have one output"),
    (["k.cu", "--events", "no/such/t.json"], "no/such/t.json: can not be written"),
    (["k.cu", "./k.cu"], "have one output"),
    (["k.cu", "k.iket.cu"], "k.iket.cu: the output is an input"),
    (["k.cu", "l.cu", "-o", "out"], "l.cu: can not be read: No such file"),
    (["k.cu", "l.cu", "--events", "t.json"], "l.cu: can not be read: No such file"),
    (["k.cu", "-I", "no"], "a program's output is a folder"),
    (["k.cu", "-I", "no", "-o", "out"], "no: is no folder"),
    (["k.cu", "-I", ".", "-o", "-"], "a program is read from files and written into a folder"),
    (["-", "-I", ".", "-o", "out"], "a program is read from files and written into a folder"),
    (["k.cu", "-I", ".", "-o", "out", "--strip"], "--strip takes single files"),
    (["k.cu", "-I", ".", "--check"], "--check needs a folder to compare with"),
    (["k.cu", "-I", ".", "-o", "out", "--events", "k.cu"], "k.cu: the output is an input"),
    (["k.cu", "-o", "out", "--plan", "./k.cu"], "./k.cu: the output is an input"),
    (["k.cu", "-o", "-", "--events", "-"], "can not both be standard output"),
    (["-", "-"], "standard input can be read only once"),
    (["-", "--check"], "--check needs a file to compare with"),
    (["k.cu", "--json"], "--json goes with --list"),
    (["k.cu", "--list", "-o", "x"], "--list writes nothing"),
    (["k.cu", "--list", "--events", "x"], "--events goes with rewriting only"),
    (["k.cu", "--check", "--events", "x"], "--events goes with rewriting only"),
    (["k.cu", "--strip", "--events", "x"], "--events goes with rewriting only"),
    (["k.cu", "--list", "--check"], "not allowed with"),
    (["k.cu", "--method", "both"], "unknown method 'both'"),
    (["k.cu", "--pre-hopper", "on"], "unknown pre_hopper 'on'"),
    (["k.cu", "--arch", "hopper"], "unknown target 'hopper'"),
    (["k.cu", "--arch", "hopper", "--strip"], "unknown target 'hopper'"),
]


@pytest.mark.parametrize(
    ("arguments", "message"), USAGE, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_wrong_usage_is_told_and_writes_nothing(arguments, message, folder, run):
    link = folder.parent / "link.cu"
    link.unlink(missing_ok=True)
    link.symlink_to(folder / "k.cu")
    Path("k.iket.cu").write_text("old")
    done = run(*arguments)
    link.unlink()
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in told(done)
    assert listing() == ["k.cu", "k.iket.cu"]
    assert Path("k.iket.cu").read_text() == "old"
    assert Path("k.cu").read_text() == ANNOTATED


def test_an_output_keeps_its_mode_and_a_link_stays_a_link():
    Path("real.cu").write_text("old")
    Path("real.cu").chmod(0o640)
    Path("link.cu").symlink_to("real.cu")
    assert main(["k.cu", "-o", "link.cu"]) == 0
    assert Path("link.cu").is_symlink()
    assert Path("real.cu").read_bytes() == REWRITTEN
    assert Path("real.cu").stat().st_mode & 0o777 == 0o640


def test_a_new_output_has_the_mode_that_the_umask_leaves():
    old = os.umask(0o027)
    try:
        main(["k.cu"])
    finally:
        os.umask(old)
    assert Path("k.iket.cu").stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_into_and_never_replaced():
    os.mkfifo("pipe")
    reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
    assert spawn("k.cu", "-o", "pipe").returncode == 0
    assert reader.communicate(timeout=60)[0] == REWRITTEN
    assert Path("pipe").is_fifo()


def test_a_failing_rename_leaves_no_trace(monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    assert main(["k.cu"]) == 2
    assert listing() == ["k.cu"]


def test_a_full_disk_leaves_no_trace(monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    Path("k.iket.cu").write_text("old")
    monkeypatch.setattr(os, "fsync", refuse)
    assert main(["k.cu"]) == 2
    assert listing() == ["k.cu", "k.iket.cu"]
    assert Path("k.iket.cu").read_text() == "old"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "arguments", [["k.cu", "-o", "-"], ["k.cu", "--list"], ["k.cu", "--list", "--json"], ["--version"]]
)
def test_a_full_standard_output_is_told(arguments):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 2
    assert "standard output: can not be written: No space left" in told(done)


def test_a_reader_that_goes_away_is_no_error():
    Path("k.cu").write_text(ANNOTATED + "// " + "x" * 1_000_000)
    line = f"{COMMAND} k.cu -o - | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False, timeout=60)
    assert (done.returncode, len(done.stdout), told(done)) == (0, 10, "")


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_standard_stream_is_told(closed):
    done = subprocess.run(["bash", "-c", f"{COMMAND} - -o - {closed}"], capture_output=True, check=False, input=b"")
    assert done.returncode == 2
    assert "closed" in told(done)


def test_a_path_that_is_not_utf8_is_written_and_listed(run):
    name = os.fsdecode(b"k\xff.cu")
    shutil.copy("k.cu", name)
    assert run(name, "--events", "t.json").returncode == 0
    assert Path(os.fsdecode(b"k\xff.iket.cu")).exists()
    assert json.loads(Path("t.json").read_text())["sites"][0]["file"] == name
    done = run(name, "--list")
    assert (done.returncode, b"1 event" in done.stdout, told(done)) == (0, True, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_can_not_show_a_name_is_no_error(encoding):
    Path("k.cu").write_text('void f() { IKET_MARK("中 🚀"); }')
    options = {"env": {**os.environ, "PYTHONIOENCODING": encoding}}
    listed = spawn("k.cu", "--list", **options)
    assert (listed.returncode, told(listed)) == (0, "")
    assert b"\\u4e2d" in listed.stdout
    assert json.loads(spawn("k.cu", "--list", "--json", **options).stdout)["events"][0]["name"] == "中 🚀"
    assert spawn("k.cu", **options).returncode == 0
