# SPDX-License-Identifier: Apache-2.0
"""What every command does around its work: known errors become a message and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable


def run_command(name: str, work: Callable[[], int]) -> int:
    """Run `work`; print an `IketError` and return its exit code.  Anything else is a fault of ours and shows itself."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names and paths are any text; a terminal that can not show one must not end in a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of our output went away (`| head`).
        _silence()
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        # Files have been dealt with where they are opened: what is left is a full disk behind standard output.
        _silence()
        print(f"{name}: standard output: can not be written: {error.strerror or error}", file=sys.stderr)
        return 2
    except Exception as error:
        # Imported here: --help needs none of it, and dataclasses alone take half as long as Python's start.
        from ..errors import IketError

        if not isinstance(error, IketError):
            raise
        # A message about source starts with its place, as compilers' messages do.
        prefix = "" if error.exit_code == 1 else f"{name}: "
        print(f"{prefix}{error}", file=sys.stderr)
        return error.exit_code


def _silence() -> None:
    """Keep the interpreter from writing what is left, and from complaining that it can not."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
