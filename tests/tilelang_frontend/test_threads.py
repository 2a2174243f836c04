# SPDX-License-Identifier: Apache-2.0
"""Threads: each compiles as its own session says, and those without one as the outermost active session says."""

from __future__ import annotations

import contextlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import tilelang
import tilelang.language as T
from tilelang.env import CacheState
from tilelang_frontend import kernels
from tilelang_frontend.support import lower, target

from iket_rewrite import tilelang as iket


def modes(session) -> list[tuple[str, bool]]:
    """Return the name of the first event of each kernel, and whether its payload is recorded."""
    events = [record.plan.events[0] for record in session.kernels]
    return [(event.name, event.payload is not None) for event in events]


def run(*functions) -> None:
    """Run each in a thread of its own; raise what the first failing one raised."""
    with ThreadPoolExecutor(len(functions)) as pool:
        for future in [pool.submit(function) for function in functions]:
            future.result(timeout=600)


def test_two_threads_in_sessions_of_different_modes_each_get_their_own():
    barrier = threading.Barrier(2, timeout=300)
    sessions = {}

    def work(payloads: bool):
        barrier.wait()
        with iket.session(runtime_payloads=payloads) as session:
            sessions[payloads] = session
            for number in range(6):
                program = kernels.small(f"{payloads} {number}", number)
                # Both threads generate code at about the same time, over and over.
                barrier.wait()
                lower(program)
                assert iket.runtime_payloads_enabled() is payloads
                assert len(iket.event_table()) == number + 1
            barrier.wait()

    run(lambda: work(False), lambda: work(True))
    for payloads, session in sessions.items():
        assert modes(session) == [(f"{payloads} {number}", payloads) for number in range(6)]


def test_threads_may_use_one_event_in_different_ways():
    barrier = threading.Barrier(2, timeout=300)

    def work(dtype: str):
        with iket.session(runtime_payloads=True) as session:
            barrier.wait()
            lower(kernels.small("same name", iket.payload(1, dtype=dtype)))
            barrier.wait()
        (event,) = session.kernels[0].plan.events
        assert event.payload.name == {"int32": "i32", "float64": "f64"}[dtype]

    run(lambda: work("int32"), lambda: work("float64"))


def test_threads_have_their_own_folder_positions_and_chain(tmp_path):
    barrier = threading.Barrier(2, timeout=300)

    def work(name: str, locations: bool):
        with iket.session(output_dir=tmp_path / name, source_locations=locations) as session:
            barrier.wait()
            assert iket.output_dir() == tmp_path / name
            assert iket.output_path("a.json") == tmp_path / name / "a.json"
            lower(kernels.small(name))
            barrier.wait()
        assert bool(session.kernels[0].plan.sites[0].position) is locations

    run(lambda: work("one", True), lambda: work("two", False))
    assert "TL_IKET_OUTPUT_DIR" not in os.environ


def test_whatever_the_order_in_which_threads_end_the_first_state_comes_back(tmp_path):
    started, may_end = threading.Barrier(3, timeout=300), [threading.Event(), threading.Event()]

    def work(index: int):
        with iket.session(output_dir=tmp_path / str(index)):
            lower(kernels.small(str(index)))
            started.wait()
            assert may_end[index].wait(60)

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(work, index) for index in range(2)]
        started.wait()
        # The thread that came first ends first, and then the other way round.
        may_end[0].set()
        futures[0].result(60)
        assert iket.is_enabled()
        assert not CacheState.is_enabled()
        may_end[1].set()
        futures[1].result(60)
    assert not iket.is_enabled()
    assert CacheState.is_enabled()


def test_a_thread_without_a_session_uses_the_one_that_is_active():
    with iket.session(runtime_payloads=True) as session:
        run(lambda: lower(kernels.small("in a worker")))
    assert modes(session) == [("in a worker", True)]
    assert [row["name"] for row in iket.event_table()] == ["in a worker"]


def test_a_thread_without_a_session_uses_the_innermost_one_of_the_thread_that_opened_it():
    with iket.session(runtime_payloads=False) as outer, iket.session(runtime_payloads=True) as inner:
        run(lambda: lower(kernels.small("in a worker")))
    assert modes(inner) == modes(outer) == [("in a worker", True)]


