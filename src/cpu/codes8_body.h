/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_body.h - products of codes with X in 8 bits, and the rounding of X; text for the codes8_<isa>.c of the ISA folders.
 * Before it the includer defines what codes_panel_body.h asks, and
 *     words_max(a, b): unsigned; words_round(v): floats to int32, to nearest even; words_store(p, v); vec_bits(v)
 *     bytes_look_up(p, v): of 16 bytes at p, by each byte of v, which is below 16
 *     dot_quads(wide, start, q, x, stride): start + the sum over four of q (unsigned bytes, above 127 only where wide) times
 *     the four signed bytes of x[0], x[stride], ...
 *
 *     32 k of a panel: 8 quads of bytes in registers; for each row 8 dot products in two chains, then scale and FMA
 *
 * All sums of codes are exact in int32 and as floats: |sum| <= 32 * 255 * 128 < 2^20.
 */
#include "cpu/codes_panel_body.h"

#include <string.h>

/* ---- X ---- */

/* Four k a word, least first. */
RFT_INLINE uint32_t four_bytes(const int32_t *q) {
    return ((uint32_t)q[0] & 255) | ((uint32_t)q[1] & 255) << 8 | ((uint32_t)q[2] & 255) << 16 | (uint32_t)q[3] << 24;
}

/* What a row adds for k first..first + 15 or 31 of a group; see rft__quantise_fn. */
static uint32_t added(const rft__packing *p, const int32_t *q, int n, float scale) {
    int32_t sum = 0;
    for (int i = 0; i < n; i++) {
        sum += q[i];
    }
    const float real = p->offset == RFT__OFFSET_MINIMUM ? scale * (float)sum : (float)sum;
    uint32_t bits = (uint32_t)(-p->i8_bias * sum);
    if (p->offset != RFT__OFFSET_NONE) {
        memcpy(&bits, &real, sizeof bits);
    }
    return bits;
}

/* Scale and sums of a row's group. */
static void put_sums(const rft__packing *p, const int32_t *q, float scale, int rows, uint32_t *dst) {
    const bool halves = p->step < RFT__BLOCK;
    memcpy(dst + 8 * rows, &scale, sizeof scale);
    dst[9 * rows] = added(p, q, halves ? RFT__BLOCK / 2 : RFT__BLOCK, scale);
    dst[10 * rows] = added(p, q + RFT__BLOCK / 2, halves ? RFT__BLOCK / 2 : 0, scale);
}

/* One row's group into its column of the record. */
static void quantise_group(const rft__packing *p, const float *x, int rows, uint32_t *dst) {
    enum { LEAST = 0x08800000 /* 2^-110 */, NAN_FROM = 0x7f800000 };
    const ivec magnitude = words_set(0x7fffffff);
    const vec low = vec_load(x), high = vec_load(x + RFT__COLUMNS);
    int32_t q[RFT__BLOCK];
    words_store(q, words_max(words_and(vec_bits(low), magnitude), words_and(vec_bits(high), magnitude)));
    int32_t most = 0;
    for (int i = 0; i < RFT__COLUMNS; i++) {
        most = q[i] > most ? q[i] : most;
    }
    float largest, scale, inverse;
    memcpy(&largest, &most, sizeof most);
    const bool counts = most >= LEAST && most < NAN_FROM;
    inverse = counts ? 127.0f / largest : 0.0f;
    scale = counts ? largest / 127.0f : most < LEAST ? 0.0f : (largest - largest) * 0.0f;
    words_store(q, counts ? words_round(vec_mul(low, vec_set(inverse))) : words_set(0));
    words_store(q + RFT__COLUMNS, counts ? words_round(vec_mul(high, vec_set(inverse))) : words_set(0));
    for (int t = 0; t < RFT__BLOCK / 4; t++) {
        dst[t * rows] = four_bytes(q + 4 * t);
    }
    put_sums(p, q, scale, rows, dst);
}

static void quantise(const rft__packing *packing, const float *x, int64_t stride, int rows, int64_t k, void *dst) {
    uint32_t *to = dst;
    for (int64_t at = 0; at < k; at += RFT__BLOCK, to += RFT__X8_WORDS * rows) {
        const int64_t n = rft__min(RFT__BLOCK, k - at);
        for (int r = 0; r < rows; r++) {
            const float *from = x + r * stride + at;
            float padded[RFT__BLOCK] = {0};
            if (n < RFT__BLOCK) {
                memcpy(padded, from, (size_t)n * sizeof *from);
                from = padded;
            }
            quantise_group(packing, from, rows, to + r);
        }
    }
}

/* The same of codes that are given. */
static void record_group(const rft__packing *p, const signed char *x, float scale, int rows, uint32_t *dst) {
    int32_t q[RFT__BLOCK];
    for (int i = 0; i < RFT__BLOCK; i++) {
        q[i] = x[i];
    }
    for (int t = 0; t < RFT__BLOCK / 4; t++) {
        memcpy(dst + t * rows, x + 4 * t, 4);
    }
    put_sums(p, q, scale, rows, dst);
}

static void record(const rft__packing *packing, const signed char *x, int64_t stride, const float *scale, int64_t scale_stride,
                   int rows, int64_t k, void *dst) {
    uint32_t *to = dst;
    for (int64_t at = 0; at < k; at += RFT__BLOCK, to += RFT__X8_WORDS * rows) {
        const int64_t n = rft__min(RFT__BLOCK, k - at);
        for (int r = 0; r < rows; r++) {
            const signed char *from = x + r * stride + at;
            signed char padded[RFT__BLOCK] = {0};
            if (n < RFT__BLOCK) {
                memcpy(padded, from, (size_t)n);
                from = padded;
            }
            record_group(packing, from, scale[r * scale_stride + at / RFT__BLOCK], rows, to + r);
        }
    }
}

