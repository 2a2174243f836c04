# SPDX-License-Identifier: Apache-2.0
"""Around a command: what is published, what streams through, and what is left when it fails."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from capturing.support import H200, TRACE, WHICH, alive, listing, python

import iket_rewrite
from iket_rewrite import CaptureError, CaptureWarning, OptionError
from iket_rewrite.capturing.devices import Asking, Device, Driver

WORKS = python("print('worked')")


def failure(slug: str, command=WORKS, **options) -> CaptureError:
    """Profile a command that can not be captured; return the error."""
    with pytest.raises(CaptureError) as caught:
        iket_rewrite.profile(command, **options)
    assert caught.value.slug == slug, caught.value
    assert caught.value.remedy
    return caught.value


# --- Success --------------------------------------------------------------------------------------------------


def test_a_result_names_its_files_and_reads_its_trace(stand_in, tmp_path, capfd):
    result = iket_rewrite.profile(WORKS, output_dir=tmp_path / "out")
    assert listing(tmp_path / "out") == [
        "iket_pid_0x1a.html",
        "iket_pid_0x1a.pftrace",
        "iket_pid_0x1a.pftrace.gz",
        "iket_pid_0x1a.trace.json",
    ]
    assert result.trace_json.read_bytes() == TRACE.read_bytes()
    assert (result.perfetto.name, result.html.name) == ("iket_pid_0x1a.pftrace", "iket_pid_0x1a.html")
    assert (len(result.trace.markers), len(result.launches)) == (96, 1)
    assert result.trace is result.trace
    assert result.contents == type(result.contents)(("k",), 32, 96, True)
    assert (result.events_per_warp, result.engine, list(result.command)) == (24, "replay", WORKS)
    assert capfd.readouterr().out == "worked\nworked\n"


@pytest.mark.parametrize(
    ("postprocess", "endings"),
    [
        ("json", [".trace.json"]),
        ("perfetto", [".pftrace"]),
        ("html", [".html", ".pftrace.gz"]),
    ],
)
def test_only_what_is_asked_for_is_published(stand_in, tmp_path, postprocess, endings):
    result = iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", postprocess=postprocess)
    assert listing(tmp_path / "out") == [f"iket_pid_0x1a{ending}" for ending in endings]
    if postprocess != "json":
        with pytest.raises(OptionError, match="no json file was asked for"):
            result.trace  # noqa: B018


def test_without_post_processing_the_intermediate_files_are_the_result(stand_in, tmp_path):
    iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", postprocess="none")
    assert listing(tmp_path / "out") == ["iket", "tracker"]


def test_intermediate_files_are_kept_on_request(stand_in, tmp_path):
    iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", postprocess="json", keep=True)
    assert listing(tmp_path / "out") == ["iket", "iket_pid_0x1a.trace.json", "tracker"]


def test_several_processes_have_a_file_each(stand_in, tmp_path):
    stand_in.does("two")
    result = iket_rewrite.profile(WORKS, output_dir=tmp_path / "out")
    assert [path.name for path in result.json_traces] == ["iket_pid_0x1a.trace.json", "iket_pid_0x2b.trace.json"]
    assert len(result.perfetto_traces) == len(result.html_reports) == 2
    with pytest.raises(OptionError, match="json_traces"):
        result.trace_json  # noqa: B018
    assert [process.pid for process in result.trace.processes] == ["0x1a", "0x2b"]
    assert len(result.launches) == 2


def test_a_process_that_launched_nothing_has_no_file(stand_in, tmp_path):
    stand_in.does("idle")
    result = iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", postprocess="json")
    assert listing(tmp_path / "out") == ["iket_pid_0x1a.trace.json"]
    assert len(result.launches) == 1


def test_the_command_gets_its_folder_and_environment(stand_in, tmp_path, capfd):
    (tmp_path / "inside").mkdir()
    code = "import os; print(os.getcwd(), os.environ['MINE'], 'iket' in os.environ.get('PYTHONPATH', ''))"
    iket_rewrite.profile(
        python(code), output_dir=tmp_path / "out", cwd=tmp_path / "inside", env={"MINE": Path("a value")}
    )
    assert capfd.readouterr().out == f"{tmp_path / 'inside'} a value False\n" * 2


def test_a_run_iket_is_named_from_here_and_not_from_the_commands_folder(stand_in, tmp_path):
    (tmp_path / "there").mkdir()
    stand_in.patch.chdir(tmp_path)
    stand_in.patch.setenv("IKET_RUN_IKET", "./run-iket")
    assert iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", cwd="there").trace_json.exists()


def test_a_run_iket_that_can_not_be_started_is_no_fault_of_the_output(stand_in, tmp_path):
    error = failure("runtime-missing", output_dir=tmp_path / "out", env={"LONG": "x" * 4_000_000})
    assert "Argument list too long" in error.output
    with pytest.raises(OptionError, match="no program can be started with this environment: Argument list too long"):
        Asking({"LONG": "x" * 4_000_000})
    assert "out" not in listing(tmp_path)


def test_output_comes_while_the_command_runs(stand_in, tmp_path):
    """The stand-in, like the real one, reads a program's output only at its end."""
    waiting = tmp_path / "go"
    code = f"print('first'); import os, time\nwhile not os.path.exists({str(waiting)!r}): time.sleep(0.01)\n"
    seen = []

    class Stream:
        def write(self, text):
            seen.append(text)
            waiting.touch()

        def flush(self):
            pass

    stand_in.patch.setattr(sys, "stdout", Stream())
    iket_rewrite.profile(python(code), output_dir=tmp_path / "out", timeout=60)
    assert "".join(seen).startswith("first")


