/* SPDX-License-Identifier: Apache-2.0
 *
 * device_words.h - what device text without barriers needs to be C: included before it, in place of device.cuh. So a test runs
 * the text that NVRTC compiles and compares bits.
 */
#ifndef RFT_TESTS_DEVICE_WORDS_H
#define RFT_TESTS_DEVICE_WORDS_H

#include "cuda/kernels/cuda_args.h"
#include "format/format.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define RFT_DEVICE_CUH
#define RFT_FN __attribute__((unused)) static inline
#define RFT_UNROLL

typedef struct uint2 {
    unsigned x, y;
} __attribute__((aligned(8), may_alias)) uint2;
typedef struct uint4 {
    unsigned x, y, z, w;
} __attribute__((aligned(16), may_alias)) uint4;

RFT_FN uint2 make_uint2(unsigned x, unsigned y) { return (uint2){x, y}; }
RFT_FN uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return (uint4){x, y, z, w}; }

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

RFT_FN float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }

static unsigned reciprocal_off; /* ulps by which the reciprocal is wrong, as the device's may be */
RFT_FN float rft__reciprocal(float x) { return __uint_as_float(__float_as_uint(1.0f / x) + reciprocal_off); }

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

RFT_FN unsigned rft__pair_f16(float low, float high) { return narrow_f16(low) | narrow_f16(high) << 16; }

RFT_FN unsigned rft__pair_bf16(float low, float high) {
    return rft__bf16_from_f32(low) | (unsigned)rft__bf16_from_f32(high) << 16;
}

#endif
