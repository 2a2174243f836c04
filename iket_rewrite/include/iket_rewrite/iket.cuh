// SPDX-License-Identifier: Apache-2.0
//
// Annotations for iket-rewrite, and nothing else: without the rewriter every macro below is an expression statement
// that evaluates nothing and generates nothing. A payload is named in a branch that is never taken, so that it is
// type-checked, its variables count as used, and a lambda captures the same whether annotations are on or off. (An
// unevaluated operand would not do: nvcc does not count the variables in it as used.)
//
//   IKET_MARK("name"[, payload])          an instant
//   IKET_RANGE("name"[, payload])         a range that ends when its block is left, on whatever path
//   IKET_RANGE_PUSH("name"[, payload])    a range on the warp's stack ...
//   IKET_RANGE_POP()                      ... and its end
//   IKET_RANGE_START("name"[, payload])   a range that need not nest ...
//   IKET_RANGE_END("name"[, payload])     ... and its end
//
// A name is a string literal. A payload is IKET_BOOL(b), IKET_I8(x) ... IKET_U64(x), IKET_F16(x), IKET_BF16(x),
// IKET_F32(x), IKET_F64(x), IKET_PTR(p), or a bare literal: an integer is i32, a floating one f32. A last argument
// IKET_COLOR(0xRRGGBB) gives a range its colour. IKET_EVENT("token"[, payload]) is for code generators.
//
// Each macro has a second name that starts with IKETR_ instead of IKET_. Define IKETR_ONLY before this header where
// the first names are taken.
#ifndef IKETR_IKET_CUH
#define IKETR_IKET_CUH

#if !defined(IKETR_ONLY) && (defined(IKET_MARK) || defined(IKET_RANGE) || defined(IKET_EVENT))
#error "IKET_MARK, IKET_RANGE or IKET_EVENT is a macro already: define IKETR_ONLY and use the names IKETR_MARK(...) ..."
#endif

#if defined(__CUDACC__)
#define IKETR_ANYWHERE __host__ __device__
#else
#define IKETR_ANYWHERE
#endif
// By value: device code may use the value of a host constant, but not its address.
template <typename... T> IKETR_ANYWHERE constexpr bool iketr_named(T...) { return true; }
template <typename T> IKETR_ANYWHERE constexpr bool iketr_pointer(T*) { return true; }
IKETR_ANYWHERE constexpr bool iketr_pointer(decltype(nullptr)) { return true; }

#define IKETR_NOTHING ((void)0)
#define IKETR_NAMED(...) (false ? (void)iketr_named(__VA_ARGS__) : (void)0)

#define IKETR_MARK(...) IKETR_NAMED(__VA_ARGS__)
#define IKETR_RANGE(...) IKETR_NAMED(__VA_ARGS__)
#define IKETR_RANGE_PUSH(...) IKETR_NAMED(__VA_ARGS__)
#define IKETR_RANGE_POP() IKETR_NOTHING
#define IKETR_RANGE_START(...) IKETR_NAMED(__VA_ARGS__)
#define IKETR_RANGE_END(...) IKETR_NAMED(__VA_ARGS__)
#define IKETR_EVENT(...) IKETR_NAMED(__VA_ARGS__)

#define IKETR_BOOL(...) static_cast<bool>(__VA_ARGS__)
#define IKETR_I8(...) static_cast<signed char>(__VA_ARGS__)
#define IKETR_U8(...) static_cast<unsigned char>(__VA_ARGS__)
#define IKETR_I16(...) static_cast<short>(__VA_ARGS__)
#define IKETR_U16(...) static_cast<unsigned short>(__VA_ARGS__)
#define IKETR_I32(...) static_cast<int>(__VA_ARGS__)
#define IKETR_U32(...) static_cast<unsigned>(__VA_ARGS__)
#define IKETR_I64(...) static_cast<long long>(__VA_ARGS__)
#define IKETR_U64(...) static_cast<unsigned long long>(__VA_ARGS__)
#define IKETR_F32(...) static_cast<float>(__VA_ARGS__)
#define IKETR_F64(...) static_cast<double>(__VA_ARGS__)
// These two take the bits of any two-byte type, and convert anything else by way of float.
#define IKETR_F16(...) (__VA_ARGS__)
#define IKETR_BF16(...) (__VA_ARGS__)
#define IKETR_PTR(...) iketr_pointer((__VA_ARGS__))
#define IKETR_COLOR(rgb) (rgb)

#if !defined(IKETR_ONLY)
#define IKET_MARK(...) IKETR_MARK(__VA_ARGS__)
#define IKET_RANGE(...) IKETR_RANGE(__VA_ARGS__)
#define IKET_RANGE_PUSH(...) IKETR_RANGE_PUSH(__VA_ARGS__)
#define IKET_RANGE_POP() IKETR_RANGE_POP()
#define IKET_RANGE_START(...) IKETR_RANGE_START(__VA_ARGS__)
#define IKET_RANGE_END(...) IKETR_RANGE_END(__VA_ARGS__)
#define IKET_EVENT(...) IKETR_EVENT(__VA_ARGS__)
#define IKET_BOOL(...) IKETR_BOOL(__VA_ARGS__)
#define IKET_I8(...) IKETR_I8(__VA_ARGS__)
#define IKET_U8(...) IKETR_U8(__VA_ARGS__)
#define IKET_I16(...) IKETR_I16(__VA_ARGS__)
#define IKET_U16(...) IKETR_U16(__VA_ARGS__)
#define IKET_I32(...) IKETR_I32(__VA_ARGS__)
#define IKET_U32(...) IKETR_U32(__VA_ARGS__)
#define IKET_I64(...) IKETR_I64(__VA_ARGS__)
#define IKET_U64(...) IKETR_U64(__VA_ARGS__)
#define IKET_F32(...) IKETR_F32(__VA_ARGS__)
#define IKET_F64(...) IKETR_F64(__VA_ARGS__)
#define IKET_F16(...) IKETR_F16(__VA_ARGS__)
#define IKET_BF16(...) IKETR_BF16(__VA_ARGS__)
#define IKET_PTR(...) IKETR_PTR(__VA_ARGS__)
#define IKET_COLOR(rgb) IKETR_COLOR(rgb)
#endif

#endif  // IKETR_IKET_CUH
