/* SPDX-License-Identifier: Apache-2.0
 *
 * encode_k.c - GGUF blocks of 256 weights: Q2_K Q4_K Q5_K, whose parts of 16 or 32 weights have an integer scale and minimum
 * each, and Q3_K Q6_K IQ4_XS, whose parts have a signed integer scale. Layouts: docs/formats/gguf.md.
 *
 * Each part is fitted alone; the largest fitted scale sets the block's; then the integers of each part and the block's scales are
 * improved in turns, always by the error of what the file will hold.
 */
#include "format/encode_blocks.h"
#include "format/encode_fit.h"

#include "format/decode/decode_q.h"

#include "format/decode/decode_iq4.h"
#include "format/decode/decode_k.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256, MAX_PARTS = 16, TURNS = 3 };

static float clamp_integer(float v, int low, int high) {
    const float r = rintf(v);
    return r < (float)low ? (float)low : r > (float)high ? (float)high : r;
}

/* ---- scales and minima ---- */

typedef struct affine_kind {
    int part;        /* weights of a part */
    int max_code;    /* of a weight */
    int max_integer; /* of a part's scale and of its minimum */
} affine_kind;

typedef struct affine_block {
    float d, dmin; /* as stored */
    int scale[MAX_PARTS], minimum[MAX_PARTS];
    uint8_t codes[BLOCK];
    double error;
} affine_block;

/* As the decoder rounds: the products before the difference. */
static double part_error(const affine_kind *k, const float *x, const affine_block *b, int scale, int minimum, uint8_t *codes) {
    return rft__code_affine(k->max_code, x, k->part, b->d * (float)scale, -(b->dmin * (float)minimum), codes);
}

static int integer_of(float value, float unit, int max) { return unit > 0 ? (int)clamp_integer(value / unit, 0, max) : 0; }

/* The integers of a part: those next to the fitted values, or with `search` the best of a few around them. */
static void choose_integers(const affine_kind *k, const float *x, const rft__affine *fitted, int search, affine_block *b, int p) {
    const int s0 = integer_of(fitted->d, b->d, k->max_integer), m0 = integer_of(-fitted->m, b->dmin, k->max_integer);
    double best = part_error(k, x, b, s0, m0, NULL);
    b->scale[p] = s0;
    b->minimum[p] = m0;
    for (int s = s0 - search; s <= s0 + search; s++) {
        for (int m = m0 - search; m <= m0 + search; m++) {
            const int inside = s >= 0 && m >= 0 && s <= k->max_integer && m <= k->max_integer;
            const double error = inside ? part_error(k, x, b, s, m, NULL) : HUGE_VAL;
            if (error < best) {
                best = error;
                b->scale[p] = s;
                b->minimum[p] = m;
            }
        }
    }
    b->error += part_error(k, x, b, b->scale[p], b->minimum[p], b->codes + p * k->part);
}

static affine_block make_affine(const affine_kind *k, const float *x, const rft__affine *fitted, int search, float d,
                                float dmin) {
    affine_block b = {.d = rft__through_f16(d), .dmin = rft__through_f16(dmin)};
    for (int p = 0; p < BLOCK / k->part; p++) {
        choose_integers(k, x + p * k->part, &fitted[p], search, &b, p);
    }
    return b;
}

/* The d and dmin of least squares for the integers and codes of b. */
static void refit_affine(const affine_kind *k, const float *x, const affine_block *b, float *d, float *dmin) {
    double uu = 0, uv = 0, vv = 0, ux = 0, vx = 0;
    for (int i = 0; i < BLOCK; i++) {
        const double u = b->scale[i / k->part] * (double)b->codes[i], v = -b->minimum[i / k->part];
        uu += u * u;
        uv += u * v;
        vv += v * v;
        ux += u * x[i];
        vx += v * x[i];
    }
    const double det = uu * vv - uv * uv;
    *d = b->d;
    *dmin = b->dmin;
    if (det > 1e-9 * uu * vv) {
        *d = (float)((ux * vv - vx * uv) / det);
        *dmin = (float)((vx * uu - ux * uv) / det);
    } else if (uu > 0 && vv == 0) {
        *d = (float)(ux / uu);
    }
    *d = *d > 0 ? *d : b->d;
    *dmin = *dmin > 0 ? *dmin : b->dmin;
}

