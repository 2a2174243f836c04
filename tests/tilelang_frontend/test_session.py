# SPDX-License-Identifier: Apache-2.0
"""Sessions: what they change while they are active, and that all of it is put back."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest
import tvm_ffi
from tilelang.env import CacheState
from tilelang.tools.cuda import iket as theirs
from tilelang_frontend import kernels
from tilelang_frontend.support import lower

import iket_rewrite
from iket_rewrite import tilelang as iket

POSTPROC = "tilelang_callback_cuda_postproc"


def registered():
    return tvm_ffi.get_global_func(POSTPROC, allow_missing=True)


@pytest.fixture
def own_callback():
    """A user's callback that is registered before; it counts its calls in a comment."""
    calls = []

    def own(code, target):
        calls.append(code)
        return f"// seen {len(calls)}\n{code}"

    tvm_ffi.register_global_func(POSTPROC, f=own, override=True)
    function = registered()
    yield function, calls
    assert registered() == function
    tvm_ffi.remove_global_func(POSTPROC)


def compile_one(name: str = "event", payload: int | None = 3) -> str:
    return lower(kernels.small(name, payload))


# --- The callback ------------------------------------------------------------------------------------------------


def test_the_absence_of_a_callback_is_restored():
    with iket.session():
        assert iket.is_enabled()
        assert registered() is not None
        compile_one()
    assert not iket.is_enabled()
    assert registered() is None


def test_the_callback_from_before_is_restored(own_callback):
    function, calls = own_callback
    with iket.session():
        assert registered() != function
        compile_one()
    assert registered() == function
    assert calls == []


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_everything_is_restored_after_an_exception(own_callback, tmp_path, error):
    with (
        pytest.raises(error),
        iket.session(output_dir=tmp_path, runtime_payloads=True),
        iket.session(output_dir=tmp_path / "inner", runtime_payloads=False),
    ):
        raise error
    assert registered() == own_callback[0]


def test_nested_sessions_keep_the_callback_of_the_outer_one(own_callback):
    with iket.session() as outer:
        ours = registered()
        with iket.session() as inner:
            assert registered() == ours
            compile_one("inner")
        assert registered() == ours
        assert iket.is_enabled()
        assert "__iket_meta_info" in compile_one("outer")
    assert [record.plan.events[0].name for record in inner.kernels] == ["inner"]
    assert [record.plan.events[0].name for record in outer.kernels] == ["inner", "outer"]


def test_a_callback_is_not_replaced_where_that_was_forbidden(own_callback):
    for enter in (iket.session(override=False).__enter__, lambda: iket.enable(override=False)):
        with pytest.raises(RuntimeError, match=f"registered as {POSTPROC}") as error:
            enter()
        assert isinstance(error.value, iket_rewrite.IketError)
        assert registered() == own_callback[0]
        assert not iket.is_enabled()
        assert CacheState.is_enabled()


def test_an_inner_session_needs_no_permission_to_replace():
    with iket.session(override=False), iket.session(override=False):
        compile_one()


def test_enable_and_disable_count():
    for _ in range(2):
        iket.enable()
    assert iket.is_enabled()
    iket.disable()
    assert "__iket_meta_info" in compile_one()
    iket.disable()
    assert not iket.is_enabled()
    iket.disable()
    assert registered() is None


def test_disable_may_leave_no_callback_behind(own_callback):
    iket.enable()
    iket.disable(restore=False)
    assert registered() is None
    tvm_ffi.register_global_func(POSTPROC, f=own_callback[0], override=True)


def test_a_session_may_leave_the_callback_on(own_callback):
    with iket.session(disable_on_exit=False, runtime_payloads=True):
        pass
    assert iket.is_enabled()
    assert not iket.runtime_payloads_enabled()
    assert "__iket_meta_info" in compile_one()
    iket.disable()
    assert registered() == own_callback[0]


def test_a_session_that_fails_to_start_enables_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        iket.session(output_dir=tmp_path / "file", disable_on_exit=False).__enter__()
    assert not iket.is_enabled()


# --- Chaining ----------------------------------------------------------------------------------------------------


