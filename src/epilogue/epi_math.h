/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_math.h - the functions of epi_ops.def in f32: branch-free, no tables, no library, so that the C compilers vectorise
 * them at every width and NVRTC compiles the same text. Compile without contraction (-ffp-contract=off, --fmad=false):
 * then every device gives the same bits. Coefficients are minimax fits of relative error made for this file.
 *
 * NaN in gives NaN out; the clamps are written so that a NaN passes. Errors over all exponents, against f64
 * (tests/unit/test_epi_math.c asserts them):
 *     exp 1 ulp; tanh, erf, sigmoid 3 ulp (sigmoid is 0 below -88.7); silu 3 ulp or 2^-120; gelu, gelu_tanh 6 * 2^-24 * |y|
 */
#ifndef RFT_EPILOGUE_EPI_MATH_H
#define RFT_EPILOGUE_EPI_MATH_H

#ifndef RFT_FN
#define RFT_FN static inline
#endif

RFT_FN float rft__as_float(unsigned bits) {
    union { unsigned u; float f; } v;
    v.u = bits;
    return v.f;
}

RFT_FN unsigned rft__as_bits(float value) {
    union { float f; unsigned u; } v;
    v.f = value;
    return v.u;
}

RFT_FN float rft__clamp(float x, float low, float high) {
    x = low > x ? low : x;
    return high < x ? high : x;
}

/* exp(x) = 2^n exp(r), |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds x / ln 2 to n and leaves n in the low bits; ln 2 is split
 * so that n * high is exact. 2^n goes in as two factors, so that denormal results round once and large ones overflow. */
RFT_FN float rft__exp(float x) {
    const float shift = 12582912.0f;
    x = rft__clamp(x, -104.0f, 89.0f);
    const float t = x * 1.44269504f + shift, n = t - shift;
    const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    const float p = (((((1.40612514e-3f * r + 8.37901143e-3f) * r + 4.16647771e-2f) * r + 1.66663654e-1f) * r + 0.5f) * r + 1.0f) * r + 1.0f;
    const unsigned biased = rft__as_bits(t) - rft__as_bits(shift) + 254u, half = biased >> 1;
    return p * rft__as_float(half << 23) * rft__as_float((biased - half) << 23);
}

RFT_FN float rft__copysign(float magnitude, float sign) {
    return rft__as_float((rft__as_bits(magnitude) & 0x7fffffffu) | (rft__as_bits(sign) & 0x80000000u));
}

/* 1 - 2 / (1 + exp(2 |x|)), and where that would cancel an odd polynomial. */
RFT_FN float rft__tanh(float x) {
    const float a = rft__copysign(x, 1.0f), u = x * x;
    const float p = (((-6.61037864e-3f * u + 2.13094803e-2f) * u - 5.39094462e-2f) * u + 1.33331138e-1f) * u - 3.33333320e-1f;
    const float small = x * (u * p + 1.0f), large = rft__copysign(1.0f - 2.0f / (1.0f + rft__exp(2.0f * a)), x);
    return a < 0.55f ? small : large;
}

/* x P(x^2) / Q(x^2); all coefficients are positive, so nothing cancels. From 3.93 on the result is exactly 1, which gelu needs. */
RFT_FN float rft__erf(float x) {
    x = rft__clamp(x, -3.93f, 3.93f);
    const float u = x * x;
    const float p = ((((2.04199318e-6f * u + 2.84808484e-4f) * u + 3.77961132e-3f) * u + 5.27902991e-2f) * u + 1.90783873e-1f) * u + 1.12837911f;
    const float q = ((((3.80041420e-5f * u + 1.16521318e-3f) * u + 1.49974404e-2f) * u + 1.14257537e-1f) * u + 5.02410531e-1f) * u + 1.0f;
    return rft__clamp(x * p / q, -1.0f, 1.0f);
}

RFT_FN float rft__sigmoid(float x) { return 1.0f / (1.0f + rft__exp(-x)); }

/* The activations bound a negative y before they multiply by what has long become 0, so that -Inf gives the limit -0, not NaN. */
RFT_FN float rft__above_minus_128(float y) { return -128.0f > y ? -128.0f : y; }

RFT_FN float rft__silu(float y) { return rft__above_minus_128(y) / (1.0f + rft__exp(-y)); }

RFT_FN float rft__gelu(float y) { return rft__above_minus_128(y) * (0.5f + 0.5f * rft__erf(y * 0.707106781f)); }

/* (1 + tanh z) / 2 = sigmoid(2 z), which does not cancel for negative z; 2 sqrt(2 / pi) is in the constants. */
RFT_FN float rft__gelu_tanh(float y) {
    const float z = y * (1.59576912f + 0.0713548163f * (y * y));
    return rft__above_minus_128(y) / (1.0f + rft__exp(-z));
}

/* Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC 2011): four words for each counter. */
RFT_FN unsigned rft__philox_key0(unsigned key, int round) { return key + (unsigned)round * 0x9e3779b9u; }
RFT_FN unsigned rft__philox_key1(unsigned key, int round) { return key + (unsigned)round * 0xbb67ae85u; }

RFT_FN void rft__philox_round(unsigned *x0, unsigned *x1, unsigned *x2, unsigned *x3, unsigned key0, unsigned key1) {
    const unsigned long long a = 0xd2511f53ull * *x0, b = 0xcd9e8d57ull * *x2;
    *x0 = (unsigned)(b >> 32) ^ *x1 ^ key0;
    *x1 = (unsigned)b;
    *x2 = (unsigned)(a >> 32) ^ *x3 ^ key1;
    *x3 = (unsigned)a;
}

RFT_FN void rft__philox(unsigned x[4], unsigned key0, unsigned key1) {
    for (int round = 0; round < 10; round++) {
        rft__philox_round(&x[0], &x[1], &x[2], &x[3], rft__philox_key0(key0, round), rft__philox_key1(key1, round));
    }
}

#endif
