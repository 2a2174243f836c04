# SPDX-License-Identifier: Apache-2.0
"""A stand-in for `run-iket` where there is no GPU: the same command line, two real runs of the command, and its files.

What it does beside that is chosen by the variable STAND_IN, some words with commas:

    old            release 4.7: another name of the configuration variable, no option for a cluster
    silent         it ends well and writes nothing
    renamed        its files have other names
    crash          it fails itself after the passes
    no-cuda        the program never used CUDA: it fails as the real one does, after the first pass
    no-launch      the program used CUDA and launched nothing
    plain          kernels were launched, and none holds events
    two            two processes used CUDA
    idle           another process used CUDA and launched nothing
    no-advice      kernels without events, and it fails between the passes as it has no number to give
    deaf           it ignores being asked to end
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

MODES = set(os.environ.get("STAND_IN", "").split(","))
TRACE = Path(os.environ.get("STAND_IN_TRACE", "/dev/null"))
VARIABLE = "SMODEL_INJECTION_CONFIG" if "old" in MODES else "IKET_INJECTION_CONFIG"


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser()
    result.add_argument("--output-dir", "-o")
    result.add_argument("--clobber", action="store_true")
    result.add_argument("--log-level", choices=["error", "warn", "info"])
    profile = result.add_subparsers(required=True).add_parser("profile")
    profile.add_argument("--max-ts-cnt-per-warp", type=int)
    profile.add_argument("--postprocess", choices=["perfetto", "json", "html", "none", "all"], default="perfetto")
    profile.add_argument("--keep", action=argparse.BooleanOptionalAction)
    profile.add_argument("--warp-trace", action="store_true")
    if "old" not in MODES:
        profile.add_argument("--enabled-cluster", metavar="X,Y,Z")
    return result


def one_pass(tool: str, folder: Path, command: list[str]) -> int:
    """Run the command with a configuration, and read its output at its end, as the real one does."""
    folder.mkdir()
    config = folder / f"{folder.name}.config.json"
    config.write_text(json.dumps({"toolName": tool, "toolConfig": {"appInstrument": str(config)}}), encoding="utf-8")
    environment = dict(os.environ) | {VARIABLE: str(config), "CUDA_INJECTION64_PATH": "/runtime/libiket_injection.so"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    sys.stdout.buffer.write(done.stdout)
    return done.returncode


def launch(name: str) -> dict:
    return {"kernelName": name, "gridDim": {"x": 1, "y": 1, "z": 1}}


def write_tracker(folder: Path) -> None:
    if "no-cuda" in MODES:
        return
    seen = [] if "no-launch" in MODES else [launch("annotated")]
    if MODES & {"plain", "no-advice"}:
        seen = [launch("plain_add"), launch("plain_mul")]
    for pid in pids():
        (folder / f"pid_{pid}").mkdir()
        record = {"launches": seen, "graphLaunches": {}, "modules": []}
        if "no-advice" not in MODES:
            record["recommended_max_ts_cnt_per_warp"] = 24
        (folder / f"pid_{pid}" / "tracker.json").write_text(json.dumps(record), encoding="utf-8")


def pids() -> list[str]:
    return ["0x1a", "0x2b"] if MODES & {"two", "idle"} else ["0x1a"]


def write_traces(folder: Path, postprocess: str) -> None:
    if "silent" in MODES:
        return
    empty = {"meta": {"version": 1}, "stringTable": [], "locationTable": [], "launches": [], "graphLaunches": {}}
    data = json.dumps(empty).encode() if MODES & {"no-launch", "plain"} else TRACE.read_bytes()
    endings = {"json": [".trace.json"], "all": [".trace.json", ".pftrace", ".pftrace.gz", ".html"]}[postprocess]
    for pid in pids():
        for ending in endings:
            stem = "capture" if "renamed" in MODES else "iket_pid"
            end = ".events" if "renamed" in MODES else ending
            text = json.dumps(empty).encode() if "idle" in MODES and pid == "0x2b" else data
            (folder / f"{stem}_{pid}{end}").write_bytes(text if ending == ".trace.json" else b"made")


def main() -> int:
    known, rest = parser().parse_known_args()
    if "deaf" in MODES:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    command = rest[1:]
    folder = Path(known.output_dir)
    if known.clobber and folder.exists():
        raise SystemExit("the caller gave a folder that is not fresh")
    folder.mkdir()
    print("============= Dry run application first =============", flush=True)
    if not known.warp_trace:
        status = one_pass("tracker", folder / "tracker", command)
        if status != 0:
            print(f"Tracker failed with return code: {status}")
            return 1
        write_tracker(folder / "tracker")
        if MODES & {"no-cuda", "no-advice"}:
            raise AssertionError("recommended_max_ts_cnt_per_warp is not found in tracker")
    status = one_pass("iket", folder / "iket", command)
    if status != 0:
        return status
    for pid in pids():
        (folder / "iket" / f"pid_{pid}").mkdir()
    if "crash" in MODES:
        raise RuntimeError("the stand-in breaks")
    write_traces(folder, known.postprocess)
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # A signal of the program becomes a status, as the real one hands it on.
    sys.exit(status)
