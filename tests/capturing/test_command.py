# SPDX-License-Identifier: Apache-2.0
"""`iket-profile`: what it prints and how it exits, and the doctor."""

from __future__ import annotations

import json
import os
import pty
import shlex
import subprocess
import sys

import pytest
from capturing.support import WHICH, listing, python

from iket_rewrite.capturing import doctor, runtime
from iket_rewrite.capturing.devices import Device, Driver
from iket_rewrite.cli import profile_command

WORKS = python("print('worked')")
#: The command, told of a GPU.
TOLD = (
    "import sys; from iket_rewrite.capturing import around_command\n"
    "from iket_rewrite.capturing.devices import Device, Driver\n"
    "class Told:\n"
    "    def __init__(self, environment=None): pass\n"
    "    def answer(self): return Driver(13000, (Device('H200', (9, 0)),), None)\n"
    "around_command.Asking = Told\n"
    "from iket_rewrite.cli.profile_command import main; sys.exit(main(sys.argv[1:]))\n"
)


def test_a_capture_shows_the_commands_output_and_what_was_recorded(stand_in, tmp_path, capfd):
    assert profile_command.main(["-o", str(tmp_path / "out"), "--", *WORKS]) == 0
    shown = capfd.readouterr()
    assert shown.out == "worked\nworked\n"
    assert f"{tmp_path / 'out'}: 1 launches, 32 ranges, 96 markers, up to 24 events per warp" in shown.err
    assert f"next: iket-trace summary {tmp_path / 'out'}" in shown.err


def test_a_folder_below_the_working_folder_is_named_from_there(stand_in, tmp_path, capfd):
    stand_in.patch.chdir(tmp_path)
    assert profile_command.main(["-o", "new/trace", "--", *WORKS]) == 0
    shown = capfd.readouterr().err
    assert shown.startswith("new/trace: 1 launches")
    assert "next: iket-trace summary new/trace\n" in shown


def test_the_line_that_comes_next_can_be_pasted(stand_in, tmp_path, capfd):
    assert profile_command.main(["-o", str(tmp_path / "a b's"), "--", *WORKS]) == 0
    line = capfd.readouterr().err.split("next: ")[1]
    assert shlex.split(line) == ["iket-trace", "summary", str(tmp_path / "a b's")]


def test_a_reader_that_has_gone_costs_no_capture(stand_in, tmp_path):
    """As in `iket-profile ... | head -1`."""
    code = "import sys; print('first', flush=True); [print('x' * 1000) for _ in range(5000)]"
    command = [sys.executable, "-c", TOLD, "-o", str(tmp_path / "out"), "--", *python(code)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "first\n"
    process.stdout.close()
    said = process.stderr.read()
    assert (process.wait(60), "Traceback" in said) == (0, False)
    assert "1 launches" in said
    assert "iket_pid_0x1a.trace.json" in listing(tmp_path / "out")


def test_the_commands_own_words_are_nobody_elses(stand_in, tmp_path, capfd):
    words = ["--keep", "--", "-q", "--clobber", "profile", "a b", "\udcff"]
    command = [sys.executable, "-c", "import os, sys; print(os.fsencode('|'.join(sys.argv[1:])))", *words]
    assert profile_command.main(["-o", str(tmp_path / "out"), "--", *command]) == 0
    assert capfd.readouterr().out == "b'--keep|--|-q|--clobber|profile|a b|\\xff'\n" * 2
    assert "tracker" not in listing(tmp_path / "out")


def test_quiet_keeps_the_commands_output(stand_in, tmp_path, capfd):
    assert profile_command.main(["-q", "-o", str(tmp_path / "out"), "--postprocess", "json", "--", *WORKS]) == 0
    assert capfd.readouterr().out == ""
    assert listing(tmp_path / "out") == ["iket_pid_0x1a.trace.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "no command"),
        (["--", "no-such-program-anywhere"], 2, "no such program"),
        (["--timeout", "0", "--", "true"], 2, "timeout"),
        (["--json", "--", "true"], 2, "--json goes with --doctor"),
        (["--", "false"], 1, "false ended with status 1 in the first pass (sizing)"),
        (["--", *python(WHICH + "raise SystemExit(tool == 'iket')")], 1, "in the second pass (recording)"),
    ],
)
def test_failures_are_a_message_and_a_code(stand_in, tmp_path, capfd, arguments, code, words):
    assert profile_command.main(["-o", str(tmp_path / "out"), *arguments]) == code
    shown = capfd.readouterr().err
    assert words in shown
    assert "fix: " in shown
    assert "Traceback" not in shown
    assert listing(tmp_path) == ["run-iket"]


def test_wrong_options_are_usage():
    for arguments in (["--cluster", "a,b", "--", "true"], ["--postprocess", "svg", "--", "true"]):
        with pytest.raises(SystemExit) as caught:
            profile_command.main(arguments)
        assert caught.value.code == 2


