/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_sums_body.h - kernels of panels of codes in f32 that sum before they scale; text for the sums_<isa>.c of the ISA folders.
 *
 *     codes -> value, by table or as a float's low bits -> FMA with x into the sum of 32 k or fewer -> * scale, onto the total
 *
 * For few rows, where to make a weight of each value takes as long as to use it. A minimum goes with the sum of x over the same
 * k; a zero point is taken from the value, which is exact. These are other bits than those of the stored weights, so plans that
 * are batch-invariant do without. Whatever needs the weights themselves goes by the chain of codes_body.h: a last chunk that is
 * cut within a block, and a total that is no number or close to none, as a scale or an x of Inf makes it, or a sum that overflows
 * where weights would not.
 *   x is an operand of the FMA in memory: a register of it costs AVX-512 one clock in 14 (one row, four bits).
 *   Besides what codes_panel_body.h asks the includer defines
 *     vec_add(a, b), vec_fma_at(x, b, c): *x * b + c, vec_add_at(x, a): *x + a
 *     SUMS_CHAIN(name): the level's family of codes_body.h
 */
#ifndef RFT_CPU_CODES_SUMS_BODY_H
#define RFT_CPU_CODES_SUMS_BODY_H

#include "cpu/codes_panel_body.h"

/* Byte 0 or 1 of a word in its place in the fraction of 2^23 or 2^15: that number more than the byte, without a shift. */
RFT_INLINE float place_of(int byte) { return byte != 0 ? 0x1p15f : 0x1p23f; }

RFT_INLINE vec byte_value(ivec words, int byte, vec less) {
    const ivec code = words_and(words, words_set(byte != 0 ? 0xff00 : 0xff));
    return vec_sub(vec_cast(words_or(code, words_set(byte != 0 ? 0x47000000 : 0x4b000000))), less);
}

/* What is taken from codes to make values of them: from those of the table nothing but a zero point. */
typedef struct sums_bias {
    vec of[2]; /* by byte_value's place */
} sums_bias;

RFT_INLINE sums_bias bias_of(int bits, rft__offset_kind offset, const rft__packing *p, const float *zero) {
    const vec bias = offset == RFT__OFFSET_ZERO ? vec_load(zero) : vec_set((float)p->bias);
    return bits == 4 ? (sums_bias){{bias, bias}}
                     : (sums_bias){{vec_add(vec_set(place_of(0)), bias), vec_add(vec_set(place_of(1)), bias)}};
}

/* Value i of the eight of slice v. */
RFT_INLINE vec sums_value(int bits, rft__offset_kind offset, const char *block, table t, const sums_bias *bias, int v, int i) {
    if (bits == 4) {
        const int at = 8 * (i % 4) + 4 * (i / 4);
        const ivec codes = words_load(block + 64 * v);
        const vec value = table_value(t, at != 0 ? words_shr(codes, at) : codes);
        return offset == RFT__OFFSET_ZERO ? vec_sub(value, bias->of[0]) : value;
    }
    const ivec code = quad(bits, block, 2 * v + i / 4);
    return byte_value(i % 4 >= 2 ? words_shr(code, 16) : code, i % 2, bias->of[i % 2]);
}

/* Eight k of all panels. */
RFT_INLINE void sums_slice(int bits, rft__offset_kind offset, int rows, int panels, int v, const float *x, const char *block,
                           size_t w_stride, table t, const sums_bias *bias, vec sum[RFT__MAX_ROWS][RFT__MAX_PANELS],
                           vec sum_x[RFT__MAX_ROWS]) {
    RFT_UNROLL
    for (int i = 0; i < RFT__SLICE; i++) {
        RFT_UNROLL
        for (int r = 0; r < rows && offset == RFT__OFFSET_MINIMUM; r++) {
            sum_x[r] = vec_add_at(x + i * rows + r, sum_x[r]);
        }
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            const vec value = sums_value(bits, offset, block + (size_t)p * w_stride, t, &bias[p], v, i);
            RFT_UNROLL
            for (int r = 0; r < rows; r++) {
                sum[r][p] = vec_fma_at(x + i * rows + r, value, sum[r][p]);
            }
        }
    }
}

/* The sums times their scales, at `at` of each panel's, onto the totals, and those of x times the minima. */
RFT_INLINE void scale_sums(rft__offset_kind offset, int rows, int panels, const scales *s, int64_t at, vec sum_x[RFT__MAX_ROWS],
                           vec sum[RFT__MAX_ROWS][RFT__MAX_PANELS], vec total[RFT__MAX_ROWS][RFT__MAX_PANELS]) {
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        const vec scale = vec_load(s[p].scale + at);
        RFT_UNROLL
        for (int r = 0; r < rows; r++) {
            total[r][p] = vec_fma(sum[r][p], scale, total[r][p]);
            if (offset == RFT__OFFSET_MINIMUM) {
                total[r][p] = vec_fma(sum_x[r], vec_load(s[p].offset + at), total[r][p]);
            }
            sum[r][p] = vec_zero();
        }
    }
    RFT_UNROLL
    for (int r = 0; r < rows; r++) {
        sum_x[r] = vec_zero();
    }
}

