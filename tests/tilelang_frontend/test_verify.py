# SPDX-License-Identifier: Apache-2.0
"""Sessions that verify: what each backend compiles is judged, a finding raises, and nothing is passed over."""

from __future__ import annotations

import linecache
import subprocess
import sys
import threading

import pytest
import tilelang
import tilelang.language as T
import tvm_ffi
from builds import toolkit_headers
from tilelang_frontend import kernels
from tilelang_frontend.support import lower, target
from tvm.target import Target

import iket_rewrite
from iket_rewrite import tilelang as iket
from iket_rewrite.tilelang import compat, verifying

COMPILE = "tilelang_callback_cuda_compile"
BACKENDS = ["tvm_ffi", "nvrtc", "cython"]


@pytest.fixture(params=BACKENDS)
def backend(request, tmp_path, monkeypatch):
    """An execution backend with TileLang's own compiler, which compiles here, though it may not load the result."""
    if request.param != "nvrtc":
        request.getfixturevalue("tilelangs_compiler")
    if request.param == "nvrtc":
        find_headers(monkeypatch)
    if request.param == "cython" and not _links_with_cuda():
        # Its libraries are linked with the driver's, whose symbols nobody looks up before a kernel is loaded.
        stub = tmp_path / "libcuda.so"
        subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", str(stub)], check=True)
        monkeypatch.setenv("LIBRARY_PATH", str(tmp_path))
    return request.param


def find_headers(monkeypatch) -> None:
    """Tell TileLang where the toolkit's headers are; it looks beside nvcc, which need not be installed."""
    # The attribute `env` of the package is no module.
    monkeypatch.setattr(sys.modules["tilelang.env"], "CUDA_HOME", str(toolkit_headers()[0].parent))