def test_a_worker_uses_the_outermost_session_and_is_told_where_others_differ():
    inside, done = threading.Event(), threading.Event()
    seen = []

    def other():
        with iket.session(runtime_payloads=False) as session:
            lower(kernels.small("other"))
            inside.set()
            assert done.wait(60)
        seen.append(session)

    with iket.session(runtime_payloads=True) as session, ThreadPoolExecutor(2) as pool:
        future = pool.submit(other)
        assert inside.wait(60)
        with pytest.warns(iket.IketWarning, match="several threads have sessions that differ") as caught:
            for number in range(2):
                pool.submit(lower, kernels.small(f"worker {number}")).result(60)
        done.set()
        future.result(60)
    assert len(caught) == 1
    assert modes(session) == [("worker 0", True), ("worker 1", True)]
    assert modes(seen[0]) == [("other", False)]


def test_a_worker_is_not_told_where_all_sessions_want_the_same():
    inside, done = threading.Event(), threading.Event()

    def other():
        with iket.session():
            lower(kernels.small("other"))
            inside.set()
            assert done.wait(60)

    with iket.session() as session, ThreadPoolExecutor(2) as pool:
        future = pool.submit(other)
        assert inside.wait(60)
        pool.submit(lower, kernels.small("worker")).result(60)
        done.set()
        future.result(60)
    assert modes(session) == [("worker", False)]


def test_the_error_of_one_thread_is_not_that_of_another():
    @T.prim_func
    def broken(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            T.call_extern("handle", "IKET_EVENT", "no token")
            A[0] = T.float32(1)

    def fail():
        with pytest.raises(Exception, match="does not start with"), iket.session():
            lower(broken)

    def pass_():
        with iket.session() as session:
            for number in range(4):
                lower(kernels.small(f"fine {number}"))
        assert len(session.kernels) == 4

    run(fail, pass_, fail, pass_)


# --- TileLang's own thread pools ---------------------------------------------------------------------------------


def test_par_compile_uses_the_session_around_it():
    programs = [kernels.small(f"kernel {number}", number) for number in range(3)]
    with iket.session(runtime_payloads=True) as session:
        compiled = tilelang.par_compile(
            programs, target=target(), execution_backend="tvm_ffi", num_workers=2, pass_configs={}
        )
    assert sorted(modes(session)) == [(f"kernel {number}", True) for number in range(3)]
    sources = {record.source for record in session.kernels}
    assert {kernel.get_kernel_source() for kernel in compiled} == sources
    assert threading.get_ident() not in {record.thread for record in session.kernels}


def test_a_warning_from_a_worker_names_the_line_of_the_session():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            iket.mark("coloured", color=0xFF0000)
            A[0] = T.float32(1)

    with pytest.warns(iket.IketWarning, match="no colour") as caught, iket.session():
        tilelang.par_compile([kernel], target=target(), execution_backend="tvm_ffi")
    assert caught[0].filename == __file__


def test_the_autotuner_uses_the_session_around_it():
    @tilelang.autotune(configs=[{"threads": 64}, {"threads": 128}], warmup=1, rep=1, timeout=60)
    @tilelang.jit(target=target(), execution_backend="tvm_ffi")
    def add_one(n: int, threads: int = 128):
        @T.prim_func
        def add_one(A: T.Tensor((n,), T.float32)):
            with T.Kernel(n // threads, threads=threads) as bx:
                tx = T.get_thread_binding(0)
                iket.mark(f"threads {threads}", payload=iket.payload(bx, dtype="uint16"))
                A[bx * threads + tx] = A[bx * threads + tx] + T.float32(1)

        return add_one

    # It compiles every configuration in its workers; without a GPU it can time none.
    with iket.session(runtime_payloads=True) as session, contextlib.suppress(RuntimeError):
        add_one(256)
    assert set(modes(session)) == {("threads 64", True), ("threads 128", True)}
    workers = {record.thread for record in session.kernels}
    assert threading.get_ident() not in workers
