# SPDX-License-Identifier: Apache-2.0
"""Write a module as annotated CUDA C++."""

from __future__ import annotations

from typing import Any

from generated import language as L
from generated.interpreting import INPUT_WORDS

import iket_rewrite

PREAMBLE = """#include <iket_rewrite/iket.cuh>
"""
#: What every function knows.
PARAMETERS = "const unsigned* in, unsigned* tile, unsigned& acc, unsigned& alive, unsigned lane, unsigned warp, "
PARAMETERS += "unsigned block, unsigned n"
ARGUMENTS = "in, tile, acc, alive, lane, warp, block, n"
KERNEL = """extern "C" __global__ void {name}(const unsigned* in, unsigned* out, unsigned n) {{
  __shared__ unsigned tiles[{threads}];
  unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, block = blockIdx.x, alive = 0xFFFFFFFFu;
  unsigned* tile = tiles + 32 * warp;
  unsigned acc = threadIdx.x * 7 + block + 1;
  tile[lane] = 0;
  __syncwarp();
  struct Store {{
    unsigned* to; unsigned& value;
    __device__ ~Store() {{ *to = value; }}
  }} store{{out + blockIdx.x * blockDim.x + threadIdx.x, acc}};
{body}}}
"""
_PAYLOADS = {
    "bool": "(({0}) & 4u) != 0",
    "i64": "static_cast<long long>(static_cast<int>({0})) * 3000000007LL",
    "u64": "({0}) * 0x9E3779B97F4A7C15ull",
    "f32": "static_cast<float>({0})",
    "f64": "({0}) * 0.37",
    "f16": "static_cast<float>(({0}) & 0x3FFFu) * 0.25f",
    "bf16": "static_cast<float>(({0}) & 0xFFFFFu) * 0.5f",
    "pointer": f"in + ({{0}}) % {INPUT_WORDS}u",
}
_MACROS = {"mark": "MARK", "push": "RANGE_PUSH", "start": "RANGE_START", "end": "RANGE_END", "scope": "RANGE"}
_KINDS = {"mark": "mark", "push": "range_push", "start": "range_start", "end": "range_end"}


def source(module: L.Module) -> str:
    """Return the text of a module."""
    return PREAMBLE + "".join(_program(program) for program in module.programs)


def _program(program: L.Program) -> str:
    functions: list[str] = []
    body = _body(program.body, 1, functions)
    return "".join(functions) + KERNEL.format(name=program.name, threads=32 * program.warps, body=body)


def value_text(value: L.Value) -> str:
    """Return a value as an expression of type unsigned."""
    if value.operator == "number":
        return f"{value.operands[0]}u"
    if value.operator == "name":
        return str(value.operands[0])
    left, right = map(value_text, value.operands)
    return f"({left} {value.operator} {right})"


def _site(action: str, site: L.Site) -> str:
    event = site.event
    payload = None
    if event.payload is not None:
        assert site.value is not None
        payload = _PAYLOADS.get(event.payload, "{0}").format(value_text(site.value))
    if event.form == "token" and action in _KINDS:
        token = iket_rewrite.encode_event(_KINDS[action], event.name, payload=event.payload, color=event.color)
        return f'IKET_EVENT("{token}"{", " + payload if payload else ""});'
    prefix = "IKETR" if event.form == "second" else "IKET"
    name = event.name.replace("\\", "\\\\").replace('"', '\\"')
    arguments = [f'"{name}"']
    if payload:
        macro = {"pointer": "PTR"}.get(event.payload or "", (event.payload or "").upper())
        arguments.append(f"{prefix}_{macro}({payload})")
    if event.color is not None:
        arguments.append(f"{prefix}_COLOR({event.color:#x})")
    return f"{prefix}_{_MACROS[action]}({', '.join(arguments)});"


def _body(body: tuple[Any, ...], depth: int, functions: list[str]) -> str:
    margin = "  " * depth
    return "".join(f"{margin}{line}\n" for statement in body for line in _lines(statement, functions))


def _block(body: tuple[Any, ...], functions: list[str]) -> list[str]:
    return [*_body(body, 1, functions).splitlines(), "}"]


def _lines(statement: Any, functions: list[str]) -> list[str]:
    match statement:
        case L.Mark(site):
            return [_site("mark", site)]
        case L.Push(site):
            return [_site("push", site)]
        case L.Start(site):
            return [_site("start", site)]
        case L.End(site):
            return [_site("end", site)]
        case L.Pop("token"):
            return [f'IKET_EVENT("{iket_rewrite.encode_event("range_pop")}");']
        case L.Pop():
            return ["IKET_RANGE_POP();"]
        case L.Scoped(site, body):
            return ["{", f"  {_site('scope', site)}", *_block(body, functions)]
        case L.Mix(value):
            return [f"acc = {value_text(value)};"]
        case L.Load(value):
            return [f"acc ^= in[{value_text(value)} % {INPUT_WORDS}u];"]
        case L.Exchange(distance):
            return [
                "tile[lane] = acc;",
                "__syncwarp(alive);",
                f"acc += tile[lane ^ {distance}];",
                "__syncwarp(alive);",
            ]
        case L.LanesReturn(first):
            return [f"if (lane >= {first}u) return;", f"alive &= {(1 << first) - 1:#x}u;"]
        case L.Leave(how):
            return [f"{how};"]
    return _branching_lines(statement, functions)


def _branching_lines(statement: Any, functions: list[str]) -> list[str]:
    match statement:
        case L.If(condition, then, otherwise):
            return _if(condition, then, otherwise, functions)
        case L.Divide(condition, then, otherwise):
            return [*_if(condition, then, otherwise, functions), "__syncwarp(alive);"]
        case L.Loop(variable, rounds, unroll, body, diverging):
            pragma = {0: [], -1: ["#pragma unroll"]}.get(unroll, [f"#pragma unroll {unroll}"])
            # The number of rounds is that at the beginning.
            bound = f"{variable}_end"
            return [
                "{",
                f"  unsigned {bound} = {value_text(rounds)};",
                *pragma,
                f"  for (unsigned {variable} = 0; {variable} < {bound}; ++{variable}) {{",
                *_block(body, functions),
                *(["__syncwarp(alive);"] if diverging else []),
                "}",
            ]
        case L.Switch(value, bodies):
            lines = [f"if (unsigned chosen = {value_text(value)} % {len(bodies)}u; chosen == 0) {{"]
            for index, body in enumerate(bodies):
                lines += _block(body, functions)
                if index + 1 < len(bodies):
                    lines[-1] = f"}} else if (chosen == {index + 1}) {{"
            return lines
        case L.Call(name, inlined, body):
            how = "__forceinline__" if inlined else "__noinline__"
            text = _body(body, 1, functions)
            functions.append(f"static __device__ {how} void {name}({PARAMETERS}) {{\n{text}}}\n")
            return [f"{name}({ARGUMENTS});"]
    raise AssertionError(statement)


def _if(condition: L.Value, then: tuple[Any, ...], otherwise: tuple[Any, ...], functions: list[str]) -> list[str]:
    lines = [f"if ({value_text(condition)}) {{", *_block(then, functions)]
    if otherwise:
        lines[-1] = "} else {"
        lines += _block(otherwise, functions)
    return lines
