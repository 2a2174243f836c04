# SPDX-License-Identifier: Apache-2.0
"""The source of the ptxas matrix: every form in which the product writes an event, in every kind of code around it."""

from __future__ import annotations

import functools

import iket_rewrite

#: The type, what its macro takes where lanes differ, and where they do not.
PAYLOADS = {
    "BOOL": ("(x & 1u) != 0u", "n != 0u"),
    "I8": ("x", "-7"),
    "U8": ("x + 1u", "200"),
    "I16": ("x * 3u", "n"),
    "U16": ("x ^ n", "blockIdx.x"),
    "I32": ("x - n", "-70000"),
    "U32": ("x", "gridDim.x"),
    "I64": ("-5LL * x", "1LL << 40"),
    "U64": ("x * 0x9E3779B97F4A7C15ull", "n * 3ull"),
    "F16": ("static_cast<float>(x & 255u)", "0.5f"),
    "BF16": ("static_cast<float>(x & 127u)", "2.0f"),
    "F32": ("f", "1.5f"),
    "F64": ("static_cast<double>(f)", "0.1"),
    "PTR": ("data + x % 64u", "data"),
}
KERNEL = """
extern "C" __global__ void {bounds}{name}(unsigned* data, unsigned n) {{
  unsigned x = data[threadIdx.x];
  float f = static_cast<float>(x) * 0.25f;
{body}
  data[threadIdx.x] = x + static_cast<unsigned>(f);
}}
"""
WORK = "x = x * 5u + 1u; f = f * 1.5f + 2.0f;"
#: Names of events that every kernel uses; a range, a scoped one and a token range, with a payload and without.
RANGES = """IKET_RANGE_PUSH("pushed"); {work}
  IKET_RANGE_PUSH("pushed value", IKET_U32(x)); {work}
  data[x % 32u] = x;
  IKET_RANGE_POP();
  IKET_RANGE_START("span"); {work} IKET_RANGE_START("span value", IKET_U64(x));
  data[x % 16u] += n;
  IKET_RANGE_END("span"); {work} IKET_RANGE_END("span value", IKET_U64(x));
  IKET_RANGE_POP();
  {{ IKET_RANGE("scoped", IKET_F32(f)); {work} data[x % 8u] = n; if (x == 77u) return; IKET_MARK("plain"); }}"""
SHARED = "tile[threadIdx.x % 256u] = x; __syncthreads(); x += tile[(x + 1u) % 256u]; __syncthreads();"


def marks(types: tuple[str, ...] = tuple(PAYLOADS), *, between: str = WORK, both: bool = True) -> str:
    """Return marks of these types, elected ones and uniform ones."""
    lines = []
    for name in types:
        lane, uniform = PAYLOADS[name]
        lines.append(f'  IKET_MARK("{name}", IKET_{name}({lane})); {between}')
        lines += [f'  IKET_MARK("{name}", IKET_{name}({uniform})); {between}'] if both else []
    return "\n".join(lines)


def _bodies() -> dict[str, str]:
    ranges = RANGES.format(work=WORK)
    some = ("I8", "U16", "U32", "I64", "F32")
    counter = 'IKET_MARK("counter", IKET_I32(i));'
    live = "".join(f"  float r{i} = data[(threadIdx.x + {i}u) % n];\n" for i in range(40))
    used = "".join(f"  f += r{i} * f;\n" for i in range(40))
    changed = "".join(f"  r{i} = r{i} * f + {i}.0f;\n" for i in range(40))
    divergent = f"if (x & 1u) {{\n{marks(some, both=False)}\n}} else {{\n  {ranges}\n}}\n"
    return {
        "straight": marks() + "\n" + ranges,
        "loop": f"#pragma unroll 1\nfor (unsigned i = 0; i < n; ++i) {{\n{counter}\n{marks(both=False)}\n}}\n{ranges}",
        "unrolled": f"#pragma unroll\nfor (unsigned i = 0; i < 4; ++i) {{\n{counter}\n{marks(some)}\n}}\n{ranges}",
        "divergent": divergent + "for (unsigned i = 0; i < x % 5u; ++i) { " + counter + WORK + " }",
        "shared": f"__shared__ unsigned tile[256];\n{marks(between=SHARED, both=False)}\n{ranges}",
        "pressure": f"{live}{changed}{marks(some)}\n{changed}{ranges}\n{used}",
        "spilled": f"{live}{changed}{marks(some)}\n{changed}{ranges}\n{used}",
    }


@functools.cache
def module(method: str) -> iket_rewrite.Rewrite:
    """Return the rewritten module."""
    # 64 registers, and 32: fewer than the values that live there.
    bounds = {"pressure": "__launch_bounds__(1024) ", "spilled": "__launch_bounds__(1024, 2) "}
    text = "#include <iket_rewrite/iket.cuh>\n" + "".join(
        KERNEL.format(name=name, body=body, bounds=bounds.get(name, "")) for name, body in _bodies().items()
    )
    return iket_rewrite.rewrite(text, method=method)
