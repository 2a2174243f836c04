# SPDX-License-Identifier: Apache-2.0
"""TIRx kernels with events, which tests compile here and capture on a GPU."""

from __future__ import annotations

from tvm_tirx.script import tirx as T

from iket_rewrite.tirx import IketProfiler

THREADS = 32
BLOCKS = 4
LONG = "a name of far more than thirty-two bytes: größe ✓"
FILLERS = 33


@T.function
def affine(A: T.Tensor((THREADS,), T.float32), B: T.Tensor((THREADS,), T.float32)):
    """The kernel of TIRx's guide."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=THREADS)):
        profiler = IketProfiler()
        tid = T.cuda.thread_idx("x")
        profiler.range_push("affine")
        value = A[tid]
        profiler.mark("loaded")
        B[tid] = T.float32(2) * value + T.float32(1)
        profiler.range_pop()


@T.function
def every_payload(
    A: T.Tensor((THREADS,), T.float32), H: T.Tensor((THREADS,), T.float16), G: T.Tensor((THREADS,), T.bfloat16)
):
    """A mark of each payload type, of the first lane's values; blocks tell themselves apart by `bx`."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=BLOCKS, block=THREADS)):
        profiler = IketProfiler()
        bx = T.cuda.block_idx("x")
        tx = T.cuda.thread_idx("x")
        profiler.range_push(LONG, bx, color=0x3366FF)
        profiler.mark("bool", bx > 0)
        profiler.mark("i8", T.cast(bx, "int8") - T.int8(8))
        profiler.mark("u8", T.cast(bx, "uint8"))
        profiler.mark("i16", T.cast(bx, "int16") - T.int16(16))
        profiler.mark("u16", T.cast(bx, "uint16"))
        profiler.mark("i32", bx - 32)
        profiler.mark("u32", T.cast(bx, "uint32"))
        profiler.mark("i64", T.cast(bx, "int64") - T.int64(1 << 40))
        profiler.mark("u64", T.cast(bx, "uint64") + T.uint64(1 << 40))
        profiler.mark("f16", H[tx])
        profiler.mark("bf16", G[tx])
        profiler.mark("f32", A[tx])
        profiler.mark("f64", T.cast(A[tx], "float64") * T.float64(0.5))
        profiler.mark("pointer", T.address_of(A[tx]))
        profiler.mark("python int", 7)
        profiler.mark("python float", 2.5)
        profiler.mark("python bool", True)
        profiler.range_pop()


@T.function
def tokens(A: T.Tensor((THREADS,), T.float32), B: T.Tensor((THREADS,), T.float32)):
    """Ranges that overlap: one with payloads at both ends, one around a loop's seam, one that never starts."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=THREADS)):
        profiler = IketProfiler()
        tx = T.cuda.thread_idx("x")
        whole: T.uint32 = profiler.range_start("whole", tx)
        step: T.uint32 = profiler.sentinel_token("step")
        never: T.uint32 = profiler.sentinel_token("never")
        for i in T.serial(4):
            profiler.range_end(step)
            B[tx] = B[tx] + A[tx] * T.cast(i, "float32")
            step = profiler.range_start("step")
            A[tx] = A[tx] + T.float32(1)
        profiler.range_end(whole, tx + 1)
        profiler.range_end(step)
        profiler.range_end(never)


@T.meta_class
class Fillers:
    """Marks "filler00", "filler01", ... that carry their index."""

    def emit(self, profiler: IketProfiler, count: int) -> None:
        for index in range(count):
            profiler.mark(f"filler{index:02}", index)


@T.function
def many(A: T.Tensor((THREADS,), T.float32), B: T.Tensor((THREADS,), T.float32)):
    """More events than NativeDump holds."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=THREADS)):
        profiler = IketProfiler()
        fillers = Fillers()
        tx = T.cuda.thread_idx("x")
        fillers.emit(profiler, FILLERS)
        B[tx] = A[tx] + T.float32(1)


@T.function
def theirs(A: T.Tensor((THREADS,), T.float32), B: T.Tensor((THREADS,), T.float32)):
    """The same interface, lowered by TIRx itself."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=THREADS)):
        profiler = IketProfiler(lowering="tirx")
        tx = T.cuda.thread_idx("x")
        profiler.range_push("affine", tx)
        token: T.uint32 = profiler.range_start("token")
        profiler.mark("loaded")
        B[tx] = T.float32(2) * A[tx] + T.float32(1)
        profiler.range_end(token)
        profiler.range_pop()


@T.function
def unannotated(A: T.Tensor((THREADS,), T.float32), B: T.Tensor((THREADS,), T.float32)):
    """No events."""
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=THREADS)):
        tx = T.cuda.thread_idx("x")
        B[tx] = A[tx] + T.float32(1)
