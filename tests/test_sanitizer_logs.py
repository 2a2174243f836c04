# SPDX-License-Identifier: Apache-2.0
"""What the GPU tests read in the output of compute-sanitizer: findings by kind, and a summary or nothing.

The short texts have the form of release 2025.3, kernels and numbers are made up.  Those of `gemm` and `tma_pipeline`
are what racecheck wrote on an H200 of these examples with marks, compiled for sm_90a by CUDA 13.0.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from building.compilers import iket_nvcc
from builds import needs_nvcc
from gpu.program_code import Code, Function
from gpu.sanitizer import Verdict, read
from toolbox import ROOT

REAL = Path(__file__).parent / "gpu" / "sanitized"
EXAMPLES = ROOT / "examples" / "cuda"
GEMM = (REAL / "racecheck_gemm.txt").read_text(encoding="utf-8")
PIPELINE = (REAL / "racecheck_tma_pipeline.txt").read_text(encoding="utf-8")
#: The function as racecheck prints it, and its symbol.
GEMM_NAME = "void gemm<(int)64, (int)16>(const float *, const float *, float *, int, int, int)"
GEMM_SYMBOL = "_Z4gemmILi64ELi16EEvPKfS1_Pfiii"


def function(symbol: str, records: set[int], **others: set[int]) -> Function:
    """Return a function with the stores of its records, and with other instructions by opcode."""
    opcodes = dict.fromkeys(records, "STS")
    for opcode, offsets in others.items():
        opcodes |= dict.fromkeys(offsets, opcode)
    return Function(symbol, opcodes, frozenset(records))


#: What iket-verify says of the two binaries, and some of the kernels' own instructions.
GEMM_CODE = Code(
    (function(GEMM_SYMBOL, {0x60, 0x4D0, 0x4E0, 0x16C0, 0x1700, 0x1A50, 0x1E60, 0x1E70, 0x1EC0}, STS={0x6D0, 0x7C0}),)
)
PIPELINE_RECORDS = {0x2C0, 0x2D0, 0x480, 0x490, 0x5D0, 0x610, 0xD30, 0xDC0, 0xF60, 0xF70, 0x1010, 0x1160, 0x1170}
PIPELINE_RECORDS |= {0x1290, 0x14B0, 0x14C0, 0x1560}
PIPELINE_READS = {0xAE0, 0xB10, 0xB20, 0xB30, 0xB40, 0xB50, 0xB70, 0xB90}
PIPELINE_CODE = Code((function("pipeline_sum", PIPELINE_RECORDS, LDS=PIPELINE_READS, UBLKCP={0x1410}),))
#: What racecheck takes for a race in the build without marks as well: it does not follow the barrier of a bulk copy.
COPY = "Error: Race reported between Read access of LDS in pipeline_sum and Write access of UBLKCP in pipeline_sum"


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


@pytest.mark.parametrize(
    ("text", "code", "kinds", "count", "of_records"),
    [(GEMM, GEMM_CODE, set(), 0, 7), (PIPELINE, PIPELINE_CODE, {COPY}, 1, 10)],
)
def test_races_of_records_with_each_other_are_told_apart(text, code, kinds, count, of_records):
    verdict = read(text, code)
    assert (verdict.kinds, verdict.count, verdict.of_records) == (kinds, count, of_records)


@pytest.mark.parametrize(("text", "count"), [(GEMM, 7), (PIPELINE, 11)])
def test_nothing_is_a_record_in_a_program_whose_code_is_not_known(text, count):
    assert read(text).count == read(text, Code()).count == count


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        # The one end, the other, and one of several others is the kernel's own store.
        (f"between Write access at {GEMM_NAME}+0x60\n", f"between Write access at {GEMM_NAME}+0x6d0\n", "STS"),
        (f"and Write access at {GEMM_NAME}+0x60 [5", f"and Write access at {GEMM_NAME}+0x6d0 [5", "STS"),
        (f"and Write access at {GEMM_NAME}+0x1e60 [116", f"and Write access at {GEMM_NAME}+0x7c0 [116", "STS"),
        # A place between two instructions, or in a function that the program lacks.
        (f"and Write access at {GEMM_NAME}+0x60 [5", f"and Write access at {GEMM_NAME}+0x64 [5", "?"),
        (f"and Write access at {GEMM_NAME}+0x60 [5", "and Write access at other(int *)+0x60 [5", "?"),
    ],
)
def test_a_race_with_one_end_that_is_no_record_is_reported(old, new, kind):
    assert GEMM.count(old) == 1
    verdict = read(GEMM.replace(old, new), GEMM_CODE)
    (found,) = verdict.kinds
    assert f"Write access of {kind} in" in found
    assert "Write access of a record in" in found
    assert (verdict.count, verdict.of_records) == (1, 6)
    assert verdict.beyond(read(NO_RACE, Code())) == [found]
    # Nor does a race of the kernel's own stores in the other build excuse it.
    assert verdict.beyond(read(GEMM.replace("+0x", "+0xf"), GEMM_CODE)) == [found]


def test_a_read_is_no_record():
    text = GEMM.replace(f"and Write access at {GEMM_NAME}+0x60 [5", f"and Read access at {GEMM_NAME}+0x60 [5")
    assert read(text, GEMM_CODE).count == 1


def test_hazards_that_the_summary_alone_counts_are_reported():
    more = GEMM.replace("7 hazards displayed (7", "9 hazards displayed (9")
    verdict = read(more, GEMM_CODE)
    assert (verdict.kinds, verdict.count) == ({"2 hazards of no known form"}, 2)


def test_a_symbol_names_one_function_and_a_demangled_name_all_that_it_may_mean():
    small = function("_Z4gemmILi32ELi16EEvPKfS1_Pfiii", {0x60})
    both = Code((*GEMM_CODE.functions, small))
    assert both.is_record(GEMM_SYMBOL, 0x4D0)
    assert not both.is_record(GEMM_NAME, 0x4D0)
    assert both.is_record(GEMM_NAME, 0x60)
    # The same symbol in two cubins: which one runs is not known here.
    assert not Code((*GEMM_CODE.functions, function(GEMM_SYMBOL, {0x60}))).is_record(GEMM_SYMBOL, 0x4D0)


@needs_nvcc
@pytest.mark.parametrize(("name", "text"), [("gemm", GEMM), ("tma_pipeline", PIPELINE)])
def test_the_code_is_read_from_the_binary_that_runs(name, text, tmp_path):
    program = tmp_path / name
    done = iket_nvcc("-std=c++17", "-arch=sm_90a", str(EXAMPLES / name / "main.cu"), "-o", str(program))
    assert done.returncode == 0, done.stdout + done.stderr
    code = Code.of(program)
    (kernel,) = code.functions
    assert {kernel.opcodes[offset] for offset in kernel.records} == {"STS"}
    own = next(offset for offset, opcode in kernel.opcodes.items() if offset not in kernel.records and opcode != "STS")
    for head, other, count in [
        *((one, two, 0) for one in kernel.records for two in kernel.records),
        (min(kernel.records), own, 1),
    ]:
        raced = log(
            f"Error: Race reported between Write access at {kernel.symbol}+{head:#x}",
            f"    and Write access at {kernel.symbol}+{other:#x} [3 hazards]",
            "RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)",
        )
        assert read(raced, code).count == count
    (measured,) = {"gemm": GEMM_CODE, "tma_pipeline": PIPELINE_CODE}[name].functions
    if kernel.records != measured.records:
        pytest.skip("another compiler or form of the record than that of the texts puts the stores elsewhere")
    assert {offset: kernel.opcodes[offset] for offset in measured.opcodes} == measured.opcodes
    assert read(text, code) == read(text, Code((measured,)))


@needs_nvcc
def test_a_program_without_marks_has_no_records(tmp_path):
    program = tmp_path / "plain"
    source = str(EXAMPLES / "gemm" / "main.cu")
    done = iket_nvcc("-std=c++17", "-arch=sm_90a", source, "-o", str(program), IKET="0")
    assert done.returncode == 0, done.stdout + done.stderr
    (kernel,) = Code.of(program).functions
    assert "STS" in kernel.opcodes.values()
    assert not kernel.records
