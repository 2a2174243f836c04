# SPDX-License-Identifier: Apache-2.0
"""The program that run-iket starts in place of the command, once per pass; it starts the command and waits for it.

run-iket reads a program's output only when it has ended, and tells how it ended in words.  So the command's output
goes past it, through a named pipe, and how each pass began and ended is written down as JSON, one line each.  The
command's words come from a file, so that run-iket takes none of them for its own.

python relay.py PIPE RECORD COMMAND.json
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

_CONFIGURATIONS = ("IKET_INJECTION_CONFIG", "SMODEL_INJECTION_CONFIG")


def tool() -> str | None:
    """Return which tool run-iket injects in this pass: "tracker" counts, "iket" records."""
    for name in _CONFIGURATIONS:
        try:
            with open(os.environ[name], encoding="utf-8") as file:
                return str(json.load(file)["toolName"])
        except (KeyError, OSError, ValueError):
            continue
    return None


def main(pipe: str, record: str, words: str) -> int:
    """Run the command; return its status, or end by its signal."""
    with open(words, encoding="utf-8") as file:
        command = json.load(file)

    def note(**values: object) -> None:
        with open(record, "a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    output = os.open(pipe, os.O_WRONLY)
    note(event="begin", tool=tool())
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    except OSError as error:
        os.write(output, f"{command[0]}: {error.strerror}\n".encode())
        note(event="end", status=127)
        return 127
    status = child.wait()
    note(event="end", status=status)
    if status < 0:
        # run-iket is to see what happened to the command; one memory dump is enough.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