/* ---- tiles ---- */

/* Bytes of a block, 32 k. Codes of four bits without offset go through a table, be it 0 to 15. */
RFT_INLINE void unpack_block(int bits, rft__offset_kind offset, const rft__packing *p, const char *block, ivec q[8]) {
    RFT_UNROLL
    for (int t = 0; t < 8; t++) {
        q[t] = quad(bits, block, t);
        if (bits == 4 && offset == RFT__OFFSET_NONE) {
            q[t] = bytes_look_up(p->i8_table, q[t]);
        }
    }
}

/* Sums of 16 or 32 k, scaled, onto the row's. */
RFT_INLINE vec add_sum(rft__offset_kind offset, ivec sum, vec scale, vec shift, float x_scale, float x_sum, vec acc) {
    vec real = vec_from_words(sum);
    if (offset == RFT__OFFSET_ZERO) {
        real = vec_sub(real, vec_mul(shift, vec_set(x_sum)));
    }
    acc = vec_fma(real, vec_mul(scale, vec_set(x_scale)), acc);
    return offset == RFT__OFFSET_MINIMUM ? vec_fma(shift, vec_set(x_sum), acc) : acc;
}

RFT_INLINE float real_at(const int32_t *x) {
    float real;
    memcpy(&real, x, sizeof real);
    return real;
}

/* One row over a block. halves: each 16 k have scales of their own. */
RFT_INLINE vec row_block(rft__offset_kind offset, bool halves, bool wide, int rows, const ivec q[8], const int32_t *x,
                         const float *scale, const float *shift, vec acc) {
    enum { SECOND = RFT__COLUMNS };
    const bool starts = offset == RFT__OFFSET_NONE;
    const float x_scale = real_at(x + 8 * rows), x_sum = real_at(x + 9 * rows);
    const ivec low = dot_quads(wide, words_set(starts ? x[9 * rows] : 0), q, x, rows);
    if (!halves) {
        const ivec all = dot_quads(wide, low, q + 4, x + 4 * rows, rows);
        return add_sum(offset, all, vec_load(scale), vec_load(shift), x_scale, x_sum, acc);
    }
    const ivec high = dot_quads(wide, words_set(starts ? x[10 * rows] : 0), q + 4, x + 4 * rows, rows);
    acc = add_sum(offset, low, vec_load(scale), vec_load(shift), x_scale, x_sum, acc);
    return add_sum(offset, high, vec_load(scale + SECOND), vec_load(shift + SECOND), x_scale, real_at(x + 10 * rows), acc);
}

static __attribute__((noinline)) void scale_by(float factor, int64_t n, float *scale) {
    for (int64_t i = 0; i < n; i++) {
        scale[i] *= factor;
    }
}

/* A chunk's scales, with what the bytes of a table are more than its values. */
RFT_INLINE void expand8(int bits, const rft__packing *packing, const char *w, int64_t k, scales *s) {
    expand(packing, w, k, s);
    if (bits == 4 && packing->has_table) { /* other factors are 1 */
        scale_by(packing->i8_factor, rft__packing_scales(packing, k) * RFT__COLUMNS, s->scale);
    }
}

/* A block of all panels; scales and offsets stand at `at`. */
RFT_INLINE void codes8_block(int bits, rft__offset_kind offset, bool halves, int rows, int panels, const rft__packing *packing,
                             const int32_t *x, const char *w, size_t w_stride, const scales *s, int64_t at,
                             vec c[RFT__MAX_ROWS][RFT__MAX_PANELS]) {
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        const float *offsets = offset != RFT__OFFSET_NONE ? s[p].offset : s[p].scale;
        ivec q[8];
        unpack_block(bits, offset, packing, w + (size_t)p * w_stride, q);
        RFT_UNROLL
        for (int r = 0; r < rows; r++) {
            c[r][p] = row_block(offset, halves, packing->i8_wide, rows, q, x + r, s[p].scale + at, offsets + at, c[r][p]);
        }
    }
}

RFT_INLINE void codes8_tile(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t k,
                            const int32_t *x, const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate) {
    scales s[RFT__MAX_PANELS];
    vec c[RFT__MAX_ROWS][RFT__MAX_PANELS];
    /* Formats of 2, 3 and 6 bits have a scale for 16 k, others with a minimum and those of 5 bits none so short. */
    const bool always = bits == 2 || bits == 3 || bits == 6, never = !always && (offset == RFT__OFFSET_MINIMUM || bits == 5);
    const bool halves = always || (!never && packing->step < RFT__BLOCK);
    const int shift = packing->step_shift;
    load_sums(rows, panels, acc, acc_stride, accumulate, c);
    for (; k > 0; k -= RFT__CHUNK) {
        const int64_t chunk = rft__min(k, RFT__CHUNK);
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            expand8(bits, packing, w + (size_t)p * w_stride, chunk, &s[p]);
        }
        w += rft__packing_head_bytes(packing, chunk);
        for (int64_t b = 0; b * RFT__BLOCK < chunk; b++, w += 64 * bits, x += RFT__X8_WORDS * rows) {
            const int64_t at = ((4 * b) >> shift) * RFT__COLUMNS;
            fetch_block(bits, panels, w, w_stride);
            if (halves) {
                codes8_block(bits, offset, true, rows, panels, packing, x, w, w_stride, s, at, c);
            } else {
                codes8_block(bits, offset, false, rows, panels, packing, x, w, w_stride, s, at, c);
            }
        }
    }
    store_sums(rows, panels, c, acc, acc_stride);
}
#define CODES_TILE codes8_tile