def test_a_chained_callback_runs_first(own_callback):
    _, calls = own_callback
    with iket.session(chain=True) as session:
        source = compile_one()
    assert len(calls) == 1
    assert "IKET_EVENT(" in calls[0]
    assert "// seen 1\n" in source
    assert session.kernels[0].original.startswith("// seen 1\n")
    assert "__iket_meta_info" in source


def test_an_inner_session_keeps_the_chain_of_the_outer_one(own_callback):
    with iket.session(chain=True), iket.session():
        compile_one()
    assert len(own_callback[1]) == 1
    iket.enable(chain=True)
    compile_one()
    iket.disable()
    assert len(own_callback[1]) == 2
    iket.enable()
    compile_one()
    iket.disable()
    assert len(own_callback[1]) == 2


def test_chaining_nothing_is_fine():
    with iket.session(chain=True):
        assert "__iket_meta_info" in compile_one()


def test_a_chained_callback_that_returns_no_source_is_named():
    tvm_ffi.register_global_func(POSTPROC, f=lambda code, target: None, override=True)
    try:
        with pytest.raises(iket.SessionError, match="chained callback returned NoneType"), iket.session(chain=True):
            lower(kernels.small())
    finally:
        tvm_ffi.remove_global_func(POSTPROC)


def test_the_error_of_a_chained_callback_arrives(own_callback):
    def failing(code, target):
        raise ValueError("from the user's callback")

    function = registered()
    tvm_ffi.register_global_func(POSTPROC, f=failing, override=True)
    with pytest.raises(ValueError, match="from the user's callback"), iket.session(chain=True):
        compile_one()
    tvm_ffi.register_global_func(POSTPROC, f=function, override=True)


# --- One object --------------------------------------------------------------------------------------------------


def test_one_session_can_not_be_entered_twice_at_a_time():
    session = iket.session()
    with session:
        with pytest.raises(RuntimeError, match="active already") as error:
            session.__enter__()
        assert isinstance(error.value, iket_rewrite.IketError)
        compile_one()
    with session:
        compile_one("again")
    assert [record.plan.events[0].name for record in session.kernels] == ["again"]
    with pytest.raises(RuntimeError, match="not active"):
        session.__exit__(None, None, None)


def test_options_go_by_name_only():
    with pytest.raises(TypeError):
        iket.session(True)
    with pytest.raises(TypeError):
        iket.enable(True)


def test_an_unknown_option_is_named():
    with pytest.raises(iket_rewrite.OptionError, match="unknown pre_hopper 'on'"):
        iket.session(pre_hopper="on")


# --- Output folder, payload mode, kernel cache -------------------------------------------------------------------


def test_the_output_folder_is_made_and_restored(tmp_path, monkeypatch):
    monkeypatch.setenv("TL_IKET_OUTPUT_DIR", "/from/outside")
    with iket.session(output_dir=tmp_path / "a" / "b") as session:
        assert (tmp_path / "a" / "b").is_dir()
        assert iket.output_dir() == tmp_path / "a" / "b"
        assert os.environ["TL_IKET_OUTPUT_DIR"] == str(tmp_path / "a" / "b")
        with iket.session(output_dir=tmp_path / "c"):
            assert iket.output_dir() == tmp_path / "c"
            iket.set_output_dir(tmp_path / "d")
            assert os.environ["TL_IKET_OUTPUT_DIR"] == str(tmp_path / "d")
            compile_one()
        assert iket.output_dir() == tmp_path / "a" / "b"
        assert os.environ["TL_IKET_OUTPUT_DIR"] == str(tmp_path / "a" / "b")
        with iket.session():
            assert iket.output_dir() == tmp_path / "a" / "b"
            compile_one()
    assert os.environ["TL_IKET_OUTPUT_DIR"] == "/from/outside"
    assert str(iket.output_dir()) == "/from/outside"
    monkeypatch.delenv("TL_IKET_OUTPUT_DIR")
    assert len(session.kernels) == 2


def test_payloads_are_off_unless_asked_for():
    with iket.session() as session:
        compile_one()
    assert not session.kernels[0].runtime_payloads
    assert [event.payload for event in session.kernels[0].plan.events] == [None]
    assert [event.declared.name for event in session.kernels[0].plan.events] == ["i32"]


