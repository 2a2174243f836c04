# SPDX-License-Identifier: Apache-2.0
"""Every command of the README and of docs/ exists and takes the options shown; most run, and print what is shown.

What needs a GPU, installs something or serves until it is stopped is parsed and not run.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from builds import FIXTURES, NVCC, nvrtc
from pages import BLOCKS, Block, blocks
from toolbox import ROOT

import iket_rewrite
from iket_rewrite.cli import profile_command, rewrite_command, trace_command, verify_command

CONSOLE = [block for block in BLOCKS if block.language == "console"]
PARSERS = {
    "iket-rewrite": lambda given: rewrite_command.parser().parse_args(rewrite_command._with_values(given)),
    "iket-verify": lambda given: verify_command.parser().parse_args(given),
    "iket-profile": profile_command._parsed,
    "iket-trace": lambda given: trace_command.parser().parse_args(given),
}
#: Programs of others that a page may name.
KNOWN = {"cd", "cmake", "compute-sanitizer", "nvcc", "python", "ssh"}
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


# --- What is shown parses ---------------------------------------------------------------------------------------


def lines(block: Block) -> list[str]:
    return [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]


def simple_commands(line: str) -> list[list[str]]:
    """Return the words of each command in a line, those in $(...) too, without comments and redirections."""
    inner = re.findall(r"\$\(([^()]*)\)", line)
    outer = re.sub(r"\$\([^()]*\)", "FOLDER", line)
    return [words for part in [*inner, *re.split(r" (?:\||&&) ", outer)] if (words := shlex.split(part, comments=True))]


def spelled_out(words: list[str]) -> list[list[str]]:
    """Return the ways to read a line such as `list FILE... [--json|--csv]`: each alternative once."""
    plain = [word.strip("[]").removesuffix("...") for word in words]
    most = max(len(word.split("|")) for word in plain)
    return [
        [word.split("|")[index % len(word.split("|"))] for word in plain if word and word != "..."]
        for index in range(most)
    ]


def check(words: list[str]) -> None:
    while re.fullmatch(r"[A-Z_]+=.*", words[0]):
        name = words.pop(0).split("=")[0]
        assert any(name in path.read_text(encoding="utf-8") for path in (ROOT / "iket_rewrite").rglob("*.py")), name
    program, *given = words
    if program in PARSERS:
        for reading in spelled_out(given) if given else [[]]:
            PARSERS[program](reading)
    elif program == "pip":
        extras = re.fullmatch(r"(?:iket-rewrite(?:\[([\w,]+)\])?|\.)", given[1])
        assert given[0] == "install"
        assert [name for name in (extras[1] or "").split(",") if name and f"\n{name} = [" not in PROJECT] == []
    elif program == "make":
        targets = [word for word in given if "=" not in word]
        assert [name for name in targets if not re.search(rf"^{name}:", MAKEFILE, re.MULTILINE)] == []
    else:
        assert program in KNOWN or f"{program} = " in PROJECT, program


@pytest.mark.parametrize("block", CONSOLE, ids=str)
def test_commands_and_options_exist(block):
    assert lines(block)
    for line in lines(block):
        for words in simple_commands(line):
            check(words)


@pytest.mark.parametrize(
    "line", ["iket-rewrite k.cu --lists", "iket-trace summery t", "pip install 'iket-rewrite[traces]'", "make tests"]
)
def test_a_wrong_command_is_found(line):
    with pytest.raises((SystemExit, AssertionError)):
        check(shlex.split(line))


# --- What is shown runs -----------------------------------------------------------------------------------------

TUTORIAL, MAIN = (block.text for block in blocks("docs/tutorials/cuda.md", "cuda"))
#: The kernel that a page shows; the tutorial's elsewhere.
KERNELS = {page: next(one.text for one in blocks(page, "cuda")) for page in ("README.md", "docs/lint.md")}
#: Pages whose commands run in a copy of the examples.
RUN = sorted({block.page for block in CONSOLE if not block.reason} - {"docs/tilelang.md", "docs/tirx.md"})
NOT_RUN = re.compile(
    r"^(pip |make |cmake |iket-profile |iket-trace open|\w+=.* (make|cmake) )"
    r"|\.\.\.|\bFILE\b|^iket-trace compare A "
)


@dataclass
class Step:
    """A command and the lines that it is shown to print."""

    line: str
    shown: list[str]
    block: Block


def steps(page: str) -> list[Step]:
    found: list[Step] = []
    for block in CONSOLE:
        if block.page == page and not block.reason:
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    found.append(Step(line[2:], [], block))
                else:
                    found[-1].shown.append(line)
    return [step for step in found if not NOT_RUN.search(step.line)]


def lay_scene(page: str, folder: Path) -> None:
    """Lay the files that the pages name."""
    kernel = KERNELS.get(page, TUTORIAL)
    (folder / "kernel.cu").write_text(kernel, encoding="utf-8")
    (folder / "main.cu").write_text("int main() {}\n" if page in KERNELS else MAIN, encoding="utf-8")
    marked = kernel if "#include" in kernel else f"#include <iket_rewrite/iket.cuh>\n{kernel}"
    (folder / "kernel.iket.cu").write_text(iket_rewrite.rewrite(kernel, path="kernel.cu").text, encoding="utf-8")
    (folder / "kernel.cubin").write_bytes(nvrtc(iket_rewrite.rewrite(marked).text))
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("a.cu", "b.cu", "src/a.cu", "lib/b.cu", "include/marked.cuh"):
        (folder / name).parent.mkdir(exist_ok=True)
        body = "\n".join([f"// {name}", '#include "marked.cuh"' if name.endswith(".cu") else "#pragma once", TUTORIAL])
        (folder / name).write_text(body.replace("scale", name.translate(str.maketrans("/.", "__"))), encoding="utf-8")
    traces = {"trace": "tilelang_gemm_sm90a", "before": "native_all_payloads", "after": "extended_36_events"}
    for name, fixture in traces.items():
        (folder / name).mkdir()
        shutil.copy(FIXTURES / "trace" / f"{fixture}.trace.json", folder / name)
    shutil.copy(FIXTURES / "trace" / "tirx_affine.trace.json", folder / "trace.json")


def missing_lines(shown: list[str], printed: list[str]) -> list[str]:
    """Return the shown lines that were not printed in this order; `...` stands for any lines."""
    rest = [line.rstrip() for line in printed]
    missing = []
    for line in (line.rstrip() for line in shown if line.strip() not in ("", "...")):
        if line in rest:
            rest = rest[rest.index(line) + 1 :]
        else:
            missing.append(line)
    return missing


@pytest.mark.parametrize("page", RUN)
def test_the_commands_of_a_page_print_what_is_shown(page, tmp_path):
    lay_scene(page, tmp_path)
    folder = tmp_path
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    block = None
    for step in steps(page):
        if step.block is not block:
            block, folder = step.block, tmp_path
        if step.line.startswith("cd "):
            folder = folder / step.line[3:]
            continue
        if "nvcc" in step.line and NVCC is None:
            pytest.skip("no nvcc here (PATH, or the variable NVCC)")
        wrong = any("type can not be told" in line for line in step.shown)
        if wrong:
            text = KERNELS[page].replace("IKET_I32(tile)", "tile")
            (folder / "kernel.cu").write_text(text, encoding="utf-8")
        environment = {**os.environ, "PATH": binaries, "COLUMNS": "120"}
        command = ["bash", "-c", f"set -o pipefail; {step.line}"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        said = f"{step.block}: {step.line}\n{done.stdout}{done.stderr}"
        # Of a trace that is worth reading there may be warnings.
        allowed = (0, 1) if step.line.startswith("iket-trace") else (1,) if wrong else (0,)
        assert done.returncode in allowed, said
        assert missing_lines(step.shown, [*done.stdout.splitlines(), *done.stderr.splitlines()]) == [], said


def test_most_commands_run():
    assert sum(len(steps(page)) for page in RUN) > 25
