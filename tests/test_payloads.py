# SPDX-License-Identifier: Apache-2.0
"""What is known of a payload expression: constant, uniform over a warp, free of side effects."""

from __future__ import annotations

import pytest
from texts import plan_of

from iket_rewrite.rewriting.known_names import TYPES
from iket_rewrite.rewriting.payloads import Effects, judge

NONE, CERTAIN, UNKNOWN = Effects.NONE, Effects.CERTAIN, Effects.UNKNOWN


def steady(name: str) -> bool:
    """Take `n` and `m` for parameters that keep their value."""
    return name in ("n", "m")


@pytest.mark.parametrize(
    "expression",
    [
        "1",
        "-1",
        "1'000'000",
        "0x1p-1f/*5.000000e-01*/",
        "1.5f",
        "'a'",
        "true",
        "nullptr",
        "(1 + 2) * 3",
        "1 ? 2 : 3",
        "sizeof(int)",
        "sizeof(n++)",
        "(int64_t)-4",
        "(signed char)-8",
        "static_cast<long long>(3)",
        "std::min(1, 2)",
        "float(3)",
        "half_t(1.0f)",
        "__float2half_rn(0x1.8p+0f/*1.500000e+00*/)",
        "1 // one\n",
    ],
)
def test_an_expression_of_literals_is_constant(expression):
    verdict = judge(expression)
    assert (verdict.effects, verdict.constant, verdict.uniform) == (NONE, True, True)


@pytest.mark.parametrize(
    "expression",
    [
        "n",
        "n + m",
        "(n)",
        "-n",
        "!n",
        "n.x",
        "n.x.y",
        "blockIdx.x",
        "blockIdx.x * blockDim.x + gridDim.y",
        "warpSize",
        "((int)blockIdx.x)",
        "(int)n",
        "(cutlass::half_t)n",
        "static_cast<unsigned>(n)",
        "reinterpret_cast<std::uintptr_t>(n)",
        "std::max<int>"[:8] + "(n, m)",
        "min(n, blockIdx.x)",
        "n < m",
        "n == 3 ? 1 : m",
        "n, m",
        "n /* threadIdx.x */",
    ],
)
def test_parameters_and_the_blocks_variables_are_uniform(expression):
    verdict = judge(expression, steady)
    assert (verdict.effects, verdict.constant, verdict.uniform) == (NONE, False, True)


@pytest.mark.parametrize(
    "expression",
    [
        "i",
        "n + i",
        "threadIdx.x",
        "blockIdx.x + threadIdx.x",
        "n[0]",
        "n[m]",
        "*n",
        "&n",
        "n->x",
        "x.n",
        "::n",
        "ns::n",
        "n::m",
        "this",
        "kTile",
        '"text"',
        "((int)i)",
        "min(i, n)",
        "(unknown_t)-n",
    ],
)
def test_anything_else_may_differ_from_lane_to_lane(expression):
    verdict = judge(expression, steady)
    assert (verdict.effects, verdict.constant, verdict.uniform) == (NONE, False, False)


@pytest.mark.parametrize(
    "expression",
    [
        "i++",
        "++i",
        "i--",
        "--n",
        "i = 3",
        "i += 1",
        "f(i = 3)",
        "a[i++]",
        "n ? i++ : 0",
        "(i = 1, n)",
        "f(*p++)",
        "x.y = 1",
    ],
)
def test_an_assignment_is_a_side_effect_for_certain(expression):
    verdict = judge(expression, steady)
    assert (verdict.effects, verdict.constant, verdict.uniform) == (CERTAIN, False, False)


@pytest.mark.parametrize("expression", ["i == 3", "i <= n", "i >= n", "i != n", "i < -1", "a - -b", "a + +b"])
def test_a_comparison_is_no_assignment(expression):
    assert judge(expression).effects is NONE


