# SPDX-License-Identifier: Apache-2.0
"""`compile_cubin`: annotated text in, a judged cubin out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from building.projects import BASIC, write
from builds import check_declarations
from toolbox import FIXTURES, Official, nvrtc

import iket_rewrite
from iket_rewrite import compile_cubin

SOURCE = (FIXTURES / "cuda" / "block_reduce.cu").read_text(encoding="utf-8")


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a", "sm_120a"])
@pytest.mark.parametrize("convert", [str, str.encode])
def test_the_cubin_holds_the_plan_and_was_judged(arch, convert):
    compiled = compile_cubin(convert(SOURCE), arch=arch)
    assert isinstance(compiled, bytes)
    check_declarations(compiled.plan, compiled)
    assert compiled.plan == iket_rewrite.rewrite(SOURCE, path=compiled.plan.sites[0].place.path).plan
    assert compiled.report.ok
    assert compiled == nvrtc(iket_rewrite.rewrite(SOURCE).text, arch)


def test_the_bytes_that_the_interpreter_shares_stay_as_they_are():
    """NVRTC fills bytes objects; an empty log is one NUL, and there is one object for each bytes of length one."""
    compile_cubin('extern "C" __global__ void k(int* out) { *out = 1; }\n', arch="sm_90a")
    assert [chr(code).encode("latin-1")[0] for code in range(256)] == list(range(256))


def test_without_annotations_it_is_the_cubin_of_the_source():
    source = 'extern "C" __global__ void k(int* out) { *out = 1; }\n'
    compiled = compile_cubin(source, arch="sm_90a")
    assert compiled == nvrtc(source)
    assert (compiled.plan.events, compiled.warnings) == ((), ())
    assert compile_cubin(source, arch="sm_90a", verify=False).report is None


@pytest.mark.parametrize("options", [{}, {"path": "src/kernel.cu"}, {"path": "kernel.cu", "include_dirs": ["src"]}])
def test_annotated_headers_are_rewritten_too(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write({**BASIC, "src/more.cuh": "#define MORE 1\n"})
    source = BASIC["src/kernel.cu"].replace("#include <cstdio>", '#include "more.cuh"')
    if options.get("path") != "src/kernel.cu":
        source = source.replace('"plain.cuh"', '"src/plain.cuh"').replace('"more.cuh"', '"src/more.cuh"')
    before = sorted(Path().rglob("*"))
    compiled = compile_cubin(source, arch="sm_90a", **options)
    found = check_declarations(compiled.plan, compiled)
    assert sorted({event for events in found.kernels.values() for event in events}) == [
        "in helper",
        "kernel",
        "pop_range",
        "traced",
    ]
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("option", [["-Iheaders"], ["-I", "headers"], ["--include-path=headers"]])
def test_annotated_headers_in_folders_of_the_options_are_rewritten_too(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write({"headers/marks.cuh": BASIC["include/marks.cuh"]})
    source = '#include "marks.cuh"\n__global__ void kernel(int* out) { helper(out, 1); }\n'
    compiled = compile_cubin(source, arch="sm_90a", options=[*option, "-lineinfo"])
    assert check_declarations(compiled.plan, compiled).kernel("kernel") == ["in helper"]


def test_a_wrapper_in_a_header(tmp_path):
    (tmp_path / "trace.cuh").write_text("#include <iket_rewrite/iket.cuh>\n#define TRACE(n) IKET_MARK(n)\n")
    source = '#include <trace.cuh>\nextern "C" __global__ void k() { TRACE("traced"); }\n'
    compiled = compile_cubin(source, arch="sm_90a", include_dirs=[tmp_path])
    assert Official(compiled).kernels == {"k": ["traced"]}


def test_options_reach_nvrtc():
    source = '#include <iket_rewrite/iket.cuh>\nstatic_assert(X == __cplusplus, "");\n'
    compile_cubin(source, arch="sm_90a", options=["--std=c++20", "-DX=202002L"])
    compile_cubin(source, arch="sm_90a", options=["-DX=201703L"])


def test_an_error_of_nvrtc_names_the_users_line():
    source = SOURCE.replace("__syncthreads();", "undeclared();", 1)
    line = next(number for number, text in enumerate(source.splitlines(), 1) if "undeclared" in text)
    with pytest.raises(iket_rewrite.CompileError, match=rf'mine/k\.cu\({line}\): error: .*"undeclared"') as error:
        compile_cubin(source, arch="sm_90a", path="mine/k.cu")
    assert error.value.exit_code == 1


def test_an_error_in_an_annotated_header_names_the_header(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write({**BASIC, "include/marks.cuh": BASIC["include/marks.cuh"].replace("out[0] = n;", "out[0] = undeclared;")})
    source = BASIC["src/kernel.cu"].replace("#include <cstdio>\n", "")
    with pytest.raises(iket_rewrite.CompileError, match=r'marks\.cuh\(9\): error: .*"undeclared"') as error:
        compile_cubin(source, arch="sm_90a", path="src/kernel.cu")
    assert "iket-nvrtc" not in str(error.value)


def test_bad_input_is_told():
    with pytest.raises(iket_rewrite.TargetError, match="unknown target 'hopper'"):
        compile_cubin(SOURCE, arch="hopper")
    with pytest.raises(iket_rewrite.CompileError, match="NVRTC"):
        compile_cubin(SOURCE, arch="sm_999")
    with pytest.raises(iket_rewrite.AnnotationError, match=r"<source>:1:22: the event's name"):
        compile_cubin("void f() { IKET_MARK(x); }", arch="sm_90a")
    with pytest.raises(iket_rewrite.OptionError, match="nowhere: is no folder"):
        compile_cubin(SOURCE, arch="sm_90a", include_dirs=["nowhere"])


def test_a_cubin_that_can_not_be_patched_is_an_error():
    """An undeclared trigger of the user's own makes the runtime refuse the whole module."""
    source = SOURCE.replace("__syncthreads();", 'asm volatile("pmevent 5;"); __syncthreads();', 1)
    with pytest.raises(iket_rewrite.CubinError, match="the runtime can not patch this cubin"):
        compile_cubin(source, arch="sm_90a")
    assert compile_cubin(source, arch="sm_90a", verify=False)


def test_a_missing_nvrtc_is_told_with_the_extra():
    code = (
        "import sys; sys.modules['cuda.bindings'] = None\n"
        "import iket_rewrite\n"
        "try: iket_rewrite.compile_cubin('', arch='sm_90a')\n"
        "except iket_rewrite.ToolError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "fix: pip install 'iket-rewrite[nvrtc]'" in done.stdout