def _links_with_cuda() -> bool:
    command = ["gcc", "-shared", "-x", "c", "/dev/null", "-lcuda", "-o", "/dev/null"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def compile_(program, backend: str = "tvm_ffi"):
    """Compile; without a GPU two of the backends fail, once the binary is there and judged."""
    try:
        # NVRTC asks for the target that is in force.
        with Target(target()):
            return tilelang.compile(program, target=target(), execution_backend=backend)
    except iket_rewrite.IketError:
        raise
    except (RuntimeError, OSError, AssertionError) as error:
        if backend == "tvm_ffi" or "compil" in str(error).lower():
            raise
        return None


@pytest.fixture
def foreign_trigger():
    """A user's callback that puts a trigger of its own before the first event, which nobody declares."""

    def plant(code, target):
        return code.replace("IKET_EVENT(", 'asm volatile("pmevent 5;"); IKET_EVENT(', 1)

    tvm_ffi.register_global_func(compat.POSTPROC, f=plant, override=True)
    yield
    tvm_ffi.remove_global_func(compat.POSTPROC)


def ours(caught) -> list[str]:
    return [str(one.message) for one in caught if one.category is iket.IketWarning]


def compiler():
    return tvm_ffi.get_global_func(COMPILE, allow_missing=True)


def test_a_sound_binary_passes_and_its_report_is_handed_back(backend):
    with iket.session(verify=True, runtime_payloads=True) as session:
        compile_(kernels.small(f"sound {backend}"), backend)
    (record,) = session.kernels
    assert record.report is not None
    assert record.report.ok
    assert [(event.name, event.payload) for event in record.report.events] == [(f"sound {backend}", "i32")]
    assert [kernel.name for kernel in record.report.kernels if kernel.triggers] == ["small_kernel"]


def test_a_finding_raises_with_the_name_of_the_kernel(backend, foreign_trigger):
    with pytest.raises(iket.VerificationError, match="undeclared-event") as caught:
        with iket.session(verify=True, chain=True) as session:
            compile_(kernels.small(f"planted {backend}"), backend)
    error = caught.value
    assert str(error).startswith("the kernel small_kernel: the compiled binary is not sound\n  undeclared-event: ")
    assert "\n  fix: " in str(error)
    assert error.kernels == ("small_kernel",)
    assert isinstance(error, iket_rewrite.IketError)
    assert not error.report.ok
    assert session.kernels[0].report is error.report


def test_without_verify_nothing_is_judged(foreign_trigger):
    with iket.session(chain=True) as session:
        compile_(kernels.small("unjudged"))
    assert session.kernels[0].report is None


def test_a_merged_record_raises():
    """The fault that kills a captured process, planted between the rewriter and the compiler."""
    original = compiler()

    def bend(code, *arguments):
        assert "st.volatile.shared" in code
        return original(code.replace("st.volatile.shared", "st.shared"), *arguments)

    tvm_ffi.register_global_func(COMPILE, f=bend, override=True)
    bent = compiler()
    try:
        with pytest.raises(iket.VerificationError, match="merged-record"):
            with iket.session(verify=True, runtime_payloads=True):
                compile_(kernels.small("merged", 3))
        assert compiler() == bent
    finally:
        tvm_ffi.register_global_func(COMPILE, f=original, override=True)


def test_an_inner_session_keeps_verifying(foreign_trigger):
    with pytest.raises(iket.VerificationError), iket.session(verify=True), iket.session(chain=True):
        compile_(kernels.small("inner"))


def test_a_thread_without_a_session_is_verified_as_the_outermost_session_says(foreign_trigger):
    caught = []

    def work():
        try:
            compile_(kernels.small("in a worker"))
        except iket.VerificationError as error:
            caught.append(error)

    with iket.session(verify=True, chain=True):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(caught) == 1


def test_a_kernel_without_events_passes():
    with iket.session(verify=True) as session:
        compile_(kernels.plain())
        compile_(kernels.small("with events"))
    assert [record.report.ok for record in session.kernels] == [True, True]


def test_ranges_that_do_not_pair_up_are_warned_of_with_their_line(tilelangs_compiler):
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding(0)
            # The generated source has one condition twice; the value has changed in between.
            if A[tx] > 0:
                iket.range_push("unpaired")
            A[tx] = A[127 - tx]
            if A[tx] > 0:
                iket.range_pop("unpaired")

    with pytest.warns(iket.IketWarning, match=r"unbalanced-range: .*\(.*test_verify\.py:\d+\)") as caught:
        with iket.session(verify=True) as session:
            compile_(kernel)
    for message, one in zip(ours(caught), caught, strict=True):
        word = "range_pop" if "a pop on a path" in message else "range_push"
        assert word in linecache.getline(one.filename, one.lineno)
    assert {finding.rule for finding in session.kernels[0].report.findings} == {"unbalanced-range"}


def test_a_range_that_the_source_shows_unpaired_is_warned_of_once():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding(0)
            iket.range_push("open")
            A[tx] = A[tx] - T.float32(1)

    with pytest.warns(iket.IketWarning) as caught, iket.session(verify=True) as session:
        compile_(kernel)
    (message,) = ours(caught)
    assert "is never ended" in message
    assert {finding.rule for finding in session.kernels[0].report.findings} == {"unbalanced-range"}


def test_a_specialised_gemm_is_sound_and_its_empty_range_is_warned_of_once():
    with pytest.warns(iket.IketWarning) as caught, iket.session(verify=True, runtime_payloads=True) as session:
        compile_(kernels.gemm())
    (message,) = ours(caught)
    assert "encloses nothing" in message
    assert {finding.rule for finding in session.kernels[0].report.findings} == {"empty-range"}


# --- Nothing is passed over ---------------------------------------------------------------------------------------


def test_a_backend_that_is_not_watched_is_refused(monkeypatch):
    find_headers(monkeypatch)
    generators = compat.library_generators()
    monkeypatch.setattr(compat, "library_generators", lambda: {"cython": generators["cython"]})
    with pytest.raises(iket.VerificationError, match="execution backend nvrtc can not be verified"):
        with iket.session(verify=True):
            compile_(kernels.small("unwatched"), "nvrtc")


def test_a_binary_that_was_not_seen_is_an_error(monkeypatch):
    with pytest.raises(iket.VerificationError, match="compiled it where it could not be verified") as caught:
        with iket.session(verify=True):
            # A release that compiles by another way than the callback.
            tvm_ffi.register_global_func(COMPILE, f=verifying._function.previous, override=True)
            compile_(kernels.small("unseen"))
    assert caught.value.kernels == ("small_kernel",)


def test_a_kernel_from_the_cache_is_not_verified_and_that_is_an_error():
    program = kernels.small("from the cache")
    with iket.session(disable_cache=False):
        compile_(program)
    with pytest.raises(iket.VerificationError, match="came from TileLang's kernel cache: its binary was not") as caught:
        with iket.session(disable_cache=False, verify=True):
            compile_(program)
    assert caught.value.kernels == ("small",)
    with iket.session(disable_cache=False, verify=True):
        first = compile_(kernels.small("not in the cache"))
        assert compile_(kernels.small("not in the cache")) is first


def test_lowering_alone_has_no_binary_to_verify():
    with iket.session(verify=True) as session:
        lower(kernels.small())
    assert session.kernels[0].report is None


def test_what_was_replaced_is_put_back():
    before = (compiler(), [vars(owner)["compile_lib"] for owner in compat.library_generators().values()])
    kernel_class = dict(vars(compat.JITKernel))
    with iket.session(verify=True), iket.session(verify=True):
        assert compiler() != before[0]
        lower(kernels.small())
    after = (compiler(), [vars(owner)["compile_lib"] for owner in compat.library_generators().values()])
    assert after == before
    assert {name: vars(compat.JITKernel)[name] for name in ("__init__", "__call__")} == {
        name: kernel_class[name] for name in ("__init__", "__call__")
    }


def test_device_compilation_without_a_kernel_object_is_verified(foreign_trigger):
    with pytest.raises(iket.VerificationError), iket.session(verify=True, chain=True), Target(target()):
        tilelang.lower(kernels.small("lowered"), enable_device_compile=True)
