# SPDX-License-Identifier: Apache-2.0
"""Folders of traces, and the command that collects one."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from toolbox import site_packages

import iket_rewrite
from iket_rewrite import tilelang as iket


@pytest.fixture
def folder(tmp_path):
    yield iket.set_output_dir(tmp_path / "traces")
    assert iket.set_output_dir(None) is None
    assert iket.output_dir() is None


def test_setting_the_folder_makes_it_and_names_it(folder, tmp_path):
    assert folder == tmp_path / "traces" == iket.output_dir() == iket.output_dir("/a/default")
    assert folder.is_dir()
    assert os.environ["TL_IKET_OUTPUT_DIR"] == str(folder)
    assert iket.output_path("kernel.cu") == folder / "kernel.cu"


def test_a_relative_folder_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert iket.set_output_dir("here") == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert iket.set_output_dir("~/there") == tmp_path / "there"
    iket.set_output_dir(None)


def test_the_folder_comes_from_the_variable_or_from_a_default(tmp_path, monkeypatch):
    assert iket.output_dir() is None
    assert iket.output_dir(tmp_path) == tmp_path
    monkeypatch.setenv("TL_IKET_OUTPUT_DIR", str(tmp_path / "named"))
    assert iket.output_dir(tmp_path) == tmp_path / "named"
    assert iket.output_path("a") == tmp_path / "named" / "a"
    monkeypatch.delenv("TL_IKET_OUTPUT_DIR")


def test_a_folder_that_is_given_is_the_one_that_is_used(folder, tmp_path):
    other = tmp_path / "other"
    assert iket.output_path("a", directory=other) == other / "a"
    assert other.is_dir()
    (other / "one.trace.json").write_text("{}")
    assert iket.trace_files(directory=other) == [other / "one.trace.json"]
    assert iket.trace_files() == []
    assert shlex.quote(str(other)) in iket.profile_command(["x"], directory=other)


def test_without_a_folder_the_helpers_say_what_to_do():
    for helper in (lambda: iket.output_path("a"), lambda: iket.profile_command(["a"])):
        with pytest.raises(RuntimeError, match="no folder for traces") as error:
            helper()
        assert isinstance(error.value, iket_rewrite.IketError)
    assert iket.trace_files() == []
    assert iket.trace_files(directory="/does/not/exist") == []


def test_traces_are_listed_largest_first(folder):
    for name, size in (("a", 10), ("b", 30), ("c", 20), ("d", 30)):
        (folder / f"{name}.trace.json").write_text("x" * size)
    (folder / "e.pftrace").write_text("x" * 100)
    assert [path.name[0] for path in iket.trace_files()] == ["b", "d", "c", "a"]


# --- The command -------------------------------------------------------------------------------------------------


def parts(command: str) -> list[str]:
    return shlex.split(command)


def test_every_part_of_the_command_is_quoted(folder, tmp_path):
    awkward = [Path("my program.py"), "--text=a'b\"c", "$HOME", "*", "ä;rm -rf", ""]
    found = parts(iket.profile_command(awkward, directory=tmp_path / "a folder; with 'quotes'"))
    at = found.index("--")
    assert found[at + 1 :] == [str(item) for item in awkward]
    assert found[found.index("--output-dir") + 1] == str(tmp_path / "a folder; with 'quotes'")
    assert found[at - 3 : at] == ["profile", "--postprocess", "all"]


def test_a_text_is_left_to_the_shell_as_it_is(folder):
    assert iket.profile_command("python app.py > log").endswith(" -- python app.py > log")


def test_options_of_the_command(folder):
    found = parts(iket.profile_command(["x"]))
    assert found[found.index("--output-dir") + 1 :][:2] == [str(folder), "--clobber"]
    found = parts(iket.profile_command(["x"], clobber=False, postprocess="none"))
    assert "--clobber" not in found
    assert found[found.index("--postprocess") + 1] == "none"


def test_the_command_starts_the_runtime_that_is_installed(folder):
    site_packages("nvidia-cutlass-dsl-libs-base", "")  # it is, here
    command = iket.profile_command([sys.executable, "-c", "pass"])
    start = command.partition(" --output-dir")[0]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        f"{start} --help", shell=True, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "--output-dir" in done.stdout
    assert "tilelang" not in start


def test_the_command_keeps_the_programs_own_path(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/of/the user")
    (setting,) = [part for part in parts(iket.profile_command(["x"])) if part.startswith("PYTHONPATH=")]
    assert setting.partition("=")[2].split(os.pathsep)[0] == "/of/the user"


def test_without_a_runtime_the_command_is_the_one_of_its_guide(folder, monkeypatch):
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "site-packages" not in entry])
    monkeypatch.setattr(iket.output, "find_spec", lambda name: None)
    command = iket.profile_command(["python", "app.py"])
    assert command.startswith("python -m iket.cli.main --output-dir ")