def test_the_payload_mode_is_restored_and_none_preserves_it():
    iket.enable_runtime_payloads()
    assert iket.runtime_payloads_enabled()
    with iket.session(runtime_payloads=False):
        assert not iket.runtime_payloads_enabled()
        with iket.session():
            assert not iket.runtime_payloads_enabled()
            compile_one()
        with iket.session(runtime_payloads=True):
            assert iket.runtime_payloads_enabled()
            with iket.session() as session:
                assert iket.runtime_payloads_enabled()
                compile_one()
            iket.disable_runtime_payloads()
            assert not iket.runtime_payloads_enabled()
        assert not iket.runtime_payloads_enabled()
        iket.enable_runtime_payloads()
    assert iket.runtime_payloads_enabled()
    iket.disable_runtime_payloads()
    assert session.kernels[0].plan.events[0].payload.name == "i32"


def test_the_kernel_cache_is_off_and_restored():
    with iket.session():
        assert not CacheState.is_enabled()
        with iket.session(disable_cache=False):
            assert not CacheState.is_enabled()
            with iket.session():
                CacheState.enable()
                compile_one()
            assert not CacheState.is_enabled()
    assert CacheState.is_enabled()
    with iket.session(disable_cache=False):
        assert CacheState.is_enabled()
        compile_one()
    CacheState.disable()
    with iket.session():
        assert not CacheState.is_enabled()
        compile_one()
    assert not CacheState.is_enabled()
    CacheState.enable()


def test_sessions_that_end_in_another_order_restore_what_the_first_one_found(tmp_path, own_callback):
    first = iket.session(output_dir=tmp_path / "first", runtime_payloads=True)
    second = iket.session(output_dir=tmp_path / "second", runtime_payloads=False)
    first.__enter__()
    second.__enter__()
    compile_one()
    first.__exit__(None, None, None)
    assert iket.is_enabled()
    assert not iket.runtime_payloads_enabled()
    assert iket.output_dir() == tmp_path / "second"
    assert os.environ["TL_IKET_OUTPUT_DIR"] == str(tmp_path / "second")
    assert not CacheState.is_enabled()
    second.__exit__(None, None, None)
    assert registered() == own_callback[0]
    # The rest is what every test checks at its end.


def test_a_session_works_with_an_exit_stack(own_callback):
    with ExitStack() as stack:
        stack.enter_context(iket.session())
        stack.enter_context(iket.session(runtime_payloads=True))
        compile_one()
    assert registered() == own_callback[0]


# --- Kernels and events -------------------------------------------------------------------------------------------


def test_a_kernel_that_was_built_before_the_session_keeps_its_events():
    program = kernels.small("built before")
    iket.reset()
    with iket.session(runtime_payloads=True) as session:
        assert iket.event_table() == []
        lower(program)
    assert [event.name for event in session.kernels[0].plan.events] == ["built before"]


def test_a_session_starts_with_an_empty_table_unless_told_otherwise():
    kernels.small("before")
    with iket.session(reset_events=False):
        assert [row["name"] for row in iket.event_table()] == ["before"]
        compile_one("inside")
        with iket.session(reset_events=False):
            compile_one("inner")
            assert [row["name"] for row in iket.event_table()] == ["before", "inside", "inner"]
        with iket.session():
            assert iket.event_table() == []
            compile_one("last")
    assert [row["name"] for row in iket.event_table()] == ["last"]


def test_kernels_that_differ_only_in_the_names_of_events_are_not_one_in_the_cache():
    from tilelang.cache import _dispatch_map

    def key(program) -> str:
        return _dispatch_map["tvm_ffi"]._generate_key(program, [0], args=())

    assert key(kernels.small("one")) == key(kernels.small("one"))
    assert key(kernels.small("one")) != key(kernels.small("two"))
    iket.reset()
    assert key(kernels.small("one", None)) != key(kernels.small("two"))


def test_two_kernels_of_one_module_share_ids():
    with iket.session(runtime_payloads=True) as session:
        lower(kernels.two_kernels())
    (record,) = session.kernels
    assert record.kernels == ("scale_kernel", "shift_kernel")
    assert [(event.id, event.kind.value, event.name) for event in record.plan.events] == [
        (1, "range", "body"),
        (2, "mark", "shared"),
        (3, "range", "inner"),
    ]
    sites = {(site.kernel, site.event.name, site.event.id) for site in record.plan.sites if site.event}
    assert sites == {
        ("scale_kernel", "body", 1),
        ("scale_kernel", "shared", 2),
        ("shift_kernel", "shared", 2),
        ("shift_kernel", "body", 1),
        ("shift_kernel", "inner", 3),
    }


