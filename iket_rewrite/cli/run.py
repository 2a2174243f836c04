# SPDX-License-Identifier: Apache-2.0
"""What every command does around its work: known errors become a message and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def run_command(name: str, work: Callable[[], int]) -> int:
    """Run `work`; print an `IketError` and return its exit code.  Anything else is a fault of ours and shows itself."""
    try:
        code = work()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of our output went away (`| head`); keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        # Imported here: --help needs none of it, and dataclasses alone take half as long as Python's start.
        from ..errors import IketError

        if not isinstance(error, IketError):
            raise
        # A message about source starts with its place, as compilers' messages do.
        prefix = "" if error.exit_code == 1 else f"{name}: "
        print(f"{prefix}{error}", file=sys.stderr)
        return error.exit_code
