/* SPDX-License-Identifier: Apache-2.0
 *
 * encode_q.c - GGUF blocks of 32 weights under one scale: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL MXFP4. Layouts: docs/formats/gguf.md.
 *
 * Scales are chosen as the file keeps them (f16, or a power of two), so that the error which is minimised is that of the result.
 */
#include "format/encode_blocks.h"
#include "format/encode_fit.h"

#include "format/decode/decode_q.h"

#include "format/decode/decode_iq4.h"

#include <math.h>

enum { N = 32 };

static const float e2m1_values[15] = {-6, -4, -3, -2, -1.5f, -1, -0.5f, 0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
static const unsigned char e2m1_codes[15] = {15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7};

static const rft__levels four_bits = {16, -8, NULL}, five_bits = {32, -16, NULL}, eight_bits = {256, -128, NULL},
                         e2m1_levels = {15, 0, e2m1_values};

/* The weight of the largest magnitude, with its sign. */
static float extreme(const float *x) {
    float most = 0;
    for (int i = 0; i < N; i++) {
        most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    }
    return most;
}

/* ---- fields ---- */

static void store_halves(unsigned char *qs, const uint8_t *codes) {
    for (int j = 0; j < N / 2; j++) {
        qs[j] = (unsigned char)((codes[j] & 15u) | (codes[j + N / 2] & 15u) << 4);
    }
}

static void store_fifth_bits(unsigned char *qh, const uint8_t *codes) {
    for (int j = 0; j < N / 8; j++) {
        qh[j] = 0;
        for (int bit = 0; bit < 8; bit++) {
            qh[j] = (unsigned char)(qh[j] | (codes[8 * j + bit] >> 4 & 1u) << bit);
        }
    }
}

/* ---- a scale ---- */

static void keep_better(const rft__levels *levels, const float *x, float d, float *best, double *error) {
    const float as_stored = rft__through_f16(d);
    const double e = isfinite(as_stored) ? rft__code_scaled(levels, x, N, as_stored, NULL) : HUGE_VAL;
    if (e < *error) {
        *error = e;
        *best = as_stored;
    }
}

/* The stored scale next to d, above or below. */
static float neighbour(float d, int step) { return rft__f16_f32((unsigned)(rft__f16_from_f32(d) + step)); }

/* The better of the plain scale and the fitted one with its neighbours, all as stored. */
static float choose_scale(const rft__levels *levels, const float *x, float plain, float fitted) {
    float best = 0;
    double error = HUGE_VAL;
    keep_better(levels, x, plain, &best, &error);
    keep_better(levels, x, fitted, &best, &error);
    keep_better(levels, x, neighbour(fitted, 1), &best, &error);
    keep_better(levels, x, neighbour(fitted, -1), &best, &error);
    return best;
}

/* The scale under which the largest weight is the first level: the one of the largest magnitude. */
static float scale_of(const rft__levels *levels, const float *x, rft__fit fit) {
    const float plain = extreme(x) / rft__level(levels, 0);
    return fit == RFT_FIT_NEAREST ? rft__through_f16(plain)
                                  : choose_scale(levels, x, plain, rft__fit_scale(levels, x, N, rft__through_f16, 0));
}

/* A scale and 16 levels: f16, nibbles. */
static void encode_nibbles(const rft__levels *levels, const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    for (int64_t b = 0; b < blocks; b++, src += N, dst += 18) {
        uint8_t codes[N];
        const float d = scale_of(levels, src, fit);
        rft__code_scaled(levels, src, N, d, codes);
        rft__store_f16(dst, d);
        store_halves(dst + 2, codes);
    }
}

void rft__encode_q4_0(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    encode_nibbles(&four_bits, src, blocks, fit, dst);
}

void rft__encode_iq4_nl(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    encode_nibbles(&rft__iq4_levels, src, blocks, fit, dst);
}

void rft__encode_q5_0(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    for (int64_t b = 0; b < blocks; b++, src += N, dst += 22) {
        uint8_t codes[N];
        const float d = scale_of(&five_bits, src, fit);
        rft__code_scaled(&five_bits, src, N, d, codes);
        rft__store_f16(dst, d);
        store_fifth_bits(dst + 2, codes);
        store_halves(dst + 6, codes);
    }
}

/* 256 levels leave little to gain, so only scales are tried under which the largest weight takes a code from 64 to 128: weights
 * that were such codes before are among them, since each smaller largest code has a multiple by a power of two there. */
static float scale_8(const float *x, rft__fit fit) {
    const float most = extreme(x);
    float best = 0;
    double error = HUGE_VAL;
    keep_better(&eight_bits, x, fabsf(most) / 127, &best, &error);
    if (fit == RFT_FIT_NEAREST) {
        return best;
    }
    keep_better(&eight_bits, x, most / -128, &best, &error);
    for (int code = 126; code >= 64 && error > 0; code--) {
        keep_better(&eight_bits, x, fabsf(most) / (float)code, &best, &error);
    }
    const float found = best;
    for (int step = -4; step <= 4; step++) {
        keep_better(&eight_bits, x, neighbour(found, step), &best, &error);
    }
    return best;
}

void rft__encode_q8_0(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    for (int64_t b = 0; b < blocks; b++, src += N, dst += 34) {
        uint8_t codes[N];
        const float d = scale_8(src, fit);
        rft__code_scaled(&eight_bits, src, N, d, codes);
        rft__store_f16(dst, d);
        for (int i = 0; i < N; i++) {
            dst[2 + i] = (unsigned char)(codes[i] ^ 128u);
        }
    }
}

/* ---- a scale and a minimum ---- */

static rft__affine affine_of(int max, const float *x, rft__fit fit) {
    return fit == RFT_FIT_NEAREST ? rft__range_affine(max, x, N, rft__through_f16, 0)
                                  : rft__fit_affine(max, x, N, rft__through_f16, 0);
}

void rft__encode_q4_1(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    for (int64_t b = 0; b < blocks; b++, src += N, dst += 20) {
        uint8_t codes[N];
        const rft__affine a = affine_of(15, src, fit);
        rft__code_affine(15, src, N, a.d, a.m, codes);
        rft__store_f16(dst, a.d);
        rft__store_f16(dst + 2, a.m);
        store_halves(dst + 4, codes);
    }
}

void rft__encode_q5_1(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    for (int64_t b = 0; b < blocks; b++, src += N, dst += 24) {
        uint8_t codes[N];
        const rft__affine a = affine_of(31, src, fit);
        rft__code_affine(31, src, N, a.d, a.m, codes);
        rft__store_f16(dst, a.d);
        rft__store_f16(dst + 2, a.m);
        store_fifth_bits(dst + 4, codes);
        store_halves(dst + 8, codes);
    }
}

/* ---- a power of two ---- */

enum { MOST_EXPONENT = 252 }; /* 6 times that power of two is finite */

static unsigned exponent_code(int exponent) {
    return (unsigned)(exponent < 0 ? 0 : exponent > MOST_EXPONENT ? MOST_EXPONENT : exponent);
}

/* The exponent of the OCP rule puts the largest weight into 4 .. 8, of which what is above 6 is clipped. Half the scale holds all
 * codes up to 3 that the whole one holds, so none above is better; below, the largest weight alone misses by ever more. */
static unsigned exponent_of(const float *x, rft__fit fit) {
    int exponent = 0;
    const float most = fabsf(extreme(x));
    if (most == 0) {
        return 0;
    }
    frexpf(most, &exponent);
    const int plain = exponent - 3 + 127;
    unsigned best = exponent_code(plain);
    double error = rft__code_scaled(&e2m1_levels, x, N, rft__e8m0_f32(best), NULL);
    for (int e = plain + 1; fit == RFT_FIT_SEARCH && e >= plain - 3 && error > 0; e--) {
        const unsigned code = exponent_code(e);
        const double tried = rft__code_scaled(&e2m1_levels, x, N, rft__e8m0_f32(code), NULL);
        best = tried < error ? code : best;
        error = tried < error ? tried : error;
    }
    return best;
}

void rft__encode_mxfp4(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    for (int64_t b = 0; b < blocks; b++, src += N, dst += 17) {
        uint8_t codes[N];
        const unsigned exponent = exponent_of(src, fit);
        rft__code_scaled(&e2m1_levels, src, N, rft__e8m0_f32(exponent), codes);
        for (int i = 0; i < N; i++) {
            codes[i] = e2m1_codes[codes[i]];
        }
        dst[0] = (unsigned char)exponent;
        store_halves(dst + 1, codes);
    }
}