static void improve_affine(const affine_kind *k, const float *x, const rft__affine *fitted, affine_block *best) {
    for (int turn = 0; turn < TURNS && best->error > 0; turn++) {
        float d, dmin;
        refit_affine(k, x, best, &d, &dmin);
        const affine_block next = make_affine(k, x, fitted, 1, d, dmin);
        if (next.error >= best->error) {
            return;
        }
        *best = next;
    }
}

static void fit_affine_block(const affine_kind *k, const float *x, rft__fit fit, affine_block *out) {
    rft__affine fitted[MAX_PARTS];
    float scale = 0, minimum = 0;
    for (int p = 0; p < BLOCK / k->part; p++) {
        const float *part = x + p * k->part;
        fitted[p] = fit == RFT_FIT_NEAREST ? rft__range_affine(k->max_code, part, k->part, NULL, 1)
                                           : rft__fit_affine(k->max_code, part, k->part, NULL, 1);
        scale = fitted[p].d > scale ? fitted[p].d : scale;
        minimum = -fitted[p].m > minimum ? -fitted[p].m : minimum;
    }
    const float top = (float)k->max_integer;
    *out = make_affine(k, x, fitted, fit == RFT_FIT_SEARCH, scale / top, minimum / top);
    if (fit == RFT_FIT_SEARCH) {
        improve_affine(k, x, fitted, out);
    }
}

/* Eight six-bit pairs in 12 bytes; the inverse of rft__k_scale and rft__k_min. */
static void store_pairs(unsigned char *s, const affine_block *b) {
    memset(s, 0, 12);
    for (int j = 0; j < 8; j++) {
        const unsigned scale = (unsigned)b->scale[j], minimum = (unsigned)b->minimum[j];
        if (j < 4) {
            s[j] = (unsigned char)(s[j] | scale);
            s[j + 4] = (unsigned char)(s[j + 4] | minimum);
        } else {
            s[j + 4] = (unsigned char)((scale & 15u) | (minimum & 15u) << 4);
            s[j - 4] = (unsigned char)(s[j - 4] | (scale >> 4) << 6);
            s[j] = (unsigned char)(s[j] | (minimum >> 4) << 6);
        }
    }
}

/* Each 32 bytes hold 64 codes, low nibbles first; higher bits are left out. */
static void store_nibbles(unsigned char *qs, const uint8_t *codes) {
    for (int i = 0; i < BLOCK / 2; i++) {
        const int at = i / 32 * 64 + i % 32;
        qs[i] = (unsigned char)((codes[at] & 15u) | (codes[at + 32] & 15u) << 4);
    }
}

/* Each 32 bytes hold 128 two-bit codes in four planes; bits `shift` and `shift` + 1 of each code. */
static void store_planes(unsigned char *qs, const uint8_t *codes, unsigned shift) {
    memset(qs, 0, BLOCK / 4);
    for (int i = 0; i < BLOCK; i++) {
        unsigned char *byte = &qs[i / 128 * 32 + i % 32];
        *byte = (unsigned char)(*byte | (codes[i] >> shift & 3u) << 2 * (i / 32 % 4));
    }
}

/* One bit of each code: weight i in byte i mod 32 at bit i / 32. */
static void store_bits(unsigned char *qh, const uint8_t *codes, unsigned shift) {
    memset(qh, 0, BLOCK / 8);
    for (int i = 0; i < BLOCK; i++) {
        qh[i % 32] = (unsigned char)(qh[i % 32] | (codes[i] >> shift & 1u) << i / 32);
    }
}

