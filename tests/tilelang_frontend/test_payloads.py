# SPDX-License-Identifier: Apache-2.0
"""Payloads: which types there are, how one is told, and what is recorded of them."""

from __future__ import annotations

import numpy as np
import pytest
import tilelang.language as T
from tilelang_frontend import kernels
from tilelang_frontend.support import build, check_declarations, check_records, lower

import iket_rewrite
from iket_rewrite import tilelang as iket

BIG = 1 << 40


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "uint32"),
        (3, "int32"),
        (-(1 << 31), "int32"),
        (1 << 31, "int64"),
        (-BIG, "int64"),
        (1 << 63, "uint64"),
        (1.5, "float32"),
        (np.int16(3), "int16"),
        (np.float64(3), "float64"),
    ],
)
def test_the_type_is_told_from_the_value(value, dtype):
    assert iket.payload(value).dtype == dtype


@pytest.mark.parametrize("name", kernels.PAYLOADS)
def test_every_type_has_its_number_and_its_short_name(name):
    ours, code = kernels.PAYLOADS[name]
    for given in (name, name.upper(), ours, T.dtype(name) if name != "handle" else name):
        spec = iket.payload(object(), dtype=given)
        assert (spec.dtype, spec.type, spec.iket_id) == (name, ours, code)


@pytest.mark.parametrize(
    ("given", "name"), [("int", "int32"), ("uint", "uint32"), ("float", "float32"), ("half", "float16")]
)
def test_tilelangs_short_names_are_known(given, name):
    assert iket.payload(1, dtype=given).dtype == name


def test_a_spec_can_be_made_by_hand_as_with_tilelang():
    spec = iket.PayloadSpec(expr=1, dtype="int32", iket_id=5)
    assert spec == iket.payload(1, dtype="int32") == iket.PayloadSpec(1, "int32")
    with pytest.raises(ValueError, match="has the number 5 in IKET, not 6"):
        iket.PayloadSpec(1, "int32", 6)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int4", "int128", "float32x4", "string", ""])
def test_a_type_that_is_none_is_refused(dtype):
    with pytest.raises(ValueError, match="there is no payload type") as error:
        iket.payload(1, dtype=dtype)
    assert isinstance(error.value, iket_rewrite.IketError)


@pytest.mark.parametrize("value", [object(), "text", [1], {}])
def test_a_value_whose_type_can_not_be_told_is_refused(value):
    with pytest.raises(TypeError, match="type can not be told") as error:
        iket.mark("name", payload=value)
    assert isinstance(error.value, iket_rewrite.IketError)
    assert iket.event_table() == []


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(300, "int8"), (-129, "int8"), (256, "uint8"), (-1, "uint32"), (BIG, "int32"), (1 << 64, "uint64")],
)
def test_a_number_that_does_not_fit_its_type_is_refused(value, dtype):
    with pytest.raises(ValueError, match=f"{value} does not fit {dtype}"):
        iket.mark("name", payload=iket.payload(value, dtype=dtype))


def test_a_number_of_more_than_64_bits_is_refused():
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        iket.payload(1 << 64)


def test_a_python_number_is_no_pointer():
    with pytest.raises(TypeError, match="no pointer"):
        iket.mark("name", payload=iket.payload(1, dtype="handle"))


def one(value, dtype=None):
    """Return the expression that is printed for a payload, in a kernel that offers some values."""

    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32), n: T.int32):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding(0)
            if n > 0:
                iket.mark("value", payload=iket.payload(value(A, bx, tx, n), dtype=dtype))
            A[tx] = A[tx] + T.float32(1)

    with iket.session(runtime_payloads=True) as session:
        lower(kernel)
    (site,) = session.kernels[0].plan.sites
    return site.event.payload.name, site.expression


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (lambda A, bx, tx, n: bx, None, ("i32", "((int)blockIdx.x)")),
        (lambda A, bx, tx, n: n, "float32", ("f32", "((float)n)")),
        (lambda A, bx, tx, n: A[tx], "int32", ("i32", "((int)A[((int)threadIdx.x)])")),
        (lambda A, bx, tx, n: n > 3, None, ("bool", "(3 < n)")),
        (lambda A, bx, tx, n: n > 3, "int32", ("i32", "((int)(3 < n))")),
        (lambda A, bx, tx, n: A[tx], "float16", ("f16", "((half_t)A[((int)threadIdx.x)])")),
        (lambda A, bx, tx, n: T.address_of(A[tx]), None, ("pointer", "(&(A[((int)threadIdx.x)]))")),
        (lambda A, bx, tx, n: 7, "uint8", ("u8", "(uchar)7")),
        (lambda A, bx, tx, n: BIG + 1, None, ("i64", "(int64_t)1099511627777")),
        (lambda A, bx, tx, n: T.cast(n, "int64") << 33, None, ("i64", "(((int64_t)n) << (int64_t)33)")),
    ],
)
def test_a_value_is_printed_in_its_declared_type(value, dtype, expected):
    assert one(value, dtype) == expected


