# SPDX-License-Identifier: Apache-2.0
"""Annotated TileLang kernels that tests lower, compile, and launch on a GPU."""

from __future__ import annotations

import math

import tilelang.language as T
from tvm import IRModule

from iket_rewrite import tilelang as iket

THREADS = 128
LONG_NAME = "a name of more than thirty-two bytes, größer als 32 Byte ✓"
FORTY = [(number, f"mark {number:02}") for number in range(40)]
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
#: Type of a payload as TileLang calls it, with what `iket_rewrite` and IKET call it.
PAYLOADS = {
    "bool": ("bool", 2),
    "int8": ("i8", 1),
    "uint8": ("u8", 2),
    "int16": ("i16", 3),
    "uint16": ("u16", 4),
    "int32": ("i32", 5),
    "uint32": ("u32", 6),
    "int64": ("i64", 7),
    "uint64": ("u64", 16),
    "float16": ("f16", 11),
    "bfloat16": ("bf16", 12),
    "float32": ("f32", 13),
    "float64": ("f64", 14),
    "handle": ("pointer", 15),
}


def mark_all(events, module=iket) -> None:
    """Mark several events: a function of the program that a kernel calls while it is built."""
    for name, payload in events:
        T.evaluate(module.mark(name, payload=payload))


def elementwise(n: int = 1000):
    """A range around the block with its index, marks with and without payloads of each thread's element."""

    @T.prim_func
    def elementwise(A: T.Tensor((n,), T.float32), B: T.Tensor((n,), T.float32), C: T.Tensor((n,), T.float32)):
        with T.Kernel(T.ceildiv(n, THREADS), threads=THREADS) as bx:
            with iket.range("block", payload=iket.payload(bx, dtype="int32"), color=0x3366FF):
                for tx in T.Parallel(THREADS):
                    i = bx * THREADS + tx
                    if i < n:
                        iket.mark(LONG_NAME)
                        iket.mark("index", payload=i)
                        C[i] = A[i] + B[i]
                        iket.mark("sum", payload=A[i] + B[i])

    return elementwise


def gemm(m: int = 256, n: int = 256, k: int = 256, tile: int = 128, step: int = 32):
    """A software-pipelined matrix product, which TileLang splits into producer and consumer warps on sm_90a."""
    columns = math.ceil(n / tile)

    @T.prim_func
    def gemm(A: T.Tensor((m, k), T.float16), B: T.Tensor((k, n), T.float16), C: T.Tensor((m, n), T.float32)):
        with T.Kernel(T.ceildiv(n, tile), T.ceildiv(m, tile), threads=THREADS) as (bx, by):
            a = T.alloc_shared((tile, step), T.float16)
            b = T.alloc_shared((step, tile), T.float16)
            c = T.alloc_fragment((tile, tile), T.float32)
            iket.mark("tile", payload=iket.payload(by * columns + bx, dtype="int32"))
            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(k, step), num_stages=3):
                with iket.range("copy", payload=iket.payload(ko, dtype="int32")):
                    T.copy(A[by * tile, ko * step], a)
                    T.copy(B[ko * step, bx * tile], b)
                with iket.range("gemm", payload=iket.payload(ko, dtype="int64")):
                    T.gemm(a, b, c)
            with iket.range("store", payload=iket.payload(bx, dtype="uint16")):
                T.copy(c, C[by * tile, bx * tile])

    return gemm