def test_letters_that_the_output_does_not_know_do_not_stop_a_capture(stand_in, tmp_path):
    with open(tmp_path / "shown", "w", encoding="ascii") as stream:
        stand_in.patch.setattr(sys, "stdout", stream)
        iket_rewrite.profile(python("print('größer')"), output_dir=tmp_path / "out")
    assert (tmp_path / "shown").read_text() == "gr\\xf6\\xdfer\n" * 2


def test_a_reader_that_goes_away_does_not_stop_a_capture(stand_in, tmp_path):
    ours, theirs = os.pipe()
    os.close(ours)
    with contextlib.suppress(BrokenPipeError), open(theirs, "w", encoding="utf-8") as stream:
        stand_in.patch.setattr(sys, "stdout", stream)
        result = iket_rewrite.profile(WORKS, output_dir=tmp_path / "out")
    assert result.trace_json.exists()


def test_output_that_can_not_be_shown_is_a_warning_and_no_failure(stand_in, tmp_path):
    with contextlib.suppress(OSError), open("/dev/full", "w", encoding="utf-8") as stream:
        stand_in.patch.setattr(sys, "stdout", stream)
        with pytest.warns(CaptureWarning, match="output is not shown any more: .*No space left"):
            result = iket_rewrite.profile(WORKS, output_dir=tmp_path / "out")
    assert result.trace_json.exists()


def test_a_command_reads_nothing(stand_in, tmp_path, capfd):
    iket_rewrite.profile(python("import sys; print(repr(sys.stdin.read()))"), output_dir=tmp_path / "out")
    assert capfd.readouterr().out == "''\n''\n"


def test_one_pass_suffices_for_warp_lifetimes(stand_in, tmp_path, capfd):
    iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", warp_lifetimes_only=True)
    assert capfd.readouterr().out == "worked\n"


# --- What is there already ------------------------------------------------------------------------------------


def test_a_folder_that_is_there_is_not_replaced_unasked(stand_in, tmp_path):
    (tmp_path / "out").mkdir()
    failure("output-exists", output_dir=tmp_path / "out")
    assert listing(tmp_path / "out") == []


