/* SPDX-License-Identifier: Apache-2.0
 *
 * epi_math.h - the functions of epi_ops.def in f32: branch-free, no tables, no library, so that the C compilers vectorise
 * them at every width and NVRTC compiles the same text. Compile without contraction (-ffp-contract=off, --fmad=false):
 * then every CPU level gives the same bits. On a GPU the activations take the macros of kernels/fast_math.cuh.
 * Coefficients are minimax fits of relative error made for this file.
 *
 * NaN in gives NaN out. Error bounds against f64, which tests/unit/test_epi_math.c asserts:
 *     exp 1.4 ulp; tanh 1.6 ulp; erf 6.2 ulp; sigmoid 2.4 ulp or 2^-126; silu 2.5 ulp or 2^-120;
 *     gelu 3.8 * 2^-24 * |y|; gelu_tanh 2.1 * 2^-24 * |y|
 */
#ifndef RFT_EPILOGUE_EPI_MATH_H
#define RFT_EPILOGUE_EPI_MATH_H

#ifndef RFT_FN
#define RFT_FN static inline
#endif

/* What the activations compute with, where a device has nothing faster: b >= 1 or NaN. */
#ifndef RFT_DIVIDE
#define RFT_DIVIDE(a, b)          ((a) / (b))
#define RFT_MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#define RFT_EXP_NEAR(x)           rft__exp_near(x)
#define RFT_AT_LEAST(x, low)      rft__at_least(x, low)
#define RFT_AT_MOST(x, high)      rft__at_most(x, high)
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

/* A NaN passes: both comparisons are false for it. */
RFT_FN float rft__at_least(float x, float low) { return low > x ? low : x; }
RFT_FN float rft__at_most(float x, float high) { return high < x ? high : x; }

/* exp(x) = 2^n exp(r), |r| <= ln 2 / 2: returns exp(r) and n. Adding 1.5 * 2^23 rounds x / ln 2 to n and leaves n in the low
 * bits; ln 2 is split so that n * its high part is exact. */
RFT_FN float rft__exp_reduced(float x, unsigned *n) {
    const float shift = 12582912.0f, t = x * 1.44269504f + shift, whole = t - shift;
    const float r = (x - whole * 0.693145752f) - whole * 1.42860677e-6f;
    *n = rft__as_bits(t) - rft__as_bits(shift);
    const float q = (((1.40612514e-3f * r + 8.37901143e-3f) * r + 4.16647771e-2f) * r + 1.66663654e-1f) * r + 0.5f;
    return (q * r + 1.0f) * r + 1.0f;
}

/* 2^n goes in as two factors, so that denormal results round once and large ones overflow. */
RFT_FN float rft__exp(float x) {
    unsigned n;
    const float p = rft__exp_reduced(rft__at_most(rft__at_least(x, -104.0f), 89.0f), &n);
    const unsigned half = (n + 254u) >> 1;
    return p * rft__as_float(half << 23) * rft__as_float((n + 254u - half) << 23);
}

/* exp with one factor, for x in [-87.6, 89]: from 88.4 (n = 128) on it is Inf. */
RFT_FN float rft__exp_near(float x) {
    unsigned n;
    const float p = rft__exp_reduced(x, &n);
    return p * rft__as_float((n + 127u) << 23);
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

/* x P(x^2) / Q(x^2) for |x| <= 3.93, where it has become exactly 1; all coefficients are positive, so nothing cancels. Beyond it
 * goes on growing: at 4.137 it is 14 * 2^-24 above 1, more than its roundings. */
RFT_FN float rft__erf_near(float x) {
    const float u = x * x;
    float p = RFT_MULTIPLY_ADD(2.04199318e-6f, u, 2.84808484e-4f), q = RFT_MULTIPLY_ADD(3.80041420e-5f, u, 1.16521318e-3f);
    p = RFT_MULTIPLY_ADD(p, u, 3.77961132e-3f);
    q = RFT_MULTIPLY_ADD(q, u, 1.49974404e-2f);
    p = RFT_MULTIPLY_ADD(p, u, 5.27902991e-2f);
    q = RFT_MULTIPLY_ADD(q, u, 1.14257537e-1f);
    p = RFT_MULTIPLY_ADD(p, u, 1.90783873e-1f);
    q = RFT_MULTIPLY_ADD(q, u, 5.02410531e-1f);
    p = RFT_MULTIPLY_ADD(p, u, 1.12837911f);
    q = RFT_MULTIPLY_ADD(q, u, 1.0f);
    return RFT_DIVIDE(x * p, q);
}

RFT_FN float rft__erf(float x) {
    const float r = rft__erf_near(rft__at_most(rft__at_least(x, -3.93f), 3.93f));
    return rft__at_most(rft__at_least(r, -1.0f), 1.0f);
}

RFT_FN float rft__sigmoid(float x) { return 1.0f / (1.0f + rft__exp(-x)); }

/* The activations first bound y from below, where the result has become -0: so -Inf gives the limit, not NaN. What they give
 * to exp or erf is bounded from above as well, where the result has become y. */
RFT_FN float rft__silu(float y) {
    const float low = RFT_AT_LEAST(y, -88.9f);
    return RFT_DIVIDE(low, 1.0f + RFT_EXP_NEAR(-RFT_AT_MOST(low, 87.0f)));
}

RFT_FN float rft__gelu(float y) {
    const float low = RFT_AT_LEAST(y, -5.85f), e = rft__erf_near(RFT_AT_MOST(low, 5.85f) * 0.707106781f);
    return low * RFT_MULTIPLY_ADD(0.5f, RFT_AT_MOST(RFT_AT_LEAST(e, -1.0f), 1.0f), 0.5f);
}

/* (1 + tanh z) / 2 = sigmoid(2 z), which does not cancel for negative z; 2 sqrt(2 / pi) is in the constants. */
RFT_FN float rft__gelu_tanh(float y) {
    const float low = RFT_AT_LEAST(y, -10.07f), x = RFT_AT_MOST(low, 10.0f);
    return RFT_DIVIDE(low, 1.0f + RFT_EXP_NEAR(x * RFT_MULTIPLY_ADD(-0.0713548163f, x * x, -1.59576912f)));
}

/* Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3; SC 2011): four words for each counter. */
RFT_FN void rft__philox(unsigned x[4], unsigned key0, unsigned key1) {
    for (int round = 0; round < 10; round++) {
        const unsigned long long a = 0xd2511f53ull * x[0], b = 0xcd9e8d57ull * x[2];
        x[0] = (unsigned)(b >> 32) ^ x[1] ^ key0;
        x[1] = (unsigned)b;
        x[2] = (unsigned)(a >> 32) ^ x[3] ^ key1;
        x[3] = (unsigned)a;
        key0 += 0x9e3779b9u;
        key1 += 0xbb67ae85u;
    }
}

#endif
