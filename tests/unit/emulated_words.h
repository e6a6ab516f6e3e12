/* SPDX-License-Identifier: Apache-2.0
 *
 * emulated_words.h - the vector types and the numbers of device text, for C: what kernels take from CUDA, and the conversions
 * that device.cuh has as instructions, to nearest even. Included by device_words.h and by the emulators, in front of device text.
 */
#ifndef RFT_TESTS_EMULATED_WORDS_H
#define RFT_TESTS_EMULATED_WORDS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RFT_FN __attribute__((unused)) static inline
#define RFT_UNROLL

typedef struct uint3 {
    unsigned x, y, z;
} uint3;
typedef struct uint2 {
    unsigned x, y;
} __attribute__((aligned(8), may_alias)) uint2;
typedef struct uint4 {
    unsigned x, y, z, w;
} __attribute__((aligned(16), may_alias)) uint4;
typedef struct float2 {
    float x, y;
} __attribute__((aligned(8), may_alias)) float2;
typedef struct float4 {
    float x, y, z, w;
} __attribute__((aligned(16), may_alias)) float4;

RFT_FN uint2 make_uint2(unsigned x, unsigned y) { return (uint2){x, y}; }
RFT_FN uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return (uint4){x, y, z, w}; }
RFT_FN float2 make_float2(float x, float y) { return (float2){x, y}; }
RFT_FN float4 make_float4(float x, float y, float z, float w) { return (float4){x, y, z, w}; }

RFT_FN unsigned __float_as_uint(float f) {
    unsigned u;
    memcpy(&u, &f, sizeof u);
    return u;
}

RFT_FN float __uint_as_float(unsigned u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Threads are fibers of one CPU thread. */
RFT_FN unsigned atomicCAS(unsigned *p, unsigned expected, unsigned value) {
    const unsigned before = *p;
    *p = before == expected ? value : before;
    return before;
}
RFT_FN void __threadfence_system(void) {}

RFT_FN float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }

/* Activations are those of the CPU, so that bits compare: test_fast_math.c has the device's. */
#ifndef RFT_TESTS_FAST_MATH
#define RFT_FAST_MATH_CUH
#endif

RFT_FN float rft__widen_f16(unsigned bits) {
    const int exponent = (int)(bits >> 10 & 31u), fraction = (int)(bits & 1023u);
    const float special = fraction ? NAN : INFINITY,
                finite = exponent ? ldexpf((float)(1024 + fraction), exponent - 25) : ldexpf((float)fraction, -24);
    return copysignf(exponent == 31 ? special : finite, bits & 0x8000u ? -1.0f : 1.0f);
}

RFT_FN unsigned narrow_f16(float value) {
    const float a = fabsf(value);
    const unsigned sign = signbit(value) ? 0x8000u : 0;
    if (!(a < 65520.0f)) {
        return sign | (isnan(value) ? 0x7e00u : 0x7c00u);
    }
    const int e = a < 0x1p-14f ? -14 : ilogbf(a);
    return sign | (((unsigned)(e + 14) << 10) + (unsigned)nearbyintf(ldexpf(a, 10 - e)));
}

RFT_FN unsigned narrow_bf16(float value) {
    const unsigned bits = __float_as_uint(value);
    return isnan(value) ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

RFT_FN unsigned rft__pair_f16(float low, float high) { return narrow_f16(low) | narrow_f16(high) << 16; }
RFT_FN unsigned rft__pair_bf16(float low, float high) { return narrow_bf16(low) | narrow_bf16(high) << 16; }

#endif
