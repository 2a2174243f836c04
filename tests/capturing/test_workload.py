# SPDX-License-Identifier: Apache-2.0
"""`run` in a script's `__main__` block: what happens in which process, and what can not be replayed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from capturing.support import listing

import iket_rewrite
from iket_rewrite import CaptureError, OptionError

#: Tells of a GPU that is not there; all else is real.
TOLD = """
from iket_rewrite.capturing import around_command
from iket_rewrite.capturing.devices import Device, Driver
class Told:
    def __init__(self, environment=None): pass
    def answer(self): return Driver(13000, (Device("NVIDIA H200", (9, 0)),), None)
around_command.Asking = Told
"""
SCRIPT = """
import os, sys, pathlib
import iket_rewrite
def note(word):
    with open("log", "a") as log: log.write(word + "\\n")
note("module")
def workload():
    note("workload")
    {body}
if __name__ == "__main__":
    result = iket_rewrite.run(workload, output_dir="trace", engine="replay", clobber=True)
    note("after " + result.trace_json.name)
"""


def start(folder: Path, *words: str, body: str = "pass") -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(TOLD + SCRIPT.format(body=body), encoding="utf-8")
    command = [sys.executable, *(words or ("script.py",))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("words", [("script.py", "argument"), ("-m", "script"), ("-X", "utf8", "script.py")])
def test_a_script_is_replayed_as_the_guide_says(stand_in, tmp_path, words):
    done = start(tmp_path, *words)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "log").read_text().split("\n")
    assert log == ["module", "module", "workload", "module", "workload", "after iket_pid_0x1a.trace.json", ""]


def test_a_workload_that_fails_ends_the_script_with_the_reason(stand_in, tmp_path):
    done = start(tmp_path, body="raise ValueError('wrong result')")
    assert done.returncode == 1
    assert "ended with status 1 in the first pass" in done.stderr
    assert "ValueError: wrong result" in done.stderr
    assert (tmp_path / "log").read_text() == "module\nmodule\nworkload\n"
    assert "trace" not in listing(tmp_path)


SEVERAL = """
import iket_rewrite
def first(): print("workload first", flush=True)
def second(): print("workload second", flush=True)
def broken(): raise ValueError("broken")
for workload, engine in {calls}:
    try:
        print(iket_rewrite.run(workload, output_dir=workload.__name__, engine=engine, clobber=True).output_dir.name)
    except (ValueError, iket_rewrite.CaptureError) as error:
        print(getattr(error, "slug", error))
"""


@pytest.mark.parametrize(
    ("calls", "last"),
    [
        ('[(first, "replay"), (second, "replay")]', "not-replayable"),
        ('[(first, "replay"), (first, "replay")]', "not-replayable"),
        # The first one fails here for want of a GPU, and would be the one that a replay runs.
        ('[(second, "inprocess"), (first, "replay")]', "not-replayable"),
        ('[(first, "inprocess"), (first, "replay")]', "first"),
    ],
)
def test_a_replay_never_records_the_workload_of_an_earlier_call(stand_in, tmp_path, calls, last):
    stand_in.patch.setenv("IKET_RUNTIME", str(tmp_path / "nowhere"))
    (tmp_path / "script.py").write_text(TOLD + SEVERAL.format(calls=calls), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == last, done.stdout
    assert "second" not in listing(tmp_path)


def test_a_replay_from_a_thread_is_refused(stand_in, tmp_path):
    code = (
        "import threading, iket_rewrite\n"
        "def workload(): pass\n"
        "def go():\n"
        "    try: iket_rewrite.run(workload, output_dir='trace', engine='replay')\n"
        "    except iket_rewrite.CaptureError as error: print(error)\n"
        "thread = threading.Thread(target=go); thread.start(); thread.join()\n"
    )
    (tmp_path / "script.py").write_text(TOLD + code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert "called in a thread" in done.stdout, done.stderr
    assert "trace" not in listing(tmp_path)


def test_in_a_replayed_process_the_workload_runs_and_the_process_ends(monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/x/libsmodel_injection.so")
    monkeypatch.setenv("SMODEL_INJECTION_CONFIG", "/x/config.json")
    ran = []
    with pytest.raises(SystemExit) as caught:
        iket_rewrite.run(lambda: ran.append(1), output_dir=tmp_path / "trace")
    assert (caught.value.code, ran) == (0, [1])


def replay_failure(*command: str, folder: Path, text: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        input=text,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=dict(os.environ),
    )
    assert done.returncode == 1
    assert "this program can not be replayed" in done.stderr, done.stderr
    return done.stderr


CALL = "import iket_rewrite; iket_rewrite.run({}, output_dir='trace', engine='replay')"


def test_what_has_no_file_can_not_be_replayed(tmp_path):
    for command, text in ((("-c", CALL.format("lambda: None")), None), (("-",), CALL.format("lambda: None"))):
        assert "it has no file" in replay_failure(*command, folder=tmp_path, text=text)


def test_a_workload_of_another_file_can_not_be_replayed(tmp_path):
    (tmp_path / "other.py").write_text("def workload(): pass\n")
    (tmp_path / "script.py").write_text("import other\n" + CALL.format("other.workload"))
    assert "not defined in the script" in replay_failure("script.py", folder=tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workload": 3}, "must be callable"),
        ({"engine": "both"}, "unknown engine"),
        ({"postprocess": "svg"}, "unknown postprocess"),
        ({"engine": "inprocess", "keep": True}, "need engine='replay'"),
        ({"engine": "inprocess", "env": {}}, "need engine='replay'"),
    ],
)
def test_what_can_not_be_is_refused(tmp_path, options, words):
    values = {"workload": print, "output_dir": tmp_path / "trace"} | options
    with pytest.raises(OptionError, match=words):
        iket_rewrite.run(values.pop("workload"), **values)


def test_in_the_process_an_existing_folder_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "trace").mkdir()
    with pytest.raises(CaptureError, match="exists already") as caught:
        iket_rewrite.run(print, output_dir=tmp_path / "trace", engine="inprocess")
    assert caught.value.slug == "output-exists"