void rft__encode_q2_k(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    static const affine_kind kind = {16, 3, 15};
    for (int64_t i = 0; i < blocks; i++, src += BLOCK, dst += 84) {
        affine_block b;
        fit_affine_block(&kind, src, fit, &b);
        for (int p = 0; p < 16; p++) {
            dst[p] = (unsigned char)(b.scale[p] | b.minimum[p] << 4);
        }
        store_planes(dst + 16, b.codes, 0);
        rft__store_f16(dst + 80, b.d);
        rft__store_f16(dst + 82, b.dmin);
    }
}

void rft__encode_q4_k(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    static const affine_kind kind = {32, 15, 63};
    for (int64_t i = 0; i < blocks; i++, src += BLOCK, dst += 144) {
        affine_block b;
        fit_affine_block(&kind, src, fit, &b);
        rft__store_f16(dst, b.d);
        rft__store_f16(dst + 2, b.dmin);
        store_pairs(dst + 4, &b);
        store_nibbles(dst + 16, b.codes);
    }
}

void rft__encode_q5_k(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    static const affine_kind kind = {32, 31, 63};
    for (int64_t i = 0; i < blocks; i++, src += BLOCK, dst += 176) {
        affine_block b;
        fit_affine_block(&kind, src, fit, &b);
        rft__store_f16(dst, b.d);
        rft__store_f16(dst + 2, b.dmin);
        store_pairs(dst + 4, &b);
        store_bits(dst + 16, b.codes, 4);
        store_nibbles(dst + 48, b.codes);
    }
}

/* ---- signed scales ---- */

typedef struct scaled_kind {
    int part;
    const rft__levels *levels;
    int low, high; /* of a part's integer */
} scaled_kind;

typedef struct scaled_block {
    float d; /* as stored */
    int scale[MAX_PARTS];
    uint8_t codes[BLOCK];
    double error;
} scaled_block;

static void choose_integer(const scaled_kind *k, const float *x, float fitted, int search, scaled_block *b, int p) {
    const int s0 = b->d != 0 ? (int)clamp_integer(fitted / b->d, k->low, k->high) : 0;
    double best = rft__code_scaled(k->levels, x, k->part, b->d * (float)s0, NULL);
    b->scale[p] = s0;
    for (int s = s0 - search; s <= s0 + search; s++) {
        const int inside = s >= k->low && s <= k->high;
        const double error = inside ? rft__code_scaled(k->levels, x, k->part, b->d * (float)s, NULL) : HUGE_VAL;
        if (error < best) {
            best = error;
            b->scale[p] = s;
        }
    }
    b->error += rft__code_scaled(k->levels, x, k->part, b->d * (float)b->scale[p], b->codes + p * k->part);
}

static scaled_block make_scaled(const scaled_kind *k, const float *x, const float *fitted, int search, float d) {
    scaled_block b = {.d = rft__through_f16(d)};
    for (int p = 0; p < BLOCK / k->part; p++) {
        choose_integer(k, x + p * k->part, fitted[p], search, &b, p);
    }
    return b;
}

static void improve_scaled(const scaled_kind *k, const float *x, const float *fitted, scaled_block *best) {
    for (int turn = 0; turn < TURNS && best->error > 0; turn++) {
        double a = 0, aa = 0;
        for (int i = 0; i < BLOCK; i++) {
            const double v = best->scale[i / k->part] * (double)rft__level(k->levels, best->codes[i]);
            a += v * x[i];
            aa += v * v;
        }
        const scaled_block next = make_scaled(k, x, fitted, 1, aa > 0 ? (float)(a / aa) : best->d);
        if (next.error >= best->error) {
            return;
        }
        *best = next;
    }
}

/* The scale under which the largest weight of a part is its first level, that of the largest magnitude. */
static float plain_scale(const scaled_kind *k, const float *x) {
    float most = 0;
    for (int i = 0; i < k->part; i++) {
        most = fabsf(x[i]) > fabsf(most) ? x[i] : most;
    }
    return most / rft__level(k->levels, 0);
}

