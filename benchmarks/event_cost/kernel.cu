// SPDX-License-Identifier: Apache-2.0
// One loop with one event and a chain of dependent multiplications; macros choose all of it.
//   FORM      how the event is emitted: a FORM_ number of forms.py, or FORM_NOTHING
//   KIND      the payload: KIND_MARKER, KIND_CONSTANT, KIND_COUNTER or KIND_COMPUTED
//   WIDTH     its bits: 32 or 64
//   CHAIN     how many dependent multiplications one turn has
// The rewriter declares the events; ID_ macros give the forms written here the ids that it chose.
#include <iket_rewrite/iket.cuh>

// Never launched: declares one event for each width.
extern "C" __global__ void declare(unsigned* out) {
  IKET_RANGE_PUSH("loop");
  IKET_MARK("marker");
  IKET_MARK("payload 32", IKET_U32(out[0]));
  IKET_MARK("payload 64", IKET_U64(out[1]));
  IKET_RANGE_POP();
}

#if WIDTH == 64
using Payload = unsigned long long;
#define OPERAND "l"
#define COPY \
  "{ .reg .b32 low, high; mov.b64 {low, high}, %2; prmt.b32 low, low, low, 0x3210; prmt.b32 high, high, high, 0x3210; " \
  "mov.b64 copy, {low, high}; }\n"
#define COPY_TYPE ".b64"
#define AT "8"
#define ID ID_64
#else
using Payload = unsigned;
#define OPERAND "r"
#define COPY "prmt.b32 copy, %2, %2, 0x3210;\n"
#define COPY_TYPE ".b32"
#define AT PAYLOAD_AT
#define ID ID_32
#endif
#define STORE_TYPE ".b" STRING(WIDTH)
#define STRING(x) STRING2(x)
#define STRING2(x) #x

#if EXTENDED
#define STAMP "mov.u32 stamp, %%globaltimer_lo;\nmov.b32 number, %0;\n"
#define TIMER "mov.u32 stamp, %%globaltimer_lo;\n"
#define EARLY_ID "lop3.b32 number, 0, %0, 0, 0xcc;\n"
#define STAMP_STORE(how) "st" how ".shared.v2.b32 [address], {stamp, number};\n"
#define PAYLOAD_AT "8"
#else
#define STAMP "mov.u32 stamp, %%globaltimer_lo;\nor.b32 stamp, stamp, %0;\n"
#define TIMER STAMP
#define EARLY_ID
#define STAMP_STORE(how) "st" how ".shared.b32 [address], stamp;\n"
#define PAYLOAD_AT "4"
#endif
#define BEGIN \
  "{\n.reg .b32 address, stamp, number, active, below;\n.reg " COPY_TYPE " copy;\n.reg .pred first;\n" \
  "mov.u32 address, %%cluster_ctarank;\nmad.lo.u32 address, address, 16777216, %1;\n"
#define END "pmevent.mask %0;\n}"
#define ELECT "activemask.b32 active;\nelect.sync _|first, active;\n"
#define LOWEST "activemask.b32 active;\nmov.u32 below, %%lanemask_lt;\nand.b32 below, below, active;\nsetp.eq.u32 first, below, 0;\n"
#define PAYLOAD_STORE(how, what) "st" how ".shared" STORE_TYPE " [address+" AT "], " what ";\n"
#define EMIT(text) asm volatile(text ::"n"(ID), "n"(OFFSET), OPERAND(payload) : "memory")

__device__ __forceinline__ void event(Payload payload) {
#if FORM == FORM_CUTE_DSL
  EMIT(BEGIN ELECT STAMP "@first " STAMP_STORE("") "@first " PAYLOAD_STORE("", "%2") END);
#elif FORM == FORM_TILELANG
  EMIT(BEGIN STAMP STAMP_STORE("") PAYLOAD_STORE(".volatile", "%2") END);
#elif FORM == FORM_ELECTED
  EMIT(BEGIN ELECT STAMP "@first " STAMP_STORE(".volatile") "@first " PAYLOAD_STORE(".volatile", "%2") END);
#elif FORM == FORM_EARLY_ID
  EMIT(BEGIN EARLY_ID ELECT TIMER "@first " STAMP_STORE(".volatile") "@first " PAYLOAD_STORE(".volatile", "%2") END);
#elif FORM == FORM_EARLY_ID_COPY
  EMIT(BEGIN EARLY_ID ELECT COPY TIMER "@first " STAMP_STORE(".volatile") "@first " PAYLOAD_STORE(".volatile", "copy") END);
#elif FORM == FORM_ELECTED_COPY
  EMIT(BEGIN ELECT COPY STAMP "@first " STAMP_STORE(".volatile") "@first " PAYLOAD_STORE(".volatile", "copy") END);
#elif FORM == FORM_LOWEST_COPY
  EMIT(BEGIN LOWEST COPY STAMP "@first " STAMP_STORE(".volatile") "@first " PAYLOAD_STORE(".volatile", "copy") END);
#elif FORM == FORM_PLAIN
  EMIT(BEGIN STAMP STAMP_STORE(".volatile") PAYLOAD_STORE(".volatile", "%2") END);
#elif FORM == FORM_PLAIN_COPY
  EMIT(BEGIN COPY STAMP STAMP_STORE(".volatile") PAYLOAD_STORE(".volatile", "copy") END);
#endif
}

__device__ __forceinline__ void marker() {
#if FORM == FORM_CUTE_DSL || FORM == FORM_TILELANG
  asm volatile(BEGIN STAMP STAMP_STORE("") END ::"n"(ID_MARKER), "n"(OFFSET) : "memory");
#elif FORM != FORM_NOTHING
  asm volatile(BEGIN STAMP STAMP_STORE(".volatile") END ::"n"(ID_MARKER), "n"(OFFSET) : "memory");
#endif
}

extern "C" __global__ void measured(float* out, unsigned turns) {
  float x = out[blockIdx.x * blockDim.x + threadIdx.x];
  IKET_RANGE_PUSH("loop");
#pragma unroll 1
  for (unsigned i = 0; i < turns; ++i) {
#if FORM == FORM_NOTHING
    asm volatile("" ::"r"(i));
#elif FORM == FORM_OURS
#if KIND == KIND_MARKER
    IKET_MARK("marker");
#elif WIDTH == 32
#if KIND == KIND_CONSTANT
    IKET_MARK("payload 32", IKET_U32(7));
#elif KIND == KIND_COUNTER
    IKET_MARK("payload 32", IKET_U32(i));
#else
    IKET_MARK("payload 32", IKET_U32(__float_as_uint(x)));
#endif
#else
#if KIND == KIND_CONSTANT
    IKET_MARK("payload 64", IKET_U64(7));
#elif KIND == KIND_COUNTER
    IKET_MARK("payload 64", IKET_U64(i));
#else
    IKET_MARK("payload 64", IKET_U64(__float_as_uint(x)));
#endif
#endif
#elif KIND == KIND_MARKER
    marker();
#elif KIND == KIND_CONSTANT
    event(7);
#elif KIND == KIND_COUNTER
    event(i);
#else
    event(__float_as_uint(x));
#endif
#pragma unroll
    for (int step = 0; step < CHAIN; ++step) x = fmaf(x, 1.0001f, 0.5f);
  }
  IKET_RANGE_POP();
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
