# SPDX-License-Identifier: Apache-2.0
"""When did each warp of an ordinary kernel begin and end?  No annotation is needed: PyTorch's own kernels show it.

Run: python examples/capture/warp_lifetimes.py
"""

from __future__ import annotations

import torch

import iket_rewrite


def main() -> None:
    """Capture a softmax and a sum."""
    a = torch.randn(1024, 1024, device="cuda", dtype=torch.float16)
    torch.softmax(a, dim=1).sum()
    torch.cuda.synchronize()
    with iket_rewrite.capture(warp_lifetimes_only=True) as captured:
        torch.softmax(a, dim=1).sum()
        torch.cuda.synchronize()
    trace = captured.trace
    for launch, kernel in enumerate(trace.launches.kernel):
        warps = trace.launches.warps_of(launch)
        began, ended = trace.warps.start_ns[warps], trace.warps.end_ns[warps]
        lived = ended - began
        print(f"{kernel[:60]:60} {len(lived):6} warps, {ended.max() - began.min():7} ns in all")
        late = began.max() - began.min()
        print(f"{'':60} a warp lives {lived.min()} to {lived.max()} ns; the last begins {late} ns after the first")


if __name__ == "__main__":
    main()