/* A block of 32 k, of which `each` k share a scale: 8, 16 or all. */
RFT_INLINE void sums_block(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int each,
                           const float *x, const char *block, size_t w_stride, const scales *s, int64_t b,
                           vec total[RFT__MAX_ROWS][RFT__MAX_PANELS]) {
    const table t = table_load(packing->lut);
    vec sum[RFT__MAX_ROWS][RFT__MAX_PANELS], sum_x[RFT__MAX_ROWS];
    sums_bias bias[RFT__MAX_PANELS];
    RFT_UNROLL
    for (int i = 0; i < rows * panels; i++) {
        sum[i / panels][i % panels] = sum_x[i / panels] = vec_zero();
    }
    RFT_UNROLL
    for (int v = 0; v < RFT__BLOCK / RFT__SLICE; v++) {
        const int64_t at = ((b * (RFT__BLOCK / RFT__SLICE) + v) >> packing->step_shift) * RFT__COLUMNS;
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            bias[p] = bias_of(bits, offset, packing, s[p].offset + at);
        }
        sums_slice(bits, offset, rows, panels, v, x + v * RFT__SLICE * rows, block, w_stride, t, bias, sum, sum_x);
        if ((v + 1) * RFT__SLICE % each == 0) {
            scale_sums(offset, rows, panels, s, at, sum_x, sum, total);
        }
        RFT_NO_HOIST();
    }
}

/* Some total is no number, or at least 2^127. */
RFT_INLINE bool any_lost(int rows, int panels, vec total[RFT__MAX_ROWS][RFT__MAX_PANELS]) {
    ivec most = words_set(0);
    RFT_UNROLL
    for (int i = 0; i < rows * panels; i++) {
        most = bytes_max(most, words_and(vec_bits(total[i / panels][i % panels]), words_set(0x7f000000)));
    }
    return bytes_any_above(most, 0x7e);
}

/* k: whole blocks. false, acc is as it was and the totals are in `apart`, where one of them is lost. */
RFT_INLINE bool sums_tile(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t k,
                          const float *x, const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate,
                          float *apart) {
    scales s[RFT__MAX_PANELS];
    vec total[RFT__MAX_ROWS][RFT__MAX_PANELS];
    const int each = packing->step < RFT__BLOCK ? packing->step : RFT__BLOCK;
    load_sums(rows, panels, acc, acc_stride, accumulate, total);
    for (; k > 0; k -= RFT__CHUNK) {
        const int64_t chunk = rft__min(k, RFT__CHUNK);
        w = open_chunk(panels, packing, w, w_stride, chunk, s);
        for (int64_t b = 0; b * RFT__BLOCK < chunk; b++, w += 64 * bits, x += RFT__BLOCK * rows) {
            fetch_block(bits, panels, w, w_stride);
            sums_block(bits, offset, rows, panels, packing, each, x, w, w_stride, s, b, total);
        }
    }
    const bool lost = any_lost(rows, panels, total);
    store_sums(rows, panels, total, lost ? apart : acc, lost ? panels * RFT__COLUMNS : acc_stride);
    return !lost;
}

/* The same product as one chain. */
static void sums_chain(const rft__codes_family *chain, int rows, int panels, const rft__packing *packing, int64_t k,
                       const float *x, const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate) {
    const bool wide = panels == chain->panels && chain->wide[rows - 1] != NULL;
    for (int p = 0; p < panels; p += wide ? panels : 1) {
        (wide ? chain->wide : chain->one)[rows - 1](packing, k, x, w + (size_t)p * w_stride, w_stride, acc + p * RFT__COLUMNS,
                                                    acc_stride, accumulate);
    }
}

/* The totals that are not lost. */
static void sums_keep(int rows, int columns, const float *total, float *acc, int acc_stride) {
    for (int r = 0; r < rows; r++, total += columns, acc += acc_stride) {
        for (int i = 0; i < columns; i++) {
            acc[i] = total[i] > -0x1p127f && total[i] < 0x1p127f ? total[i] : acc[i];
        }
    }
}

#define SUMS_FUNCTION(name, p, r)                                                                                                \
    static void sums_##name##_##r##x##p(const rft__packing *packing, int64_t k, const void *x, const char *w, size_t w_stride,   \
                                        float *acc, int acc_stride, bool accumulate) {                                           \
        float total[(r) * (p) * RFT__COLUMNS];                                                                                   \
        const int64_t whole = k % RFT__BLOCK == 0 ? k : k - k % RFT__CHUNK;                                                      \
        if (whole > 0 && !sums_tile(CODES_BITS_##name, CODES_OFFSET_##name, r, p, packing, whole, x, w, w_stride, acc,           \
                                    acc_stride, accumulate, total)) {                                                            \
            sums_chain(&SUMS_CHAIN(name), r, p, packing, whole, x, w, w_stride, acc, acc_stride, accumulate);                    \
            sums_keep(r, (p) * RFT__COLUMNS, total, acc, acc_stride);                                                            \
        }                                                                                                                        \
        if (whole < k || k == 0) {                                                                                               \
            sums_chain(&SUMS_CHAIN(name), r, p, packing, k - whole, (const float *)x + whole * (r),                              \
                       w + rft__packing_bytes(packing, whole), w_stride, acc, acc_stride, accumulate || whole > 0);              \
        }                                                                                                                        \
    }
#define SUMS_ENTRY(name, p, r) sums_##name##_##r##x##p,

/* Of one name: tiles of wide_rows beside some panels, and of one_rows beside one. */
#define SUMS_FAMILY(symbol, name, wide_panels, wide_rows, one_rows)                          \
    extern const rft__codes_family SUMS_CHAIN(name);                                         \
    RFT_ROWS_##wide_rows(SUMS_FUNCTION, name, wide_panels)                                   \
    RFT_ROWS_##one_rows(SUMS_FUNCTION, name, 1)                                              \
    const rft__codes_family symbol = {wide_panels,                                           \
                                      {RFT_ROWS_##wide_rows(SUMS_ENTRY, name, wide_panels)}, \
                                      {RFT_ROWS_##one_rows(SUMS_ENTRY, name, 1)}};

#endif
