# SPDX-License-Identifier: Apache-2.0
"""Have nvdisasm show the functions of a cubin that hold triggers, and no others where that pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import CubinError, ToolError, ToolTimeoutError
from .cubin import Cubin, Function
from .early import output_form
from .sass import Listing, listings
from .toolchain import RunningTool, find_tool


def show(
    path: str, cubin: Cubin, functions: Sequence[Function], started: RunningTool | None, failures: dict[str, str]
) -> Iterator[Listing]:
    """Yield the listings of functions of the cubin in `path`.

    Where nvdisasm fails, it is asked again for text, which older releases print, and then for one function at a time,
    so that one that it can not show costs no other.

    Args:
        path: the cubin's file.
        cubin: what was read of it.
        functions: those to show.
        started: nvdisasm, where it runs on the whole file already.
        failures: takes, by name, why a function can not be shown.

    Raises:
        ToolTimeoutError: nvdisasm did not end in time.
    """
    run = started or RunningTool(_command(path, line_info=cubin.line_info, functions=functions))
    shown: set[str] = set()
    try:
        for listing in listings(run.chunks()):
            shown.add(listing.name)
            yield listing
        return
    except ToolTimeoutError:
        # Another try would take as long.
        raise
    except (ToolError, CubinError):
        pass
    finally:
        run.stop()
    for function in functions:
        if function.name in shown:
            continue
        run = RunningTool(_command(path, line_info=True, functions=[function]))
        try:
            yield from listings(run.chunks())
        except ToolTimeoutError:
            raise
        except (ToolError, CubinError) as error:
            failures[function.name] = error.message
        finally:
            run.stop()


def _command(path: str, *, line_info: bool, functions: Sequence[Function]) -> list[str]:
    chosen = ",".join(str(function.index) for function in functions)
    return [find_tool("nvdisasm"), *output_form(line_info=line_info), "--cuda-function-index", chosen, path]