def test_on_source_hands_over_each_source_with_its_table():
    seen = []
    with iket.session(on_source=seen.append, runtime_payloads=True) as session:
        source = compile_one("one")
        compile_one("two", None)
    assert seen == session.kernels
    assert seen[0].source == source
    assert "IKET_EVENT(" in seen[0].original
    assert seen[0].target == "sm_90a"
    (event,) = seen[0].table["events"]
    assert (event["name"], event["payload"]) == ("one", "i32")
    (site,) = seen[0].table["sites"]
    assert (site["file"], site["kernel"]) == (kernels.__file__, "small_kernel")


def test_on_source_of_an_outer_session_sees_what_an_inner_one_compiles():
    outer, inner = [], []
    with iket.session(on_source=outer.append), iket.session(on_source=inner.append):
        compile_one()
    assert outer == inner
    assert len(inner) == 1


@pytest.mark.parametrize("error", [LookupError("own"), iket_rewrite.OptionError("own")])
def test_an_error_of_on_source_arrives_as_it_was_raised(error):
    def refuse(record):
        raise error

    with pytest.raises(type(error), match="own") as caught, iket.session(on_source=refuse):
        compile_one()
    assert caught.value is error


def test_an_error_of_the_rewriter_arrives_as_it_was_raised():
    import tilelang.language as T

    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            T.call_extern("handle", "IKET_EVENT", "no token at all")
            A[0] = T.float32(1)

    with pytest.raises(iket_rewrite.AnnotationError, match="does not start with") as caught, iket.session():
        lower(kernel)
    assert caught.value.place.line > 1


# --- TileLang's own annotations ------------------------------------------------------------------------------------


def test_tilelangs_own_annotations_are_understood():
    theirs.reset()
    program = kernels.small("theirs", module=theirs)
    for payloads in (False, True):
        with iket.session(runtime_payloads=payloads) as session:
            source = lower(program)
        assert "TL_IKET_EVENT" not in source
        (event,) = session.kernels[0].plan.events
        assert (event.name, event.declared.name, event.payload is not None) == ("theirs", "i32", payloads)


def test_forty_of_tilelangs_own_marks_keep_their_names():
    theirs.reset()
    with iket.session(runtime_payloads=True) as session:
        lower(kernels.forty(module=theirs))
    assert [event.name for event in session.kernels[0].plan.events] == [name for _, name in kernels.FORTY]


def test_a_session_of_tilelangs_inside_ours_gives_the_callback_back():
    with iket.session() as session:
        ours = registered()
        with theirs.session():
            assert registered() != ours
        assert registered() == ours
        compile_one()
    assert len(session.kernels) == 1


# --- Architectures --------------------------------------------------------------------------------------------------


def test_below_hopper_events_are_nothing_and_a_warning_says_so():
    with pytest.warns(iket.IketWarning, match="small_kernel: sm_80: the IKET runtime supports sm_90 and newer"):
        with iket.session() as session:
            lower(kernels.small(), "sm_80")
    assert session.kernels[0].target == "sm_80"
    assert session.kernels[0].instrumented


def test_below_hopper_the_documented_form_can_be_asked_for():
    with pytest.warns(iket.IketWarning, match="overwrites the user's shared memory"):
        with iket.session(pre_hopper="rank0") as session:
            rank0 = lower(kernels.small(), "sm_80")
    with pytest.warns(iket.IketWarning, match="below, events are nothing"), iket.session():
        off = lower(kernels.small(), "sm_80")
    assert rank0 != off
    assert session.kernels[0].instrumented


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_from_hopper_on_nothing_is_warned_of(arch):
    with iket.session():
        lower(kernels.small(), arch)


def test_what_can_not_be_called_is_refused_before_anything_is_compiled():
    with pytest.raises(iket_rewrite.IketError, match="on_source is int"):
        iket.session(on_source=5)
