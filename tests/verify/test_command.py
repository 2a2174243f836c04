# SPDX-License-Identifier: Apache-2.0
"""What `iket-verify` prints: text in a pipe, tables on a terminal, JSON, SARIF, and the instructions of records."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from toolbox import nvrtc
from verify.planted import bend, binary, rewritten

from iket_rewrite.verification.rules import RULES

COMMAND = str(Path(sys.executable).with_name("iket-verify"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> tuple[Path, Path]:
    """A sound cubin, and one with a merged pair."""
    folder = tmp_path_factory.mktemp("cubins")
    good, bad = folder / "good.cubin", folder / "bad.cubin"
    good.write_bytes(binary(rewritten()))
    bad.write_bytes(binary(bend(rewritten(), ("st.volatile.shared.b32", "st.shared.b32"))))
    return good, bad


def test_exit_codes_and_one_line_for_a_sound_file(files):
    good, bad = files
    done = run(good)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{good}: ok: 5 events, 7 sites in 1 functions (nvdisasm ")
    assert "\x1b" not in done.stdout
    assert run(bad).returncode == 1
    assert run(good, bad).returncode == 1


def test_a_finding_names_kernel_address_rule_and_remedy(files):
    lines = run("-q", files[1]).stdout.splitlines()
    finding = next(line for line in lines if "[merged-record]" in line)
    assert finding.startswith(f"{files[1]} kernel+0x")
    assert ": error [merged-record]: timestamp and payload are one store of 64 bits" in finding
    assert any(line.startswith("  fix: ") for line in lines)


def test_json_is_one_report_for_one_file_and_a_list_for_several(files):
    report = json.loads(run("--json", files[1]).stdout)
    assert report["ok"] is False
    assert {finding["rule"] for finding in report["findings"]} >= {"merged-record"}
    assert len(report["sites"]) == 7
    assert [one["ok"] for one in json.loads(run("--json", *files).stdout)] == [True, False]


def test_sarif_names_every_rule_and_points_to_the_binary(files, tmp_path):
    done = run("--sarif", tmp_path / "out.sarif", files[1])
    log = json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8"))
    assert (done.returncode, log["version"]) == (1, "2.1.0")
    (one,) = log["runs"]
    assert [rule["id"] for rule in one["tool"]["driver"]["rules"]] == list(RULES)
    result = next(result for result in one["results"] if result["ruleId"] == "merged-record")
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == files[1].as_uri()


def test_sass_shows_each_record_with_its_verdict(files):
    text = run("--sass", files[1]).stdout
    assert "uniform (id 3): merged-record" in text
    record = text.split("uniform (id 3): merged-record\n")[1].splitlines()
    assert record[0].split()[1] == "STS.64"
    assert record[0].endswith("timestamp")
    assert record[1].split()[1:] == ["PMTRIG", "0x3", "trigger"]


def test_a_kernel_pattern_restricts_the_judging(files):
    # A function that it leaves out is no finding, but a pattern that leaves out all of them is a slip.
    done = run("--kernel", "other*", files[1])
    assert (done.returncode, done.stdout) == (2, "")
    assert run("--kernel", "ker*", files[1]).returncode == 1


def test_the_official_parser_agrees(files):
    assert "NVIDIA's parser agrees" in run("--official", files[0]).stdout


def test_line_info_leads_to_the_users_own_line(tmp_path):
    path = tmp_path / "lines.cubin"
    source = rewritten(path="kernel.cu")
    path.write_bytes(nvrtc(source, lineinfo=True, name="kernel.cu"))
    sites = json.loads(run("--json", path).stdout)["sites"]
    assert [site["line"] for site in sites] == [6, 7, 9, 10, 12, 14, 16]


def test_a_terminal_gets_colour_and_a_table(files):
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    process = subprocess.Popen([COMMAND, str(files[0])], stdout=slave, stderr=subprocess.DEVNULL, env=environment)
    os.close(slave)
    output = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        output += data
    os.close(master)
    assert process.wait() == 0
    assert b"\x1b[" in output
    assert "function" in output.decode()
    assert "verified" in output.decode()
