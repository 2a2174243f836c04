# SPDX-License-Identifier: Apache-2.0
"""Payloads that read a fragment where it is not spread over the threads that run.

A fragment's elements lie in registers of different threads.  TileLang makes them fit the `T.Parallel` loop over it; any
other access asks for a copy of the whole fragment in every thread, so that the annotation would change the kernel, or
TileLang refuses it with an error that names no annotation.
"""

from __future__ import annotations

from typing import Any

from ..rewriting.token_format import PREFIX, EventToken, TokenError, read_token
from . import compat

_SCOPE = "local.fragment"


def misread(program: Any) -> list[tuple[EventToken, str]]:
    """Return the events whose payloads read a fragment in another way than at the index of the loop over it, with the
    fragment's name."""
    spread: list[Any] = []
    payloads: list[tuple[str, list[Any]]] = []

    def see(node: Any) -> None:
        if isinstance(node, compat.For) and node.kind == compat.ForKind.PARALLEL:
            spread.append(node.loop_var)
        elif isinstance(node, compat.Call):
            texts = [index for index, one in enumerate(node.args) if _is_token(one)]
            if texts and len(node.args) > texts[0] + 1:
                payloads.append((str(node.args[texts[0]].value), list(node.args[texts[0] + 1 :])))

    body = getattr(program, "body", None)
    if body is not None:
        compat.visit(body, see)
    found = []
    for text, values in payloads:
        names = [name for value in values for name in _fragments(value, spread)]
        try:
            found += [(read_token(text), name) for name in dict.fromkeys(names)]
        except TokenError:
            # Whoever compiles it is told.
            continue
    return found


def _is_token(node: Any) -> bool:
    return isinstance(node, compat.StringImm) and str(node.value).startswith(PREFIX)


def _fragments(value: Any, spread: list[Any]) -> list[str]:
    """Return the fragments that a payload reads at anything but the variables of parallel loops."""
    names: list[str] = []

    def fits(index: Any, extent: Any) -> bool:
        return extent == 1 or any(index.same_as(variable) for variable in spread)

    def see(node: Any) -> None:
        if isinstance(node, compat.BufferLoad) and node.buffer.scope() == _SCOPE:
            sizes = [getattr(extent, "value", extent) for extent in node.buffer.shape]
            if not all(map(fits, node.indices, sizes)):
                names.append(str(node.buffer.name))

    compat.visit(value, see)
    return names