def test_on_a_terminal_a_line_tells_how_long_it_takes(stand_in, tmp_path):
    ours, theirs = pty.openpty()
    slow = python("import time; print('begins'); time.sleep(0.8); print('ends')")
    command = [sys.executable, "-c", TOLD, "-o", str(tmp_path / "out"), "--", *slow]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, check=False, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0, shown
    assert done.stdout == "begins\nends\n" * 2
    assert "pass 1 of 2, " in shown
    assert "pass 2 of 2, " in shown


# --- The doctor -----------------------------------------------------------------------------------------------


def test_the_doctor_names_every_part_and_what_is_missing_here(capsys):
    """On a machine with a GPU that is supported it exits with 0, on any other with 1."""
    code = profile_command.main(["--doctor"])
    shown = capsys.readouterr().out
    for name in ("IKET runtime", "driver and GPU", "nvcc", "NVRTC", "nvdisasm", "TileLang", "TIRx", "PyTorch"):
        assert name in shown
    assert shown.splitlines()[-1].startswith("a capture can not work here" if code else "a capture could work here")
    assert "4.8.1" in next(line for line in shown.splitlines() if line.startswith("IKET runtime"))


def test_the_doctor_speaks_json(capsys):
    code = profile_command.main(["--doctor", "--json"])
    values = json.loads(capsys.readouterr().out)
    assert values["capture"] == (code == 0)
    parts = {part["name"]: part for part in values["parts"]}
    assert parts["IKET runtime"]["state"] == "found"
    assert all(part["install"] or part["state"] == "found" for part in parts.values())
    assert all(part["enables"] for part in parts.values())


@pytest.fixture
def told(monkeypatch):
    def tell(driver: Driver) -> None:
        class Told:
            def answer(self) -> Driver:
                return driver

        monkeypatch.setattr(doctor, "Asking", Told)

    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)
    monkeypatch.delenv("NSYS_PROFILING_SESSION_ID", raising=False)
    return tell


def test_a_capture_could_work_where_runtime_and_gpu_are(told):
    told(Driver(13000, (Device("NVIDIA H200", (9, 0)),), None))
    found = doctor.check_up()
    assert found.problem is None
    assert found.engines == ("inprocess", "replay")
    assert "NVIDIA H200 (compute capability 9.0)" in next(p.version for p in found.parts if p.name == "driver and GPU")


def test_a_gpu_that_is_not_supported_is_the_problem(told):
    told(Driver(13000, (Device("NVIDIA A100", (8, 0)),), None))
    found = doctor.check_up()
    assert "does not support this GPU: NVIDIA A100" in (found.problem or "")
    assert next(part.state for part in found.parts if part.name == "driver and GPU") == "unusable"


def test_another_profiler_is_the_problem(told, monkeypatch):
    told(Driver(13000, (Device("NVIDIA H200", (9, 0)),), None))
    monkeypatch.setenv("NSYS_PROFILING_SESSION_ID", "1")
    assert "Nsight Systems" in (doctor.check_up().problem or "")


def test_a_runtime_that_is_missing_is_the_problem_with_its_install_line(told, monkeypatch, tmp_path):
    told(Driver(13000, (Device("NVIDIA H200", (9, 0)),), None))
    monkeypatch.setenv("IKET_RUNTIME", str(tmp_path))
    found = doctor.check_up()
    assert "not where IKET_RUNTIME says" in (found.problem or "")
    assert "IKET_RUNTIME" in found.parts[0].install
    monkeypatch.delenv("IKET_RUNTIME")
    monkeypatch.setattr(runtime.sys, "path", [])
    monkeypatch.setenv("PATH", "")
    found = doctor.check_up()
    assert "not installed" in (found.problem or "")
    assert found.parts[0].install == "pip install 'iket-rewrite[profile]'"


def test_a_run_iket_of_another_place_is_enough_for_a_replay(told, stand_in, tmp_path):
    told(Driver(13000, (Device("NVIDIA H200", (9, 0)),), None))
    stand_in.patch.setenv("IKET_RUNTIME", str(tmp_path / "nowhere"))
    found = doctor.check_up()
    assert (found.problem, found.engines) == (None, ("replay",))
    assert found.parts[0].where == os.environ["IKET_RUN_IKET"]


def test_a_run_iket_that_does_not_start_is_no_way_to_capture(told, monkeypatch):
    told(Driver(13000, (Device("NVIDIA H200", (9, 0)),), None))
    monkeypatch.setenv("IKET_RUN_IKET", "/bin/false")
    found = doctor.check_up()
    assert (found.problem, found.engines) == (None, ("inprocess",))
    assert "IKET_RUN_IKET names /bin/false" in found.parts[0].version


def test_a_warning_is_a_line_of_the_command(stand_in, tmp_path):
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-c", TOLD, "-o", str(tmp_path / "out"), "--", *WORKS]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    lines = done.stderr.splitlines()
    assert lines[0].startswith("iket-profile: warning: the command's output is not shown any more: ")
    assert (done.returncode, len(lines)) == (0, 3), done.stderr
