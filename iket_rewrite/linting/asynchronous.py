# SPDX-License-Identifier: Apache-2.0
"""Which code issues asynchronous copies and matrix instructions, and which waits for them."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ISSUE_ASM = re.compile(
    r"\bcp\.async\.(?:ca|cg|bulk(?!\.(?:commit_group|wait_group|prefetch)))|\bcp\.reduce\.async\b"
    r"|\bwgmma\.mma_async\b|\btcgen05\.(?:mma|cp)\b"
    # CuTe's structures, whose methods are these instructions.
    r"|\bSM\d+_(?:TMA_(?:LOAD|STORE|REDUCE)|CP_ASYNC|BULK_COPY)(?!\w*PREFETCH)\w*(?:<[^<>;{}()]*>)?::copy\b"
)
_WAIT_ASM = re.compile(
    r"\bcp\.async\.(?:wait|bulk\.wait)|\bwgmma\.wait_group|\bmbarrier\.(?:try_wait|test_wait)|\btcgen05\.wait\b"
)
_ISSUE_CALL = re.compile(
    r"(?:\w*memcpy_async\w*|\w*cp_async\w*|tma_(?:load|store|reduce|copy)\w*|(?:load|store|copy)_async\w*|\w*wgmma\w*|\w*warpgroup_mma\w*"
    r"|\w*(?:tcgen05|umma)_?mma\w*)\Z",
    re.IGNORECASE,
)
#: Parts of such names that belong to something else.
_NO_ISSUE = re.compile(r"wait|commit|fence|arrive|desc|init|prefetch|aligned_size|make_|layout|smem_ptr", re.IGNORECASE)
_WAIT_CALL = re.compile(r"wait|__syncthreads_for_async", re.IGNORECASE)
#: A range of such a name says that it measures the issue.
_SAYS_SO = re.compile(r"issue|prefetch|commit|launch|enqueue|submit|async|produce|arrive", re.IGNORECASE)
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^<>;{}()]*>\s*)?\(")


def says_so(name: str) -> bool:
    """Say whether a range's name tells that it measures the issue."""
    return _SAYS_SO.search(name) is not None


def of_assembly(text: str) -> tuple[bool, bool]:
    """Say whether inline assembly issues, and whether it waits."""
    return _ISSUE_ASM.search(text) is not None, _WAIT_ASM.search(text) is not None


def of_call(name: str) -> tuple[bool, bool]:
    """Say whether the call of a function, by its last name, issues, and whether it waits."""
    waits = _WAIT_CALL.search(name) is not None
    issues = not waits and _ISSUE_CALL.match(name) is not None and _NO_ISSUE.search(name) is None
    return issues, waits


class Helpers:
    """The functions and macros of the file that issue or wait themselves, or call one that does.

    Args:
        bodies: the name and the text of the body of each.
    """

    def __init__(self, bodies: Iterable[tuple[str, str]]) -> None:
        self.issuing: set[str] = set()
        self.waiting: set[str] = set()
        read = [(name, text, set(_CALLED.findall(text))) for name, text in bodies if name]
        changed = True
        while changed:
            before = len(self.issuing) + len(self.waiting)
            for name, text, called in read:
                issues, waits = of_assembly(text)
                told = [self.of_call(one) for one in called - {name}]
                if issues or any(one for one, _ in told):
                    self.issuing.add(name)
                if waits or any(one for _, one in told):
                    self.waiting.add(name)
            changed = len(self.issuing) + len(self.waiting) != before

    def of_text(self, text: str) -> tuple[bool, bool]:
        """Say whether code issues, and whether it waits."""
        told = [of_assembly(text), *map(self.of_call, _CALLED.findall(text))]
        return any(issues for issues, _ in told), any(waits for _, waits in told)

    def of_call(self, name: str) -> tuple[bool, bool]:
        """Say whether the call of a function issues, and whether it waits."""
        issues, waits = of_call(name)
        waits = waits or name in self.waiting
        return (issues or name in self.issuing) and not waits, waits
