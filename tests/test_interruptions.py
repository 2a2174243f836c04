# SPDX-License-Identifier: Apache-2.0
"""Several writers at once, a full disk, a kill while writing: an output is the old file or the new one, whole."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builds import CUDA
from toolbox import ROOT

import iket_rewrite

KERNEL = '__global__ void k{n}(int* p) {{\n  IKET_RANGE("{name}");\n  p[0] = {n};\n}}\n'
#: Two sources of very different length, so that a mixture of their outputs is none of them.
SHORT = "#include <iket_rewrite/iket.cuh>\n" + KERNEL.format(n=0, name="short")
LONG = "#include <iket_rewrite/iket.cuh>\n" + "".join(KERNEL.format(n=n, name=f"long {n % 20}") for n in range(500))

#: Runs commands in a process that dies of SIGKILL at the n-th call of a function of `os`, before or after it.
DYING = """
import os, sys
sys.path.insert(0, {root!r})
function, when, countdown = {function!r}, {when!r}, {count}
real = getattr(os, function)
def dying(*arguments, **named):
    global countdown
    countdown -= 1
    if not countdown and when == "before":
        os.kill(os.getpid(), 9)
    result = real(*arguments, **named)
    if not countdown:
        os.kill(os.getpid(), 9)
    return result
setattr(os, function, dying)
from iket_rewrite.cli.{module} import main
sys.exit(main(sys.argv[1:]))
"""
#: Writes one source's output over and over.
WRITING = """
import sys
sys.path.insert(0, {root!r})
from iket_rewrite.cli.rewrite_command import main
for _ in range({times}):
    code = main(sys.argv[1:])
    assert code in (0, None), code
"""


def run(code: str, *arguments: str, **more) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=120, **more
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("short.cu").write_text(SHORT, encoding="utf-8")
    Path("long.cu").write_text(LONG, encoding="utf-8")
    return tmp_path


def rewritten(name: str) -> bytes:
    return iket_rewrite.rewrite(Path(name).read_bytes(), path=name).text


# --- Threads --------------------------------------------------------------------------------------------------


def test_eight_threads_rewrite_as_one_does():
    texts = [one.path.read_text(encoding="utf-8") for one in CUDA] * 4
    alone = [iket_rewrite.rewrite(text).text for text in texts]
    stripped = [iket_rewrite.strip(text).text for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = pool.map(lambda text: iket_rewrite.rewrite(text).text, texts)
        bare = pool.map(lambda text: iket_rewrite.strip(text).text, texts)
        assert list(together) == alone
        assert list(bare) == stripped


# --- Two processes --------------------------------------------------------------------------------------------


def started(times: int, *arguments: str) -> subprocess.Popen:
    code = WRITING.format(root=str(ROOT), times=times)
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended_well(*children: subprocess.Popen) -> None:
    for child in children:
        _, errors = child.communicate(timeout=120)
        assert child.returncode == 0, errors.decode()


def test_two_processes_that_write_one_file():
    wanted = {rewritten("short.cu"), rewritten("long.cu")}
    children = [started(12, name, "-o", "out.cu", "--quiet") for name in ("short.cu", "long.cu")]
    seen = set()
    while any(child.poll() is None for child in children):
        if Path("out.cu").exists():
            seen.add(Path("out.cu").read_bytes())
        time.sleep(0.001)
    ended_well(*children)
    assert seen <= wanted
    assert Path("out.cu").read_bytes() in wanted
    assert not [name for name in os.listdir() if name.startswith(".iket-")]


def test_two_processes_that_write_one_overlay():
    arguments = [["short.cu", "-I", "inc", "-o", "overlay"], ["long.cu", "short.cu", "-I", "inc", "-o", "overlay"]]
    Path("inc").mkdir()
    wanted = []
    for one in arguments:
        ended_well(started(1, *one, "--quiet"))
        wanted.append(content("overlay"))
    children = [started(12, *one, "--quiet") for one in arguments]
    while any(child.poll() is None for child in children):
        # It is never away.
        assert Path("overlay").is_dir()
        time.sleep(0.001)
    ended_well(*children)
    assert content("overlay") in wanted
    assert not [name for name in os.listdir() if name.startswith(".iket-")]


def content(name: str) -> dict[str, bytes]:
    folder = Path(name)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# --- A full disk ----------------------------------------------------------------------------------------------


def small_files() -> None:
    """No file of this process may be longer than 8 KiB; Python ignores the signal, so that writing fails."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