static void fit_scaled_block(const scaled_kind *k, const float *x, rft__fit fit, scaled_block *out) {
    float fitted[MAX_PARTS], most = 0;
    for (int p = 0; p < BLOCK / k->part; p++) {
        const float *part = x + p * k->part;
        fitted[p] = fit == RFT_FIT_NEAREST ? plain_scale(k, part) : rft__fit_scale(k->levels, part, k->part, NULL, 0);
        most = fabsf(fitted[p]) > fabsf(most) ? fitted[p] : most;
    }
    *out = make_scaled(k, x, fitted, fit == RFT_FIT_SEARCH, most / (float)k->low);
    if (fit == RFT_FIT_SEARCH) {
        improve_scaled(k, x, fitted, out);
        scaled_block other = make_scaled(k, x, fitted, 1, most / (float)k->high);
        improve_scaled(k, x, fitted, &other);
        if (other.error < out->error) {
            *out = other;
        }
    }
}

/* The inverse of rft__q3_k_scale. */
static void store_q3_scales(unsigned char *s, const int *scale) {
    memset(s, 0, 12);
    for (int j = 0; j < 16; j++) {
        const unsigned v = (unsigned)(scale[j] + 32);
        s[j & 7] = (unsigned char)(s[j & 7] | (v & 15u) << 4 * (j >> 3));
        s[8 + (j & 3)] = (unsigned char)(s[8 + (j & 3)] | (v >> 4) << 2 * (j >> 2));
    }
}

void rft__encode_q3_k(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    static const rft__levels three_bits = {8, -4, NULL};
    static const scaled_kind kind = {16, &three_bits, -32, 31};
    for (int64_t i = 0; i < blocks; i++, src += BLOCK, dst += 110) {
        scaled_block b;
        fit_scaled_block(&kind, src, fit, &b);
        store_bits(dst, b.codes, 2);
        store_planes(dst + 32, b.codes, 0);
        store_q3_scales(dst + 96, b.scale);
        rft__store_f16(dst + 108, b.d);
    }
}

/* Each 64 bytes hold the low nibbles of 128 weights, the first 64 low. */
static void store_q6_nibbles(unsigned char *ql, const uint8_t *codes) {
    for (int i = 0; i < BLOCK / 2; i++) {
        const int at = i / 64 * 128 + i % 64;
        ql[i] = (unsigned char)((codes[at] & 15u) | (codes[at + 64] & 15u) << 4);
    }
}

void rft__encode_q6_k(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    static const rft__levels six_bits = {64, -32, NULL};
    static const scaled_kind kind = {16, &six_bits, -128, 127};
    for (int64_t i = 0; i < blocks; i++, src += BLOCK, dst += 210) {
        scaled_block b;
        fit_scaled_block(&kind, src, fit, &b);
        store_q6_nibbles(dst, b.codes);
        store_planes(dst + 128, b.codes, 4);
        for (int p = 0; p < 16; p++) {
            dst[192 + p] = (unsigned char)b.scale[p];
        }
        rft__store_f16(dst + 208, b.d);
    }
}

void rft__encode_iq4_xs(const float *src, int64_t blocks, rft__fit fit, unsigned char *dst) {
    static const scaled_kind kind = {32, &rft__iq4_levels, -32, 31};
    for (int64_t i = 0; i < blocks; i++, src += BLOCK, dst += 136) {
        scaled_block b;
        unsigned high = 0;
        fit_scaled_block(&kind, src, fit, &b);
        memset(dst + 4, 0, 4);
        for (int p = 0; p < 8; p++) {
            const unsigned v = (unsigned)(b.scale[p] + 32);
            dst[4 + p / 2] = (unsigned char)(dst[4 + p / 2] | (v & 15u) << 4 * (p & 1));
            high |= (v >> 4) << 2 * p;
            for (int j = 0; j < 16; j++) {
                dst[8 + 16 * p + j] = (unsigned char)(b.codes[32 * p + j] | b.codes[32 * p + j + 16] << 4);
            }
        }
        rft__store_f16(dst, b.d);
        rft__store_u16(dst + 2, high);
    }
}