def test_a_folder_is_replaced_in_one_step(stand_in, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", clobber=True, postprocess="json")
    assert listing(tmp_path / "out") == ["iket_pid_0x1a.trace.json"]
    assert listing(tmp_path) == ["out", "run-iket"]


def test_a_run_that_fails_leaves_what_is_there_and_nothing_else(stand_in, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old").touch()
    failure("first-pass-failed", python("raise SystemExit(3)"), output_dir=tmp_path / "out", clobber=True)
    assert listing(tmp_path / "out") == ["old"]
    assert listing(tmp_path) == ["out", "run-iket"]


def test_the_working_folder_is_never_replaced(stand_in, tmp_path):
    (tmp_path / "out" / "here").mkdir(parents=True)
    stand_in.patch.chdir(tmp_path / "out" / "here")
    error = failure("output-exists", output_dir=tmp_path / "out", clobber=True)
    assert "working folder" in error.message


@pytest.mark.parametrize("clobber", [False, True])
def test_what_clobber_would_not_replace_is_refused_without_that_advice(stand_in, tmp_path, clobber):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "nowhere").symlink_to("not-there")
    stand_in.patch.chdir(tmp_path / "folder")
    for name in ("file", "link", "nowhere", "folder"):
        error = failure("output-exists", output_dir=tmp_path / name, clobber=clobber)
        assert str(tmp_path / name) in error.message
        assert "clobber" not in error.remedy


@pytest.mark.parametrize("name", ["run-iket/out", "run-iket/deep/out", "x" * 300, "a" * 300 + "/out"])
def test_a_place_where_nothing_can_be_made_is_told_before_the_command_runs(stand_in, tmp_path, name, capfd):
    with pytest.raises(OptionError, match="can not be written: ") as caught:
        iket_rewrite.profile(WORKS, output_dir=tmp_path / name)
    assert str(tmp_path / name) in caught.value.message
    assert capfd.readouterr().out == ""


def test_a_long_name_is_as_good_as_any(stand_in, tmp_path):
    assert iket_rewrite.profile(WORKS, output_dir=tmp_path / ("x" * 250)).trace_json.exists()


# --- Failures -------------------------------------------------------------------------------------------------


def test_a_failure_in_the_first_pass_tells_status_and_output(stand_in, tmp_path):
    error = failure("first-pass-failed", python("print('why'); raise SystemExit(3)"), output_dir=tmp_path / "out")
    assert "ended with status 3 in the first pass (sizing)" in error.message
    assert error.output == "why"
    assert "| why" in str(error)
    assert error.exit_code == 1


def test_a_command_that_is_a_whole_script_is_cut_in_messages(stand_in, tmp_path):
    error = failure("first-pass-failed", python("raise SystemExit(3)" + "#" * 5000), output_dir=tmp_path / "out")
    assert "... ended with status 3" in error.message
    assert len(error.message) < 500


def test_a_failure_in_the_second_pass_tells_the_signal(stand_in, tmp_path):
    code = WHICH + "print(tool, flush=True); tool == 'iket' and os.kill(os.getpid(), 11)"
    error = failure("second-pass-failed", python(code), output_dir=tmp_path / "out")
    assert "was ended by signal 11 (SIGSEGV) in the second pass (recording)" in error.message
    assert error.output == "tracker\niket"


def test_run_iket_itself_may_fail(stand_in, tmp_path):
    stand_in.does("crash")
    assert "the stand-in breaks" in failure("run-iket-failed", output_dir=tmp_path / "out").output


@pytest.mark.parametrize("words", ["no-cuda", "no-launch"])
def test_a_program_that_launches_nothing_is_told(stand_in, tmp_path, words):
    stand_in.does(words)
    assert "launched no kernel" in failure("no-launch", output_dir=tmp_path / "out").message


@pytest.mark.parametrize("words", ["plain", "no-advice"])
def test_kernels_without_events_are_listed(stand_in, tmp_path, words):
    stand_in.does(words)
    error = failure("not-instrumented", output_dir=tmp_path / "out")
    assert "plain_add, plain_mul" in error.message


@pytest.mark.parametrize("words", ["silent", "renamed"])
def test_success_without_a_trace_is_a_failure(stand_in, tmp_path, words):
    stand_in.does(words)
    error = failure("runtime-changed", output_dir=tmp_path / "out")
    assert ("capture_0x1a.events" in error.message) == (words == "renamed")


def test_a_cluster_that_does_not_exist_is_told(stand_in, tmp_path):
    error = failure("cluster-missing", output_dir=tmp_path / "out", cluster=(4, 0, 0))
    assert "cluster 4,0,0 does not exist in k" in error.message
    result = iket_rewrite.profile(WORKS, output_dir=tmp_path / "out", cluster=(3, 0, 0))
    assert result.contents.markers == 96


def test_an_option_that_this_release_lacks_is_told(stand_in, tmp_path):
    stand_in.does("old")
    error = failure("runtime-too-old", output_dir=tmp_path / "out", cluster=(0, 0, 0))
    assert "too old for one cluster" in error.message
    # All else works with it.
    assert iket_rewrite.profile(WORKS, output_dir=tmp_path / "out").contents.markers == 96


def test_a_machine_without_a_gpu_is_refused_first(stand_in, tmp_path, capfd):
    stand_in.has(Driver(None, (), "the driver's library libcuda.so.1 is not here"))
    assert "libcuda" in failure("no-gpu", output_dir=tmp_path / "out").message
    stand_in.has(Driver(13000, (Device("NVIDIA A100", (8, 0)),), None))
    assert "NVIDIA A100 (compute capability 8.0)" in failure("gpu-unsupported", output_dir=tmp_path / "out").message
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("variable", "value", "who"),
    [
        ("CUDA_INJECTION64_PATH", "/opt/nvidia/nsight-systems/libToolsInjection64.so", "Nsight Systems"),
        ("CUDA_INJECTION64_PATH", "/opt/x/libother.so", "a tool"),
        ("NSYS_PROFILING_SESSION_ID", "7", "Nsight Systems"),
    ],
)
def test_another_profiler_is_told(stand_in, tmp_path, variable, value, who):
    error = failure("other-profiler", output_dir=tmp_path / "out", env={variable: value})
    assert who in error.message