@pytest.mark.parametrize(
    "expression",
    [
        "f(n)",
        "f()",
        "n.f()",
        "n->f()",
        "f(n)(m)",
        "__shfl_xor_sync(0xffffffff, n, 1)",
        "atomicAdd(p, 1)",
        "clock64()",
        # What pycparser would take for comparisons, calls or nothing at all.
        "next<1>(n)",
        "next<pack<1>>(n)",
        "next<1>{}(n)",
        "a < b && c > (d)",
        "std::get<0>(n)",
        "next< sizeof(int) > (n)",
        "(unknown_t)(n)",
        "(unknown_t)n",
        "static_cast<half_t>(f(n))",
        "static_cast<vector<int>>(n)",
        "[&] { return n; }()",
        "new int",
        "*new int(n)",
        "throw n",
        "operator()(n)",
        "n->*m",
        "a and b",
        "n <=> m",
        "co_await n",
        "({ i++; })",
        "(int){n}",
        "int{n}",
        "1_km",
        'R"(//)"[n]',
        'f(R"(" // )", i = 1)',
        'L"a\\n"[n]',
        "n +",
        "n)",
        "(n",
        "n; m",
        "",
        "/* nothing */",
        "#n",
        "a ## b",
        "@",
        "é",
        "\ud800",
        "\0",
        "n" * 5000,
        "(" * 1500 + "n" + ")" * 1500,
        "+".join(["n"] * 1500),
        "- " * 1500 + "n",
        "n?1:" * 900 + "n",
        "f(" * 800 + ")" * 800,
        "[" * 2000,
        "a[" * 900 + "n" + "]" * 900,
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_of_what_can_not_be_read_nothing_is_known(expression):
    verdict = judge(expression, steady)
    assert (verdict.effects, verdict.constant, verdict.uniform) == (UNKNOWN, False, False)


@pytest.mark.parametrize("name", sorted(name for name in TYPES if "__" not in name[2:]))
def test_names_of_cuda_types_are_read(name):
    assert judge(f"({name})n", steady).uniform
    assert judge(f"({name})(n)", steady).effects is not UNKNOWN or judge(f"{name}(n)", steady).uniform


@pytest.mark.parametrize(
    "name", ["std::size_t", "std::uint32_t", "cutlass::half_t", "std::int64_t const", "unsigned long"]
)
def test_qualified_names_of_types_are_read(name):
    assert judge(f"({name})n + static_cast<{name}>(n)", steady).uniform


def uniform(body: str, payload: str = "n", parameters: str = "int n, int m, int* p, Params s") -> bool:
    """Say whether a payload is taken for uniform behind a kernel's body."""
    text = f'__global__ void k({parameters}) {{\n{body}\nIKET_MARK("a", IKET_I32({payload}));\n}}\n'
    return plan_of(text).sites[-1].uniform


@pytest.mark.parametrize(
    "body",
    [
        "",
        "int i = n;",
        "int i = n + 1, j = n * 2;",
        "int i = blockIdx.x * n + threadIdx.x;",
        "int i = 4 * n; i = a[3] * n; i = a * b * n;",
        "for (int i = 0; i < n; ++i) { p[i] = n; p[n] = i; p[i + n] = n - 1; }",
        "if (n) { } while (n) { } switch (n) { }",
        "if (i > n && n >= 0 || !n) { }",
        "x = min(n, m) + max(m, n) + abs(n) + float(n) + (float)n + static_cast<long>(n);",
        "x = n ? 1 : 2; x = c ? n + 1 : 0; x = n == 1; x = n != m; x = n <= m;",
        "f(n + 1, n * 2, 1 - n);",
        "x = a % n / n ^ n | ~n; x = y << n; x = n << 1;",
        "return n;",
        "s.n = 3; t->n = 4; ns::n = 5; s . n++;",
        "// n = 3;\n/* n++ */ x = \"n = 3\"; c = 'n';",
        'IKET_MARK("b", IKET_I32(n)); IKETR_MARK("c", IKETR_U32(n));',
        "auto f = [=] { return n + 1; };",
        "nn = 3; n2++; $n = 1; int number = 3;",
        "m = n; m++;",
        "if (x)\n#ifdef Y\nx = n;\n#endif\n",
    ],
)
def test_a_parameter_that_is_only_read_is_uniform(body):
    assert uniform(body)


@pytest.mark.parametrize(
    "body",
    [
        "n = 3;",
        "n += 1;",
        "n <<= 1;",
        "n >>= 1;",
        "n /* c */ = 3;",
        "n++;",
        "++n;",
        "n--;",
        "-- n;",
        "(n) = 3;",
        "(n)++;",
        "(c ? n : m) = 3;",
        "int* q = &n;",
        "scanf(&n);",
        "f(n);",
        "f(1, n);",
        "f(n, 1);",
        "f(g(1), n);",
        "swap(exp, n);",
        "x.f(n);",
        "f<int>(n);",
        "f((n));",
        "f(c ? n : m);",
        "f(c ? m : n);",
        "f{n};",
        "int& r = n; r = 3;",
        "auto& r = n;",
        "auto&& r = n;",
        "const auto& r = c ? n : m;",
        "int& r(n);",
        "int& r{n};",
        "auto& [a, b] = n;",
        "for (auto& x : n) { x = 1; }",
        "{ int n = threadIdx.x; }",
        "{ int n; n2 = n; }",
        "{ int n(3); }",
        "{ int n{3}; }",
        "{ int n[3]; }",
        "{ int* n; }",
        "{ auto [n, b] = f(); }",
        "{ auto [a, n] = f(); }",
        "{ const auto& [a, n] = f(); }",
        "{ int a, n; }",
        "{ int a = f(), n; }",
        "{ vector<int> n; }",
        "{ Type<a, b> n; }",
        "{ enum { n, b }; }",
        "{ enum { a, n }; }",
        "{ struct n { }; }",
        "[](int n) { return 1; }(3);",
        "[](auto& n) { n = 1; };",
        "[](auto&& n) { n = 1; };",
        "[](int* n) { };",
        "[n] { };",
        "[&n] { };",
        "[n = 3] { };",
        "[](int a, int n) { };",
        "[&](auto& x) { x = 3; }(n);",
        "catch (int n) { }",
        'asm volatile("mov %0, 3;" : "=r"(n));',
        'asm("" :: "r"(1), "+r"(n));',
        "READ(n)",
        "cin >> n;",
        "delete[] n;",
        "#define n 3",
        'x = R"(")"; n = 3; "',
        "n.f();",
        "n();",
        "using n = int;",
        "goto n; n: ;",
        "int __attribute__((aligned(8))) n;",
    ],
)
def test_a_parameter_that_may_be_changed_hidden_or_passed_on_is_not_uniform(body):
    assert not uniform(body)


@pytest.mark.parametrize(
    ("body", "payload", "is_uniform"),
    [
        ("", "s.x", True),
        ("int i = s.y;", "s.x", True),
        ("int i = s.y[3] + s.z.w;", "s.x", True),
        ("s.y = 3;", "s.x", False),
        ("s.y.z[2]++;", "s.x", False),
        ("s.reset();", "s.x", False),
        ("s.y.reset(1);", "s.x", False),
        ("f(s.y);", "s.x", False),
        ("auto& r = s.y;", "s.x", False),
        ("for (auto& x : s.y) { }", "s.x", False),
        ("s = t;", "s.x", False),
        ("p[3] = 1; *p = 2; p->x = 3;", "(unsigned long)p", False),
        ("p[3] = 1; x = p[n]; p[i]++;", "(unsigned long)p", True),
        ("p = 0;", "(unsigned long)p", False),
        ("p += 1;", "(unsigned long)p", False),
        ("", "p[0]", False),
        ("", "unknown", False),
        ("", "k", False),
    ],
)
def test_structs_and_pointers_are_judged_by_their_parts(body, payload, is_uniform):
    assert uniform(body, payload) is is_uniform


@pytest.mark.parametrize(
    ("parameters", "is_uniform"),
    [
        ("int n", True),
        ("const int n", True),
        ("int const& x, float n", True),
        ("const __grid_constant__ Params n", True),
        ("std::array<int, 3> a, unsigned int n", True),
        ("int n = (1 < 2)", True),
        ("int /* m */ n // last\n", True),
        ("int n, int, float", True),
        ("int a = f(n)", False),
        ("n", False),
        ("", False),
        ("int nn", False),
    ],
)
def test_parameters_are_found_in_their_list(parameters, is_uniform):
    assert uniform("", parameters=parameters) is is_uniform


@pytest.mark.parametrize(
    ("define", "is_uniform"),
    [
        ("#define BUMP() n++", False),
        ("#define BUMP n = 3", False),
        ("#define LONG \\\n n++", False),
        ("#define COUNT(n) ((n) + 1)", True),
        ("#define OTHER(x) nn + s.nnn", True),
        ("#undef n", True),
    ],
)
def test_a_macro_may_change_a_parameter_out_of_sight(define, is_uniform):
    text = f'{define}\n__global__ void k(int n) {{ f(); IKET_MARK("a", IKET_I32(n)); }}'
    assert plan_of(text).sites[0].uniform is is_uniform


def test_a_parameter_of_a_kernel_is_nothing_elsewhere():
    text = '__global__ void k(int n) { }\n__device__ void f(int n) { IKET_MARK("a", IKET_I32(n)); }\n'
    assert not plan_of(text).sites[0].uniform


def test_a_kernel_without_an_end_has_no_steady_parameters():
    assert not plan_of('__global__ void k(int n) { IKET_MARK("a", IKET_I32(n));').sites[0].uniform


def test_in_a_macro_only_a_constant_is_uniform():
    text = (
        '#define A(n) IKET_MARK("a", IKET_I32(n))\n#define B() IKET_MARK("b", IKET_I32(blockIdx.x))\n'
        '#define C() IKET_MARK("c", IKET_I32(3))\n__global__ void k(int n) { A(threadIdx.x); }\n'
    )
    assert [site.uniform for site in plan_of(text).sites] == [False, False, True]


def test_a_payload_of_our_own_token_is_judged_like_any_other():
    from iket_rewrite import encode_event

    text = f'__global__ void k(int n) {{ IKET_EVENT("{encode_event("mark", "a", payload="i32")}", n); }}'
    assert plan_of(text).sites[0].uniform