def attention(heads: int = 2, length: int = 256, size: int = 64, rows: int = 64, columns: int = 64):
    """FlashAttention in its usual form: scores, online softmax, values, with a range around each."""
    scale = 1.4426950408889634 / math.sqrt(size)

    @T.prim_func
    def attention(
        Q: T.Tensor((length, heads, size), T.float16),
        K: T.Tensor((length, heads, size), T.float16),
        V: T.Tensor((length, heads, size), T.float16),
        O: T.Tensor((length, heads, size), T.float16),  # noqa: E741
    ):
        with T.Kernel(T.ceildiv(length, rows), heads, threads=THREADS) as (bx, by):
            q = T.alloc_shared((rows, size), T.float16)
            keys = T.alloc_shared((columns, size), T.float16)
            values = T.alloc_shared((columns, size), T.float16)
            scores = T.alloc_fragment((rows, columns), T.float32)
            weights = T.alloc_fragment((rows, columns), T.float16)
            out = T.alloc_fragment((rows, size), T.float32)
            top = T.alloc_fragment((rows,), T.float32)
            top_before = T.alloc_fragment((rows,), T.float32)
            factor = T.alloc_fragment((rows,), T.float32)
            row_sum = T.alloc_fragment((rows,), T.float32)
            total = T.alloc_fragment((rows,), T.float32)
            T.copy(Q[bx * rows : (bx + 1) * rows, by, :], q)
            T.fill(out, 0)
            T.fill(total, 0)
            T.fill(top, -T.infinity(T.float32))
            for k in T.Pipelined(T.ceildiv(length, columns), num_stages=2):
                with iket.range("scores", payload=iket.payload(k, dtype="uint8")):
                    T.copy(K[k * columns : (k + 1) * columns, by, :], keys)
                    T.clear(scores)
                    T.gemm(q, keys, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                with iket.range("softmax", payload=iket.payload(k * columns, dtype="int32")):
                    T.copy(top, top_before)
                    T.fill(top, -T.infinity(T.float32))
                    T.reduce_max(scores, top, dim=1, clear=False)
                    for i in T.Parallel(rows):
                        top[i] = T.max(top[i], top_before[i])
                        factor[i] = T.exp2(top_before[i] * scale - top[i] * scale)
                    for i, j in T.Parallel(rows, columns):
                        scores[i, j] = T.exp2(scores[i, j] * scale - top[i] * scale)
                    T.reduce_sum(scores, row_sum, dim=1)
                    for i in T.Parallel(rows):
                        total[i] = total[i] * factor[i] + row_sum[i]
                    T.copy(scores, weights)
                    for i, j in T.Parallel(rows, size):
                        out[i, j] *= factor[i]
                with iket.range("values", payload=iket.payload(by, dtype="int16")):
                    T.copy(V[k * columns : (k + 1) * columns, by, :], values)
                    T.gemm(weights, values, out, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(rows, size):
                out[i, j] /= total[i]
            T.copy(out, O[bx * rows : (bx + 1) * rows, by, :])
            iket.mark("done")

    return attention


def every_payload(n: int = 256):
    """A mark for each payload type, with a value of that type that differs between blocks and that nobody writes."""

    @T.prim_func
    def every_payload(
        A: T.Tensor((n,), T.float32),
        H: T.Tensor((n,), T.float16),
        G: T.Tensor((n,), T.bfloat16),
        C: T.Tensor((n,), T.float32),
    ):
        with T.Kernel(n // THREADS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            i = bx * THREADS + tx
            iket.mark("bool", payload=iket.payload(bx > 0, dtype="bool"))
            mark_all([(name, iket.payload(bx + 1, dtype=name)) for name in INTEGERS])
            iket.mark("float16", payload=H[bx])
            iket.mark("bfloat16", payload=G[bx])
            iket.mark("float32", payload=A[bx])
            iket.mark("float64", payload=iket.payload(A[bx], dtype="float64"))
            iket.mark("handle", payload=T.address_of(A[bx]))
            C[i] = A[i] + T.float32(1)

    return every_payload


def tokens(n: int = 256):
    """Two token ranges that overlap, with payloads at both ends, around a push/pop range."""

    @T.prim_func
    def tokens(A: T.Tensor((n,), T.float32)):
        with T.Kernel(n // THREADS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            iket.token_start("first", payload=bx)
            iket.token_start("second", color=0xFF0000)
            iket.range_push("nested", payload=iket.payload(2.5, dtype="float64"))
            A[bx * THREADS + tx] = A[bx * THREADS + tx] * T.float32(2)
            iket.range_pop("nested")
            iket.token_end("first", payload=bx + 7)
            A[bx * THREADS + tx] = A[bx * THREADS + tx] + T.float32(1)
            iket.token_end("second")

    return tokens


def forty(n: int = 256, module=iket):
    """Forty marks, each with its own number and the block's; `module` is whose annotations they are."""

    @T.prim_func
    def forty(A: T.Tensor((n,), T.float32)):
        with T.Kernel(n // THREADS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            mark_all([(name, module.payload(bx * 100 + number, dtype="int32")) for number, name in FORTY], module)
            A[bx * THREADS + tx] = A[bx * THREADS + tx] + T.float32(1)

    return forty


def plain(n: int = 256):
    """No annotation."""

    @T.prim_func
    def plain(A: T.Tensor((n,), T.float32)):
        with T.Kernel(n // THREADS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            A[bx * THREADS + tx] = A[bx * THREADS + tx] + T.float32(1)

    return plain


def small(name: str = "small", payload: int | None = 3, module=iket):
    """One mark; the kernel's shape is always the same."""

    @T.prim_func
    def small(A: T.Tensor((THREADS,), T.float32)):
        with T.Kernel(1, threads=THREADS) as _:
            tx = T.get_thread_binding(0)
            module.mark(name, payload=payload)
            A[tx] = A[tx] + T.float32(1)

    return small


def narrowed(n: int = 256):
    """One mark with a 64-bit value that fits 32 bits, which TileLang computes in 32."""

    @T.prim_func
    def narrowed(A: T.Tensor((n,), T.float32)):
        with T.Kernel(n // THREADS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            iket.mark("narrowed", payload=T.cast(bx, "int64") * 2 + 1)
            A[bx * THREADS + tx] = A[bx * THREADS + tx] + T.float32(1)

    return narrowed


def two_kernels(n: int = 256) -> IRModule:
    """Two kernels of one module that share a range and a mark."""

    @T.prim_func
    def scale(A: T.Tensor((n,), T.float32)):
        with T.Kernel(n // THREADS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            with iket.range("body"):
                A[bx * THREADS + tx] = A[bx * THREADS + tx] * T.float32(2)
            iket.mark("shared", payload=bx)

    @T.prim_func
    def shift(A: T.Tensor((n,), T.float32)):
        with T.Kernel(n // THREADS, threads=THREADS) as bx:
            tx = T.get_thread_binding(0)
            iket.mark("shared", payload=bx + 1)
            with iket.range("body"), iket.range("inner"):
                A[bx * THREADS + tx] = A[bx * THREADS + tx] + T.float32(1)

    return IRModule({"scale": scale, "shift": shift})