def test_a_64_bit_value_that_tilelang_narrows_is_still_declared_and_recorded_as_one():
    kind, expression = one(lambda A, bx, tx, n: T.cast(bx, "int64") * 2 + 1, "int64")
    assert (kind, "int64_t" in expression) == ("i64", False)
    built = build(kernels.narrowed)
    (event,) = [event for event in built.record.plan.events if event.name == "narrowed"]
    assert built.official.events[event.id][1] == 7
    check_records(built.record.plan, built.cubin)


def test_a_variable_of_the_kernel_can_be_recorded():
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding(0)
            count = T.alloc_var("int32")
            count = bx * 2
            iket.mark("count", payload=count)
            A[tx] = A[tx] + T.cast(count, "float32")

    with iket.session(runtime_payloads=True) as session:
        lower(kernel)
    assert session.kernels[0].plan.events[0].payload.name == "i32"


@pytest.mark.parametrize("value", [lambda A, bx: A, lambda A, bx: T.address_of(A[0])])
def test_what_is_no_scalar_of_that_type_is_refused(value):
    with pytest.raises(TypeError, match=r"one value, not Buffer|handle can not be recorded as float32"):

        @T.prim_func
        def kernel(A: T.Tensor((128,), T.float32)):
            with T.Kernel(4, threads=128) as bx:
                iket.mark("value", payload=iket.payload(value(A, bx), dtype="float32"))
                A[0] = T.float32(1)


def test_every_type_is_declared_and_recorded_as_what_it_is():
    built = build(kernels.every_payload)
    found = check_declarations(built.record.plan, built.cubin)
    check_records(built.record.plan, built.cubin, found)
    assert {name: code for name, code, *_ in found.events.values()} == {
        name: code for name, (_, code) in kernels.PAYLOADS.items()
    }
    assert set(found.kernel("every_payload")) == set(kernels.PAYLOADS)
    assert built.report.ok, built.report.findings
    assert built.record.warnings == ()


def test_without_runtime_payloads_the_schema_stays_in_the_token_and_the_binary_declares_none():
    built = build(kernels.every_payload, payloads=False)
    found = check_declarations(built.record.plan, built.cubin)
    check_records(built.record.plan, built.cubin, found)
    assert {code for _, code, *_ in found.events.values()} == {0}
    assert {event.name: event.declared.name for event in built.record.plan.events} == {
        name: ours for name, (ours, _) in kernels.PAYLOADS.items()
    }
    assert built.report.ok, built.report.findings


def fragment(own_index: bool):
    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(1, threads=128) as _:
            held = T.alloc_fragment((128,), T.float32)
            T.copy(A, held)
            for i in T.Parallel(128):
                iket.mark("value", payload=held[i if own_index else 0])
                A[i] = held[i]

    return kernel


def test_a_payload_may_read_a_fragment_at_the_index_of_the_loop_over_it():
    with iket.session(runtime_payloads=True) as session:
        lower(fragment(own_index=True))
    assert session.kernels[0].plan.sites[0].expression == "held[0]"
    with pytest.raises(Exception, match="held"), iket.session(runtime_payloads=True):
        lower(fragment(own_index=False))


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1e300, "float32"),
        (70000, "float16"),
        (-1e39, "bfloat16"),
        (1 << 2000, "float64"),
        (float("nan"), "int32"),
        (float("inf"), "uint64"),
    ],
)
def test_a_number_that_does_not_fit_a_type_is_an_error_of_ours(value, dtype):
    with pytest.raises(ValueError, match=f"does not fit {dtype}") as error:
        iket.mark("name", payload=iket.payload(value, dtype=dtype))
    assert isinstance(error.value, iket_rewrite.IketError)


def wide():
    @T.prim_func
    def wide(A: T.Tensor((256,), T.int64), B: T.Tensor((256,), T.uint64)):
        with T.Kernel(2, threads=128) as bx:
            iket.mark("half", payload=iket.payload(A[bx], dtype="float16"))
            iket.mark("brain", payload=iket.payload(B[bx], dtype="bfloat16"))
            A[bx + 2] = T.int64(1)

    return wide


def test_64_bit_integers_are_recorded_in_16_bit_types():
    built = build(wide)
    assert [event.payload.name for event in built.record.plan.events] == ["f16", "bf16"]
    assert built.report.ok


def test_what_can_not_be_converted_says_what_to_do_instead():
    def refused(value, dtype):
        with pytest.raises(TypeError, match=r"can not be recorded|one value") as error:
            iket.mark("name", payload=iket.payload(value, dtype=dtype))
        return error.value.remedy

    buffer = T.Tensor((4,), T.float8_e4m3fn)
    assert "T.cast" in refused(buffer[0], "float32")
    assert "T.address_of" in refused(T.int32(1), "handle")
    assert "leave the type out" in refused(T.address_of(buffer[0]), "uint64")
    assert "index the buffer" in refused(buffer, "float32")
