# SPDX-License-Identifier: Apache-2.0
"""Where an event may be written, and that it is in the kernel once, wherever that is."""

from __future__ import annotations

import pytest
import tilelang.language as T
from tilelang_frontend.support import lower

from iket_rewrite import tilelang as iket


def sites(program) -> list[tuple[str, str | None]]:
    """Return kind and name of each annotation, in the order of the generated source."""
    with iket.session() as session:
        lower(program)
    return [(site["kind"], site["name"]) for site in session.kernels[0].table["sites"]]


def test_events_of_functions_lists_and_assignments_are_in_the_kernel_once():
    def start(value):
        iket.mark("of a function", payload=value)
        iket.range_push("begun there")
        return [iket.mark(f"of a list {number}") for number in range(2)]

    @T.macro
    def inside(A, value):
        with iket.range("of a macro", payload=value):
            A[value] = T.float32(1)

    @T.prim_func
    def kernel(A: T.Tensor((128,), T.float32)):
        with T.Kernel(4, threads=128) as bx:
            start(bx)
            inside(A, bx)
            iket.range_pop("begun there")
            kept = iket.mark("assigned")  # noqa: F841
            T.evaluate(iket.mark("evaluated"))
            A[0] = T.float32(1)

    assert sites(kernel) == [
        ("mark", "of a function"),
        ("range_push", "begun there"),
        ("mark", "of a list 0"),
        ("mark", "of a list 1"),
        ("range_push", "of a macro"),
        ("range_pop", None),
        ("range_pop", None),
        ("mark", "assigned"),
        ("mark", "evaluated"),
    ]


def test_an_event_in_a_condition_is_an_error():
    with pytest.raises(ValueError, match="it stands in a condition") as error:

        @T.prim_func
        def choosing(A: T.Tensor((128,), T.float32)):
            with T.Kernel(4, threads=128) as bx:
                iket.mark("first") if bx == 0 else iket.mark("other")
                A[bx] = T.float32(1)

    assert "under an if" in str(error.value)
    with pytest.raises(ValueError, match="it stands in a condition"):

        @T.prim_func
        def both(A: T.Tensor((128,), T.float32)):
            with T.Kernel(4, threads=128) as bx:
                bx == 0 and iket.mark("first")
                A[bx] = T.float32(1)


def test_a_range_outside_of_a_kernel_is_an_error():
    with pytest.raises(iket.NestingError, match="'lone' stands outside of a kernel"), iket.range("lone"):
        pass


def test_a_contradiction_says_how_kernels_from_before_are_forgotten():
    iket.mark("twice", payload=1)
    with pytest.raises(ValueError, match=r"reset\(\) forgets kernels that were built before"):
        iket.mark("twice", payload=1.5)
    iket.reset()
    iket.mark("twice", payload=1.5)
