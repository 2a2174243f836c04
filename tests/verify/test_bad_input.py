# SPDX-License-Identifier: Apache-2.0
"""Files that can not be judged, and tools that fail: a message, exit code 2, never a traceback."""

from __future__ import annotations

import os
import random
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from verify.planted import binary, rewritten

import iket_rewrite
from iket_rewrite.verification import toolchain

COMMAND = str(Path(sys.executable).with_name("iket-verify"))


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=60,
    )


@pytest.fixture(scope="module")
def cubin() -> bytes:
    return binary(rewritten())


def huge_symbol(cubin: bytes) -> bytes:
    """Give the last symbol of the symbol table a size of two gigabytes."""
    from io import BytesIO

    from elftools.elf.elffile import ELFFile

    table = ELFFile(BytesIO(cubin)).get_section_by_name(".symtab")
    index = next(i for i, symbol in enumerate(table.iter_symbols()) if symbol.name == "__iket_meta_info")
    at = table["sh_offset"] + index * table["sh_entsize"] + 16
    return cubin[:at] + struct.pack("<Q", 2 << 30) + cubin[at + 8 :]


BAD = {
    "empty": lambda cubin: b"",
    "text": lambda cubin: b"hello, world\n" * 10,
    "random": lambda cubin: random.Random(1).randbytes(5000),
    "random with an ELF head": lambda cubin: cubin[:20] + random.Random(2).randbytes(5000),
    "truncated head": lambda cubin: cubin[:40],
    "truncated": lambda cubin: cubin[: len(cubin) // 2],
    "host ELF": lambda cubin: Path(sys.executable).resolve().read_bytes(),
    "fatbin head only": lambda cubin: b"\x50\xed\x55\xba" + bytes(60),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_exit_2_with_its_name(case, cubin, tmp_path):
    path = tmp_path / "bad.bin"
    path.write_bytes(BAD[case](cubin))
    done = run(path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr
    with pytest.raises(iket_rewrite.IketError):
        iket_rewrite.verify(path)


def test_a_symbol_of_two_gigabytes_is_told_with_its_name(cubin, tmp_path):
    path = tmp_path / "huge.cubin"
    path.write_bytes(huge_symbol(cubin))
    done = run(path)
    assert done.returncode == 2
    assert f"{path}: the cubin is damaged: __iket_meta_info is said to be 2147483648 bytes long" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("path", ["no/such/file", "."])
def test_a_missing_file_and_a_folder_without_binaries(path, tmp_path):
    done = run(tmp_path / path)
    assert done.returncode == 2
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


def test_no_arguments_is_wrong_usage():
    done = run()
    assert done.returncode == 2
    assert "--help" in done.stderr


def test_one_bad_file_among_good_ones_does_not_stop_the_rest(cubin, tmp_path):
    good, bad = tmp_path / "good.cubin", tmp_path / "bad.cubin"
    good.write_bytes(cubin)
    bad.write_bytes(cubin[:40])
    done = run(bad, good)
    assert done.returncode == 2
    assert f"{good}: ok" in done.stdout
    assert str(bad) in done.stderr


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_nvdisasm_that_fails_leaves_its_functions_not_verified(cubin, tmp_path):
    path = tmp_path / "kernel.cubin"
    path.write_bytes(cubin)
    tool = script(tmp_path / "nvdisasm", 'case "$1" in --version) echo V1.2.3;; *) echo broken >&2; exit 3;; esac')
    done = run(path, IKET_NVDISASM=str(tool))
    assert done.returncode == 1
    assert "[not-verified]" in done.stdout


def test_an_nvdisasm_that_hangs_is_ended(cubin, tmp_path):
    path = tmp_path / "kernel.cubin"
    path.write_bytes(cubin)
    tool = script(tmp_path / "nvdisasm", 'case "$1" in --version) echo V1.2.3;; *) sleep 100;; esac')
    done = run(path, IKET_NVDISASM=str(tool), IKET_TOOL_TIMEOUT="0.5")
    assert done.returncode == 2
    assert "nvdisasm did not end within 0.5 s" in done.stderr
    assert "IKET_TOOL_TIMEOUT" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_nvdisasm_is_named_with_the_way_to_get_it(cubin, tmp_path, monkeypatch):
    path = tmp_path / "kernel.cubin"
    path.write_bytes(cubin)
    done = run(path, IKET_NVDISASM=str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    toolchain.find_tool.cache_clear()
    monkeypatch.setattr(toolchain, "_in_wheel", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ("CUDA_HOME", "CUDA_PATH", "IKET_NVDISASM"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(iket_rewrite.ToolError, match="nvidia-cuda-nvdisasm"):
        iket_rewrite.verify(path)
    toolchain.find_tool.cache_clear()


def test_an_older_nvdisasm_that_prints_text_only_serves_as_well(cubin, tmp_path):
    path = tmp_path / "kernel.cubin"
    path.write_bytes(cubin)
    real = toolchain.find_tool("nvdisasm")
    tool = script(tmp_path / "nvdisasm", f'for a in "$@"; do [ "$a" = --emit-json ] && exit 1; done; exec {real} "$@"')
    assert run(path, IKET_NVDISASM=str(tool)).stdout.replace(str(path), "") == run(path).stdout.replace(str(path), "")


def test_mutated_cubins_give_a_report_or_a_documented_error(cubin):
    chance = random.Random(20261129)
    outcomes = set()
    for _ in range(60):
        data = bytearray(cubin)
        for _ in range(chance.randrange(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            outcomes.add(iket_rewrite.verify(bytes(data)).ok)
        except iket_rewrite.IketError as error:
            outcomes.add(type(error).__name__)
    assert outcomes & {False, "CubinError", "ToolError"}
