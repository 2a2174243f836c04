# SPDX-License-Identifier: Apache-2.0
"""What TileLang's public IKET guide documents, sentence by sentence where no other test looks at it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest
import tilelang
import tilelang.language as T
from builds import check_declarations
from tilelang_frontend import kernels
from tilelang_frontend.support import cubin, lower
from toolbox import Official

import iket_rewrite
from iket_rewrite import tilelang as iket

SAMPLE = Path(__file__).with_name("guide_sample.py")
NAMES = ["block_total", "before_store", "after_store"]


def test_the_sample_runs_with_its_import_changed(tmp_path, tilelangs_compiler):
    """Without a GPU two arguments of it must differ: `target="cuda"` looks for one, and cython loads its library."""
    text = SAMPLE.read_text(encoding="utf-8")
    for old, new in (
        ('target="cuda"', 'target={"kind": "cuda", "arch": "sm_90a"}'),
        ('execution_backend="cython"', 'execution_backend="tvm_ffi"'),
        ("/tmp/tilelang_iket", str(tmp_path / "traces")),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    program = tmp_path / "sample.py"
    program.write_text(text, encoding="utf-8")
    values = runpy.run_path(str(program))
    source = values["kernel"].get_kernel_source()
    assert iket_rewrite.rewrite(source).instrumented
    binary = cubin(source)
    found = Official(binary).kernel("main_kernel")
    assert found == ["block_total", "before_store", "after_store", "pop_range"]
    assert (tmp_path / "traces").is_dir()
    assert iket_rewrite.verify(binary).ok
    assert [row["name"] for row in iket.event_table()] == NAMES


def test_the_sample_is_the_guides_but_for_its_import():
    text = SAMPLE.read_text(encoding="utf-8")
    assert text.count("from iket_rewrite import tilelang as iket\n") == 1
    assert text.count("import") == 3 + 1  # the three imports, and the word in the comment at the top


def test_a_kernel_built_inside_or_before_the_session_has_the_same_events():
    before = kernels.elementwise()
    with iket.session() as session:
        lower(before)
        lower(kernels.elementwise())
    one, other = session.kernels
    assert one.source == other.source


def test_the_session_must_be_active_while_source_is_generated():
    with pytest.warns(iket.IketWarning, match="no kernel was compiled"), iket.session():
        program = kernels.small()
    assert "__iket_meta_info" not in lower(program)


def test_payloads_of_simple_values_and_with_a_named_type_are_the_same():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(2, threads=128) as bx:
            iket.mark("plain", payload=bx)
            iket.mark("named", payload=iket.payload(bx, dtype="int32"))
            A[0] = T.float32(1)

    with iket.session(runtime_payloads=True) as session:
        lower(kernel)
    plain, named = session.kernels[0].plan.sites
    assert plain.expression == named.expression
    assert [event.payload.name for event in session.kernels[0].plan.events] == ["i32", "i32"]


def test_a_marker_without_payload_is_one_store_of_four_bytes():
    with iket.session() as session:
        source = lower(kernels.small("four bytes", 3))
    binary = cubin(source)
    (site,) = iket_rewrite.verify(binary).sites
    stores = [opcode for _, _, opcode, _, role in site.instructions if role in ("timestamp", "payload")]
    assert stores == ["STS"]
    check_declarations(session.kernels[0].plan, binary)


def test_a_marker_with_payload_is_two_stores_and_never_one_of_64_bits():
    with iket.session(runtime_payloads=True):
        source = lower(kernels.small("two stores", 3))
    (site,) = iket_rewrite.verify(cubin(source)).sites
    shown = [(opcode, role) for _, _, opcode, _, role in site.instructions]
    assert shown == [("STS", "timestamp"), ("STS", "payload"), ("PMTRIG", "trigger")]


def test_hopper_code_reads_the_rank_in_the_cluster_and_older_code_does_not():
    with iket.session():
        source = lower(kernels.small())
    hopper = source[source.index("#if defined(IKET_EMIT_OFFSET)") :]
    assert "%%cluster_ctarank" in hopper
    with pytest.warns(iket.IketWarning), iket.session(pre_hopper="rank0"):
        older = lower(kernels.small(), "sm_80")
    assert "IKET_EMIT_PRE_HOPPER" in older


def test_traces_are_read_as_the_guide_reads_them(tmp_path):
    (tmp_path / "a.trace.json").write_text('{"launches": []}')
    (tmp_path / "b.trace.json").write_text(
        json.dumps({"launches": [{"markers": [{"markerNameIdx": 0, "payloadVal": 7}]}], "stringTable": ["store_index"]})
    )
    iket.set_output_dir(tmp_path)
    data = json.loads(iket.trace_files()[0].read_text())
    launch, names = data["launches"][0], data["stringTable"]
    values = [
        marker["payloadVal"]
        for marker in launch["markers"]
        if names[marker["markerNameIdx"]] == "store_index" and "payloadVal" in marker
    ]
    assert values == [7]
    iket.set_output_dir(None)


def test_only_cuda_is_instrumented():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1) as _:
            for i in T.serial(128):
                A[i] = A[i] + T.float32(1)

    with pytest.warns(iket.IketWarning, match="nothing was instrumented"), iket.session() as session:
        tilelang.lower(kernel, target="c")
    assert session.kernels == []
