# SPDX-License-Identifier: Apache-2.0
"""What the GPU tests read in the output of compute-sanitizer: findings by kind, and a summary or nothing.

The texts have the form of release 2025.3, kernels and numbers are made up.
"""

from __future__ import annotations

import pytest
from gpu.sanitizer import Verdict, read


def log(*lines: str) -> str:
    """Return what a tool writes, each line behind its lead."""
    return "".join(f"========= {line}\n" for line in ("COMPUTE-SANITIZER", *lines))


FAILED = (
    'Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to cudaFree.'
)
ENDED = "Error: Target application terminated before first instrumented API call"
CLEAN = log("ERROR SUMMARY: 0 errors")
NO_RACE = log("RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
RACE = log(
    "Error: Race reported between Write access at race(int *)+0x140",
    "    and Read access at race(int *)+0x1e0 [64 hazards]",
    "",
    "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)",
)
#: The same race in another build, named by its other end first.
MOVED_RACE = log(
    "Error: Race reported between Read access at race(int *)+0x340",
    "    and Write access at race(int *)+0x290 [32 hazards]",
    "    and Write access at race(int *)+0x2a0 [32 hazards]",
    "",
    "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)",
)
WARNED = RACE.replace("Error: ", "Warning: ").replace("(1 error, 0 warnings)", "(0 errors, 1 warning)")
BOUNDS = log(
    "Invalid __global__ write of size 4 bytes",
    "    at bounds(int *, int)+0xa0",
    "    by thread (64,0,0) in block (0,0,0)",
    "    Access to 0x7f2a5da00100 is out of bounds",
    "    and is 1 bytes after the nearest allocation at 0x7f2a5da00000 of size 256 bytes",
    "",
    FAILED,
    "",
    "Target application returned an error",
    "ERROR SUMMARY: 2 errors",
)
DIVERGENT = "Barrier error detected. Divergent thread(s) in block."
TOO_MANY = log(
    DIVERGENT,
    "    at kernel(int *)+0x60",
    "ERROR SUMMARY: 257 errors",
    "ERROR SUMMARY: 157 errors were not printed. Use --print-limit option to adjust the number of printed errors",
)


@pytest.mark.parametrize(
    ("text", "kinds", "count"),
    [
        (CLEAN, set(), 0),
        (NO_RACE, set(), 0),
        (RACE, {"Error: Race reported between Read access and Write access"}, 1),
        (MOVED_RACE, {"Error: Race reported between Read access and Write access"}, 1),
        (WARNED, {"Warning: Race reported between Read access and Write access"}, 1),
        (BOUNDS, {"Invalid __global__ write of size 4 bytes", FAILED, "Target application returned an error"}, 2),
        (TOO_MANY, {DIVERGENT}, 257),
    ],
)
def test_findings_have_a_kind_and_the_summary_a_number(text, kinds, count):
    verdict = read(text)
    assert (verdict.kinds, verdict.count) == (kinds, count)


@pytest.mark.parametrize("text", ["", log(ENDED), CLEAN + CLEAN])
def test_a_program_that_was_not_checked_is_not_taken_for_a_clean_one(text):
    with pytest.raises(ValueError, match="instead of one"):
        read(text)


@pytest.mark.parametrize(
    ("marked", "plain", "added"),
    [
        (CLEAN, CLEAN, 0),
        (MOVED_RACE, RACE, 0),
        (RACE, NO_RACE, 1),
        (RACE, WARNED, 1),
        (BOUNDS, CLEAN, 3),
        (CLEAN, BOUNDS, 0),
    ],
)
def test_only_a_kind_that_the_other_build_lacks_counts(marked, plain, added):
    assert len(read(marked).beyond(read(plain))) == added


def test_a_summary_that_counts_what_nobody_could_read_counts():
    unread = Verdict(frozenset(), 3, "")
    assert unread.beyond(read(CLEAN)) == ["3 findings of no known form"]
