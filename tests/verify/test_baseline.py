# SPDX-License-Identifier: Apache-2.0
"""A build with marks beside one without: what is the same is said to be, and every planted difference is seen."""

from __future__ import annotations

import contextlib
import re
import subprocess

import pytest
from builds import cuobjdump, needs_nvcc
from toolbox import nvcc, sass
from verify.baselines import HEAD, fixture_pair, marked, only, pipeline_pair, plain

import iket_rewrite
from iket_rewrite.errors import CubinError, OptionError
from iket_rewrite.verification.kernel_names import matched
from iket_rewrite.verification.memory_order import compare_orders
from iket_rewrite.verification.sass import Instruction

#: wgmma and TMA; cp.async; shared memory; shuffles.
NAMES = ["gemm_sm_90a", "gemm_sm_80", "tiled_gemm", "block_reduce"]


def found(kernel) -> dict[str, str]:
    """Return the severity of each difference."""
    return {one.what: one.severity for one in kernel.differences}


# --- What ptxas wrote down -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_resources_are_those_that_nvidias_tool_prints(name, tmp_path):
    kernel = only(iket_rewrite.compare_binaries(*fixture_pair(name)))
    for data, build in zip(fixture_pair(name), (kernel.before, kernel.after), strict=True):
        file = tmp_path / "kernel.cubin"
        file.write_bytes(data)
        done = subprocess.run([cuobjdump(), "-res-usage", file], capture_output=True, text=True, check=True)
        said = dict(re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", done.stdout + done.stderr))
        assert build.registers == int(said["REG"])
        assert build.local_bytes == int(said["STACK"]) + int(said["LOCAL"])
        assert build.shared_bytes == int(said["SHARED"])
        code = [opcode for _, opcode, _ in sass(data, tmp_path)[kernel.name]]
        assert build.instructions == sum(opcode != "NOP" for opcode in code)


def test_a_kernel_beside_itself_has_no_difference():
    for name in NAMES:
        without, _ = fixture_pair(name)
        comparison = iket_rewrite.compare_binaries(without, without)
        assert comparison.ok
        assert only(comparison).differences == []
        assert all(order.same for order in only(comparison).orders)


@pytest.mark.parametrize("name", ["gemm_sm_90a", "tiled_gemm", "block_reduce"])
def test_what_stands_outside_the_records_is_the_kernel(name):
    """Nearly what the build without marks has: ptxas may place a few constants otherwise."""
    kernel = only(iket_rewrite.compare_binaries(*fixture_pair(name)))
    assert kernel.before.event_instructions == 0
    assert kernel.after.event_instructions >= 4 * 7
    assert abs(kernel.after.outside - kernel.before.outside) <= 6
    assert [order.before for order in kernel.orders] == [order.after for order in kernel.orders]


def test_what_gathers_lanes_for_an_election_is_the_events(tmp_path):
    pair = pipeline_pair()
    kernel = only(iket_rewrite.compare_binaries(*pair))
    code = [opcode for _, opcode, _ in sass(pair[1], tmp_path)[kernel.name]]
    # The shuffles of the kernel's own sum are gathered so too, in both builds.
    assert sum(opcode == "ELECT" for opcode in code) > 8
    assert "BRA.DIV" in code
    assert abs(kernel.after.outside - kernel.before.outside) < 20


def test_a_kernel_without_marks_in_both_is_the_same():
    # Below sm_90 events are nothing.
    comparison = iket_rewrite.compare_binaries(*fixture_pair("gemm_sm_80"))
    assert (comparison.ok, only(comparison).differences, only(comparison).ranges) == (True, [], [])


# --- Planted differences -------------------------------------------------------------------------------------

PRESSURE = HEAD + (
    "(const float* in, float* out) {\n  float values[48];\n#pragma unroll\n"
    "  for (int at = 0; at < 48; ++at) values[at] = in[at * 256 + threadIdx.x];\n"
    '  IKET_RANGE_PUSH("sums");\n'
    "  float sum = 0;\n#pragma unroll\n"
    "  for (int at = 0; at < 48; ++at) sum = sum * values[at] + values[47 - at];\n"
    "  IKET_RANGE_POP();\n  out[threadIdx.x] = sum;\n}\n"
)


def test_an_extra_spill_is_seen():
    comparison = iket_rewrite.compare_binaries(plain(PRESSURE), marked(PRESSURE, max_register_count=24))
    kernel = only(comparison)
    assert kernel.before.local_bytes == kernel.before.spill_loads == kernel.before.spill_stores == 0
    assert kernel.after.local_bytes > 0
    assert kernel.after.spill_loads > 0
    assert kernel.after.spill_stores > 0
    assert found(kernel)["spills"] == "warning"
    assert not comparison.ok
    fewer = only(iket_rewrite.compare_binaries(marked(PRESSURE, max_register_count=24), plain(PRESSURE)))
    assert found(fewer)["spills"] == "note"


STORES = HEAD + (
    "(volatile float* out, float x) {\n"
    '  IKET_RANGE_PUSH("stores");\n  out[1] = x;\n  out[2] = x;\n  out[3] = x;\n  IKET_RANGE_POP();\n}\n'
)
SWAPPED = STORES.replace("out[1] = x;\n  out[2] = x;", "out[2] = x;\n  out[1] = x;")
OTHER_LINE = STORES.replace("  out[2] = x;\n  out[3] = x;", "\n  out[3] = x;\n  out[2] = x;")


def test_a_moved_store_is_seen():
    comparison = iket_rewrite.compare_binaries(plain(STORES), marked(SWAPPED))
    order = only(comparison).orders[0]
    assert (order.space, order.known_by, order.same, order.loads_only) == ("global", "offset", False, False)
    assert [change.kind for change in order.changes] == ["moved"]
    assert order.changes[0].operation in ("STG.E.STRONG.SYS +0x4", "STG.E.STRONG.SYS +0x8")
    assert found(only(comparison))["memory order"] == "warning"
    assert not comparison.ok
    assert iket_rewrite.compare_binaries(plain(STORES), marked(STORES)).ok


def test_by_line_a_moved_store_is_told_from_its_neighbours():
    comparison = iket_rewrite.compare_binaries(plain(STORES, lineinfo=True), marked(STORES, lineinfo=True))
    assert (only(comparison).orders[0].known_by, comparison.ok) == ("line", True)
    order = only(iket_rewrite.compare_binaries(plain(STORES, lineinfo=True), marked(OTHER_LINE, lineinfo=True))).orders[
        0
    ]
    assert order.known_by == "line"
    assert not order.same


def test_an_extra_and_a_missing_store_are_seen():
    fewer = STORES.replace("  out[2] = x;\n", "")
    for pair, kind in ((plain(fewer), marked(STORES)), "added"), ((plain(STORES), marked(fewer)), "gone"):
        order = only(iket_rewrite.compare_binaries(*pair)).orders[0]
        assert [change.kind for change in order.changes] == [kind]


#: Without the mark nothing keeps ptxas from loading first.
HOISTED = HEAD + (
    "(float* __restrict__ out, const float* __restrict__ in, float x) {\n"
    '  out[threadIdx.x] = x;\n  IKET_MARK("between");\n  float y = in[threadIdx.x];\n'
    "  out[threadIdx.x + 1024] = y * y;\n}\n"
)


def test_a_load_that_the_mark_keeps_from_being_hoisted_is_seen(tmp_path):
    pair = plain(HOISTED), marked(HOISTED)
    spaces = [
        [opcode[:3] for _, opcode, _ in sass(data, tmp_path)["kernel"] if opcode.startswith(("LDG", "STG"))]
        for data in pair
    ]
    assert spaces == [["LDG", "STG", "STG"], ["STG", "LDG", "STG"]]
    comparison = iket_rewrite.compare_binaries(*pair)
    assert not only(comparison).orders[0].same
    assert not only(comparison).orders[0].loads_only
    assert not comparison.ok


def test_loads_that_change_places_among_themselves_are_a_note():
    # As ptxas was seen to schedule it (13.0); where it does not, there is no difference.
    comparison = iket_rewrite.compare_binaries(*fixture_pair("tiled_gemm"))
    for order in only(comparison).orders:
        assert order.same or order.loads_only
    assert comparison.ok


SHARED = HEAD + (
    "(float* out) {\n  __shared__ volatile float tile[SIZE];\n  tile[threadIdx.x] = out[0];\n  BARRIER\n"
    '  IKET_MARK("m");\n  out[threadIdx.x] = tile[threadIdx.x ^ 1];\n}\n'
)


def test_shared_memory_and_barriers_are_seen():
    def source(size: int, barrier: str) -> str:
        return SHARED.replace("SIZE", str(size)).replace("BARRIER", barrier)

    before = plain(source(256, ""))
    more = only(iket_rewrite.compare_binaries(before, marked(source(512, "__syncthreads();"))))
    assert more.after.shared_bytes - more.before.shared_bytes == 4 * 256
    assert (more.before.barriers, more.after.barriers) == (0, 1)
    assert {"shared memory": "warning", "barriers": "warning"}.items() <= found(more).items()


def test_kernels_are_matched_by_mangled_name_and_missing_ones_are_said():
    one = HEAD + '(int* out) { IKET_MARK("a"); *out = 1; }\n'
    two = one + '__global__ void other(int* out) { IKET_MARK("b"); *out = 2; }\n'
    comparison = iket_rewrite.compare_binaries(plain(one), marked(two))
    states = {kernel.name: (kernel.before is None, kernel.after is None) for kernel in comparison.kernels}
    assert states == {"kernel": (False, False), "_Z5otherPi": (True, False)}
    assert not comparison.ok
    chosen = iket_rewrite.compare_binaries(plain(one), marked(two), kernel="kern*")
    assert (only(chosen).name, chosen.ok) == ("kernel", True)


HIDDEN = """
#include <iket_rewrite/iket.cuh>
namespace { __global__ void hidden(int* a) { IKET_MARK("a"); *a = 1; } }
static __global__ void still(int* a) { IKET_MARK("b"); *a = 2; }
void go(int* a) { hidden<<<1, 1>>>(a); still<<<1, 1>>>(a); }
"""


@needs_nvcc
@pytest.mark.parametrize("options", [[], ["-rdc=true"]], ids=["whole", "rdc"])
def test_a_hash_in_a_name_parts_no_kernels(tmp_path, options):
    texts = {"kernel": HIDDEN, "kernel.iket": iket_rewrite.rewrite(HIDDEN, path="kernel.cu").text}
    for name, text in texts.items():
        (tmp_path / f"{name}.cu").write_text(text, encoding="utf-8")
        done = nvcc(tmp_path / f"{name}.cu", tmp_path / f"{name}.cubin", "-cubin", "-arch=sm_90a", *options)
        assert done.returncode == 0, done.stderr
    without, marks = ((tmp_path / f"{name}.cubin").read_bytes() for name in texts)
    assert any(one not in sass(without, tmp_path) for one in sass(marks, tmp_path))
    comparison = iket_rewrite.compare_binaries(without, marks)
    assert [one.before is None or one.after is None for one in comparison.kernels] == [False, False]
    assert [change for one in comparison.kernels for change in one.differences if change.severity == "warning"] == []


HELPED = """
#include <iket_rewrite/iket.cuh>
namespace { __device__ __noinline__ float hidden(float x) { IKET_RANGE("hidden"); return x * x + 1; } }
__device__ __noinline__ float helper(float x) { IKET_RANGE("helper"); return hidden(x) * x; }
extern "C" __global__ void calls(float* a) { a[threadIdx.x] = helper(a[threadIdx.x]); }
"""


@needs_nvcc
def test_a_device_function_with_events_is_compared_with_the_one_without(tmp_path):
    """Only kernels were looked for in the build without marks, so that every such function seemed to be new."""
    texts = {"kernel": HELPED, "kernel.iket": iket_rewrite.rewrite(HELPED, path="kernel.cu").text}
    for name, text in texts.items():
        (tmp_path / f"{name}.cu").write_text(text, encoding="utf-8")
        done = nvcc(tmp_path / f"{name}.cu", tmp_path / f"{name}.cubin", "-cubin", "-arch=sm_90a", "-rdc=true")
        assert done.returncode == 0, done.stderr
    comparison = iket_rewrite.compare_binaries(*(tmp_path / f"{name}.cubin" for name in texts))
    helpers = [one for one in comparison.kernels if "help" in one.name or "hidden" in one.name]
    assert "_Z6helperf" in [one.name for one in helpers]
    assert all(one.before and one.after and one.after.event_instructions for one in helpers)
    assert [one for kernel in comparison.kernels for one in kernel.differences if one.what == "kernel"] == []


def test_a_baseline_with_marks_is_told():
    """Swapped files, or the instrumented one named twice."""
    without, marks = fixture_pair("block_reduce")
    for pair in ((marks, without), (marks, marks)):
        comparison = iket_rewrite.compare_binaries(*pair)
        assert found(only(comparison))["marks"] == "warning"
        assert not comparison.ok


def test_another_architecture_is_told_as_one():
    source = HEAD + '(int* out) { IKET_MARK("a"); *out = 1; }\n'
    comparison = iket_rewrite.compare_binaries(plain(source), marked(source, "sm_100a"))
    assert sorted(one.message for kernel in comparison.kernels for one in kernel.differences) == [
        "the instrumented binary has no kernel of this name for sm_90, but for sm_100",
        "the plain binary has no kernel of this name for sm_100, but for sm_90",
    ]


def test_where_code_was_inlined_may_be_told_by_one_build_only():
    """ptxas 13.0 left it out of the build without marks (examples/cuda/gemm, sm_100a, -lineinfo)."""
    named = [Instruction(at, "", "STS", "[R1], R2", "a.cu", 39, (("a.cu", 7),)) for at in (0, 16)]
    bare = [Instruction(at, "", "STS", "[R1], R2", "a.cu", 7) for at in (0, 16)]
    for pair in ((bare, named), (named, bare), ([bare[0], named[1]], named)):
        assert all(order.same for order in compare_orders(*pair))
    other = Instruction(16, "", "STS", "[R1], R2", "a.cu", 50, (("a.cu", 7),))
    shared = {order.space: order for order in compare_orders([named[0], other], [other, named[0]])}["shared"]
    assert [change.kind for change in shared.changes] == ["moved"]
    assert not {order.space: order for order in compare_orders(bare, named[:1])}["shared"].same


def test_two_kernels_that_only_a_hash_parts_are_not_taken_for_each_other():
    names = [f"_ZN{len(inner)}{inner}1kEv" for inner in ("_GLOBAL__N__1_a", "_GLOBAL__N__22_b", "_GLOBAL__N__3_c")]
    first, second, third = ((90, name) for name in names)
    assert matched([first], [third]) == {third: first}
    assert matched([first, second], [third]) == {}
    assert matched([first, second], [second, third]) == {second: second, third: first}
    assert matched([first], [(100, names[0])]) == {}


# --- Inputs --------------------------------------------------------------------------------------------------


def test_bytes_files_and_containers_are_taken(tmp_path):
    off, on = tmp_path / "off.cubin", tmp_path / "on.cubin"
    for file, data in zip((off, on), pipeline_pair(), strict=True):
        file.write_bytes(data)
    first = iket_rewrite.compare_binaries(off.read_bytes(), on.read_bytes())
    second = iket_rewrite.compare_binaries(str(off), on)
    assert (first.plain, second.plain) == ("<bytes>", str(off))
    assert first.as_json()["kernels"] == second.as_json()["kernels"]


def test_what_can_not_be_read_says_which_file(tmp_path):
    good = fixture_pair("block_reduce")[1]
    for bad, error in ((b"", CubinError), (b"text", CubinError), (good[:300], CubinError)):
        with pytest.raises(error):
            iket_rewrite.compare_binaries(bad, good)
    with pytest.raises(OptionError, match=r"nothing\.cubin"):
        iket_rewrite.compare_binaries(good, tmp_path / "nothing.cubin")


def test_damaged_binaries_are_errors_of_ours_or_read():
    good = fixture_pair("block_reduce")[1]
    for at in range(64, len(good), len(good) // 12):
        bent = good[:at] + bytes(byte ^ 0x5A for byte in good[at : at + 8]) + good[at + 8 :]
        with contextlib.suppress(iket_rewrite.IketError):
            iket_rewrite.compare_binaries(None, bent)
