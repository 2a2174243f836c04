# SPDX-License-Identifier: Apache-2.0
"""A trace and the binary that it came from on one page: in a real browser, from a real capture and a real cubin."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from browser import CHROMIUM, open_browser
from made_traces import launches, plain, real
from toolbox import nvrtc

import iket_rewrite
from iket_rewrite.errors import OptionError
from iket_rewrite.tracing.page import page_data

COMMAND = [sys.executable, "-m", "iket_rewrite.cli.trace_command"]
GEMM = "tilelang_gemm_sm90a"
#: The capture's kernel and ranges by name; what they hold is ours, and differs from each other.
SOURCE = """
#include <iket_rewrite/iket.cuh>
extern "C" __global__ void main_kernel(volatile float* out, float x, float y) {
  __shared__ volatile float tile[256];
  IKET_RANGE_PUSH("copy");
  IKET_RANGE_POP();
  IKET_RANGE_PUSH("mma");
#pragma unroll
  for (int round = 0; round < 8; ++round) asm volatile("fma.rn.f32 %0, %0, %0, %1;" : "+f"(x) : "f"(y));
  IKET_RANGE_POP();
  IKET_RANGE_PUSH("epilogue");
  tile[threadIdx.x] = x;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
  IKET_RANGE_POP();
  IKET_RANGE_PUSH("not <i>recorded</i>");
  __syncthreads();
  IKET_RANGE_POP();
}
"""
LABELS = {"copy": "empty", "mma": "compute", "epilogue": "memory", "not <i>recorded</i>": "wait"}


@pytest.fixture(scope="module")
def binaries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code")
    off, on = folder / "off.cubin", folder / "on.cubin"
    off.write_bytes(nvrtc(SOURCE.replace("tile[256]", "tile[512]")))
    on.write_bytes(nvrtc(iket_rewrite.rewrite(SOURCE, path="kernel.cu").text, lineinfo=True))
    return off, on


def report(*arguments):
    return subprocess.run(
        [*COMMAND, "report", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def page_file(binaries, tmp_path_factory):
    """The page, as the command writes it."""
    file = tmp_path_factory.mktemp("page") / "page.html"
    done = report(real(GEMM), "-o", file, "--binary", binaries[1], "--baseline", binaries[0])
    assert (done.returncode, done.stderr) == (0, "")
    return file


@pytest.fixture
def page(page_file):
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine (apt-get install chromium)")
    errors = []
    with open_browser() as browser:
        opened = browser.new_context(viewport={"width": 1440, "height": 900}, offline=True).new_page()
        opened.on("pageerror", lambda error: errors.append(str(error)))
        opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        opened.goto(page_file.as_uri())
        opened.wait_for_function("performance.getEntriesByName('iket-ready').length")
        yield opened
    assert errors == []


def rows(page):
    """Return the rows of the table that is shown, each by the titles of its columns."""
    heads = [text.split(" ")[0] for text in page.locator("#table thead th").all_inner_texts()]
    return [
        dict(zip(heads, row.locator("th, td").all_inner_texts(), strict=True))
        for row in page.locator("#table tbody tr").all()
    ]


def test_the_code_of_each_range_stands_beside_its_times(page):
    document = plain(GEMM)
    (launch,), names = launches(document), document["stringTable"]
    page.click("#tab-code")
    shown = {row["range"].strip(): row for row in rows(page)}
    assert {name: row["is"] for name, row in shown.items()} == LABELS
    for name, row in shown.items():
        count = sum(names[one["rangeNameIdx"]] == name for one in launch["ranges"])
        assert int(row["count"].replace(",", "")) == count
        assert (row["mean"] == "\N{EN DASH}") == (count == 0)
    assert (shown["mma"]["float"], shown["mma"]["global"]) == ("8", "0")
    assert (shown["epilogue"]["global"], shown["epilogue"]["shared"], shown["epilogue"]["wait"]) == ("1", "2", "1")
    lines = SOURCE.splitlines()
    first = next(number for number, text in enumerate(lines, 1) if "tile[threadIdx.x] = x" in text)
    assert shown["epilogue"]["lines"] == f"kernel.cu:{first}-{first + 2}"


def test_a_row_makes_its_ranges_bright(page):
    page.click("#tab-code")
    page.locator("#table tbody tr", has_text="mma").locator("button").click()
    bright = page.evaluate("Array.from({ length: iket.launch.rangeCount }, (_, row) => iket.isBright('range', row))")
    document = plain(GEMM)
    (launch,), names = launches(document), document["stringTable"]
    assert sum(bright) == sum(names[one["rangeNameIdx"]] == "mma" for one in launch["ranges"])
    # Nothing can be shown of a range that the trace does not hold.
    assert page.locator("#table tbody tr", has_text="recorded").locator("button").count() == 0


def test_what_the_marks_changed_stands_in_a_table_and_above(page):
    page.click("#tab-marks")
    shown = {next(iter(row.values())): row for row in rows(page)}
    memory = shown["static shared memory, bytes"]
    assert (memory["without"], memory["with"]) == ("3,072", "2,048")
    assert shown["named barriers"]["with"] == "1"
    page.click("#findings summary")
    assert "shared memory: 3072 bytes before, 2048 bytes after" in page.locator("#findings-list").inner_text()


def test_without_a_binary_the_page_is_as_it_was(binaries):
    trace = iket_rewrite.load_trace(real(GEMM))
    data, _ = page_data(trace)
    with_code, _ = page_data(trace, code=iket_rewrite.compare_binaries(None, binaries[1]))
    before, after = ([table["id"] for table in one["kernels"][0]["tables"]] for one in (data, with_code))
    assert after == [*before, "code"]
    assert "code" not in before
    assert data["findings"] == with_code["findings"]


def test_a_binary_of_another_program_is_an_error(tmp_path):
    other = iket_rewrite.compare_binaries(None, nvrtc('extern "C" __global__ void other(int* a) { *a = 1; }'))
    with pytest.raises(OptionError, match=r"holds no kernel of the trace \(main_kernel\)"):
        page_data(iket_rewrite.load_trace(real(GEMM)), code=other)


@pytest.mark.parametrize(
    ("baseline", "binary", "said"),
    [
        (None, 0, "This kernel holds no event in the binary: another build was captured."),
        (1, 0, "This kernel holds no event in the binary: another build was captured."),
        (1, 1, "The baseline does not fit: events are in the plain binary"),
        (0, 1, ""),
    ],
)
def test_a_build_that_is_another_one_is_told(binaries, baseline, binary, said):
    code = iket_rewrite.compare_binaries(None if baseline is None else binaries[baseline], binaries[binary])
    data, _ = page_data(iket_rewrite.load_trace(real(GEMM)), code=code)
    found = json.dumps(data["findings"])
    assert said in found
    assert said or not ("another build" in found or "does not fit" in found)


def test_wrong_usage_writes_no_page(binaries, tmp_path):
    file = tmp_path / "page.html"
    for extra, said in (
        (["--baseline", binaries[0]], "--baseline says nothing without --binary"),
        (["--binary", tmp_path / "none.cubin"], "none.cubin: can not be read"),
    ):
        done = report(real(GEMM), "-o", file, *extra)
        assert done.returncode == 2
        assert said in done.stderr
        assert not file.exists()
    before = binaries[1].read_bytes()
    done = report(real(GEMM), "-o", binaries[1], "--binary", binaries[1])
    assert (done.returncode, binaries[1].read_bytes()) == (2, before)