def test_a_profile_in_a_replayed_process_is_refused(stand_in, tmp_path):
    stand_in.patch.setenv("CUDA_INJECTION64_PATH", "/x/libiket_injection.so")
    stand_in.patch.setenv("IKET_INJECTION_CONFIG", "/x/config.json")
    error = failure("already-capturing", output_dir=tmp_path / "out")
    assert "without run-iket" in error.remedy


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"command": "echo hello"}, "list of words"),
        ({"command": []}, "empty"),
        ({"command": [""]}, "empty"),
        ({"command": None}, "list of words, not None"),
        ({"command": ["echo", 3]}, "a word of the command is 3, not a text"),
        ({"command": ["echo", "a\0b"]}, "without NUL"),
        ({"command": ["/"]}, "/: is a folder, not a program"),
        ({"env": ["a"]}, "env is a mapping"),
        ({"env": {"A": 1}}, "A in env is 1, not a text"),
        ({"env": {"A=B": "x"}}, "'A=B' can not be the name of a variable"),
        ({"env": {3: "x"}}, "a name in env is 3"),
        ({"cwd": 5}, "cwd is 5, not a text or a path"),
        ({"output_dir": None}, "output_dir is None, not a text or a path"),
        ({"output_dir": ""}, "output_dir is empty"),
        ({"timeout": "5"}, "timeout must be above 0, not '5'"),
        ({"timeout": True}, "timeout must be above 0, not True"),
        ({"cluster": 0}, "three indices"),
        ({"max_events_per_warp": 2**32}, "at most 4,294,967,295"),
        ({"command": ["no-such-program-anywhere"]}, "no such program"),
        ({"postprocess": "svg"}, "unknown postprocess"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"max_events_per_warp": 0}, "above 0"),
        ({"cluster": (0, 0)}, "three indices"),
        ({"cluster": (0, 0, 70000)}, "three indices"),
        ({"cluster": (0, 0, 0), "warp_lifetimes_only": True}, "do not go together"),
        ({"cwd": "/no/such/folder"}, "no folder"),
        ({"cwd": "x" * 300}, "no folder"),
        ({"command": ["./" + "x" * 300]}, "no such program"),
    ],
)
def test_what_can_not_be_is_refused_before_anything_runs(stand_in, tmp_path, options, words):
    values = {"command": WORKS, "output_dir": tmp_path / "out"} | options
    with pytest.raises(OptionError, match=words):
        iket_rewrite.profile(**values)
    assert listing(tmp_path) == ["run-iket"]


def test_a_file_that_must_not_be_run_is_not_called_missing(stand_in, tmp_path):
    (tmp_path / "app.py").write_text("print(1)")
    stand_in.patch.chdir(tmp_path)
    for word, message, remedy in (
        ("./app.py", "./app.py: is there, and must not be run", "chmod"),
        ("app.py", "app.py: there is no such program", "./app.py"),
    ):
        with pytest.raises(OptionError) as caught:
            iket_rewrite.profile([word], output_dir=tmp_path / "out")
        assert caught.value.message == message
        assert remedy in caught.value.remedy


# --- Time and interruption ------------------------------------------------------------------------------------

#: Starts a process of its own that outlives it unless the whole group is ended.
HANGS = (
    "import os, subprocess, sys, time; "
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
    "print(os.getpid(), child.pid, flush=True); time.sleep(600)"
)


def test_a_timeout_ends_every_process(stand_in, tmp_path):
    began = time.monotonic()
    error = failure("timed-out", python(HANGS), output_dir=tmp_path / "out", timeout=1.5)
    assert time.monotonic() - began < 8
    pids = [int(word) for word in error.output.split()]
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)
    assert "in pass 1 of 2" in error.message


def test_who_does_not_end_when_asked_is_made_to(stand_in, tmp_path):
    stand_in.patch.setattr("iket_rewrite.capturing.processes._GRACE_S", 0.3)
    stand_in.does("deaf")
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + HANGS
    error = failure("timed-out", python(code), output_dir=tmp_path / "out", timeout=1.5)
    assert not any(alive(int(word)) for word in error.output.split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_everything_when_it_is_interrupted(stand_in, tmp_path, number):
    driver = (
        "import sys; from iket_rewrite.capturing import around_command, devices\n"
        "from iket_rewrite.cli.profile_command import main\n"
        f"told = devices.{H200!r}\n".replace("Device(", "devices.Device(")
        + "class Told:\n    def __init__(self, environment=None): pass\n    def answer(self): return told\n"
        "around_command.Asking = Told\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", driver, "-o", str(tmp_path / "out"), "--clobber", "--", *python(HANGS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        process.send_signal(number)
        assert process.wait(20) == 130, process.stderr.read()
    assert not any(alive(pid) for pid in pids)
    assert listing(tmp_path) == ["out", "run-iket"]
    assert os.listdir(tmp_path / "out") == []
