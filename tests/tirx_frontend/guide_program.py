# The program of TIRx's public IKET guide (Apache TVM, Apache-2.0), with its lines that import iket changed.
import torch
from tvm_tirx.script import tirx as T

from iket_rewrite import tirx as iket
from iket_rewrite.tirx import IketProfiler


@T.function
def profiled_affine(A: T.Tensor((32,), T.float32), B: T.Tensor((32,), T.float32)):
    with T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=32)):
        profiler = IketProfiler()
        tid = T.cuda.thread_idx("x")
        profiler.range_push("affine")
        value = A[tid]
        profiler.mark("loaded")
        B[tid] = T.float32(2) * value + T.float32(1)
        profiler.range_pop()


def workload():
    compiled = IketProfiler().compile(profiled_affine, target="cuda")
    a = torch.arange(32, dtype=torch.float32, device="cuda")
    b = torch.empty_like(a)
    compiled(a, b)
    torch.cuda.synchronize()
    torch.testing.assert_close(b, 2 * a + 1)


if __name__ == "__main__":
    result = iket.run(workload, output_dir="iket_affine_trace", postprocess="all")
    print(result.trace_json)
    print(result.perfetto)
    print(result.html)