TRACE = next((ROOT / "fixtures").rglob("*.trace.json"))
COMMANDS = {
    "file": ("rewrite_command", ["long.cu", "-o", "out"]),
    "table": ("rewrite_command", ["short.cu", "-o", "short.out", "--events", "out"]),
    "strip": ("rewrite_command", ["long.cu", "--strip", "-o", "out"]),
    "page": ("trace_command", ["report", str(TRACE), "-o", "out"]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_is_full(name):
    module, arguments = COMMANDS[name]
    Path("out").write_bytes(b"old")
    if name == "table":
        Path("short.cu").write_text(LONG, encoding="utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from iket_rewrite.cli.{module} import main; sys.exit(main())"
    )
    before = set(os.listdir())
    done = run(code, *arguments, preexec_fn=small_files)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert "out" in done.stderr
    assert Path("out").read_bytes() == b"old"
    assert set(os.listdir()) == before


def test_an_overlay_on_a_disk_that_is_full():
    Path("inc").mkdir()
    ended_well(started(1, "short.cu", "-I", "inc", "-o", "overlay", "--quiet"))
    before, names = content("overlay"), set(os.listdir())
    code = WRITING.format(root=str(ROOT), times=1).replace("code in (0, None)", "code == 2")
    done = run(code, "long.cu", "-I", "inc", "-o", "overlay", preexec_fn=small_files)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert content("overlay") == before
    assert set(os.listdir()) == names


def test_a_device_without_room():
    done = run(WRITING.format(root=str(ROOT), times=1), "short.cu", "-o", "/dev/full")
    assert "No space left" in done.stderr


# --- A kill in the middle -------------------------------------------------------------------------------------


STEPS = [
    (function, when, count)
    for function in ("fsync", "chmod", "replace")
    for when in ("before", "after")
    for count in (1, 2)
]


@pytest.mark.parametrize(("function", "when", "count"), STEPS)
def test_a_kill_at_a_step_of_writing(function, when, count):
    old = {"out.cu": b"old", "table.json": b"{}"}
    for name, data in old.items():
        Path(name).write_bytes(data)
    arguments = ["long.cu", "-o", "out.cu", "--events", "table.json", "--quiet"]
    code = DYING.format(root=str(ROOT), function=function, when=when, count=count, module="rewrite_command")
    done = run(code, *arguments)
    found = {name: Path(name).read_bytes() for name in old}
    assert done.returncode == -signal.SIGKILL, done.stderr
    ended_well(started(1, *arguments))
    new = {name: Path(name).read_bytes() for name in old}
    for name, data in old.items():
        assert found[name] in (data, new[name])
    assert new["out.cu"] == rewritten("long.cu")


@pytest.mark.parametrize(("function", "count"), [("mkdir", 2), ("chmod", 1), ("rename", 1), ("listdir", 1)])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_an_overlay_is_written(function, count, when):
    Path("inc").mkdir()
    long, short = ([name, "-I", "inc", "-o", "overlay"] for name in ("long.cu", "short.cu"))
    ended_well(started(1, *long, "--quiet"))
    new = content("overlay")
    ended_well(started(1, *short, "--quiet"))
    old = content("overlay")
    done = run(DYING.format(root=str(ROOT), function=function, when=when, count=count, module="rewrite_command"), *long)
    # A system that exchanges folders in one step renames nothing.
    assert done.returncode == -signal.SIGKILL or (function == "rename" and content("overlay") == new), done.stderr
    assert content("overlay") in (old, new)


def test_kills_at_any_time():
    """Not at chosen steps, but whenever: ten processes that write without end."""
    wanted = {b"old", rewritten("long.cu"), rewritten("short.cu")}
    Path("out.cu").write_bytes(b"old")
    for attempt in range(10):
        child = started(10_000, ("long.cu", "short.cu")[attempt % 2], "-o", "out.cu", "--quiet")
        time.sleep(0.15 + 0.037 * attempt)
        child.kill()
        child.communicate()
        assert Path("out.cu").read_bytes() in wanted


def test_an_interrupt_leaves_nothing_behind():
    child = started(10_000, "long.cu", "-o", "out.cu", "--quiet")
    deadline = time.monotonic() + 60
    while not Path("out.cu").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert Path("out.cu").read_bytes() == rewritten("long.cu")
    assert not [name for name in os.listdir() if name.startswith(".iket-")]
