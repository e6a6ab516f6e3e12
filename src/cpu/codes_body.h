/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_body.h - kernels of panels of codes in f32; text for the codes_<isa>.c of the ISA folders, behind what
 * codes_panel_body.h asks.
 *
 *     codes -> value, by table or as a float's low bits -> * scale (+ minimum): the stored weight to the bit -> FMA, one chain
 *
 * A panel's codes are made weights once for all rows of a tile. The chain is that of f32 panels, so the bits are those of the
 * same weights stored as f32.
 */
#ifndef RFT_CPU_CODES_BODY_H
#define RFT_CPU_CODES_BODY_H

#include "cpu/codes_panel_body.h"

/* ---- a panel of weights ---- */

RFT_INLINE void widen_block(int bits, rft__offset_kind offset, const rft__packing *p, const char *block, const scales *s,
                            int64_t b, int64_t k, float *dst) {
    const meaning m = meaning_of(offset, p);
    RFT_UNROLL
    for (int v = 0; v < RFT__BLOCK / RFT__SLICE; v++) {
        const int64_t at = ((b * (RFT__BLOCK / RFT__SLICE) + v) >> p->step_shift) * RFT__COLUMNS;
        const vec scale = vec_load(s->scale + at), shift = offset != RFT__OFFSET_NONE ? vec_load(s->offset + at) : m.bias;
        RFT_UNROLL
        for (int i = 0; i < RFT__SLICE; i++) {
            const int64_t each = v * RFT__SLICE + i;
            if (each < k) {
                const vec code = value(bits, offset, block, &m, v, i);
                const vec wide = offset == RFT__OFFSET_FLOAT ? vec_mul(f8_value(&m.f8, vec_bits(code)), scale)
                                                             : weight(offset, code, scale, shift);
                vec_store(dst + each * RFT__COLUMNS, wide);
            }
        }
    }
}

/* F(bits, offset) of every pair that a format has. */
#define CODES_KINDS(F)                                                                                                 \
    F(2, RFT__OFFSET_MINIMUM) F(3, RFT__OFFSET_NONE) F(4, RFT__OFFSET_NONE) F(4, RFT__OFFSET_MINIMUM)                  \
    F(4, RFT__OFFSET_ZERO) F(5, RFT__OFFSET_NONE) F(5, RFT__OFFSET_MINIMUM) F(6, RFT__OFFSET_NONE)                     \
    F(8, RFT__OFFSET_NONE) F(8, RFT__OFFSET_ZERO) F(8, RFT__OFFSET_FLOAT)

/* A block of which k codes count. */
static __attribute__((noinline)) void widen_any(const rft__packing *p, const char *block, const scales *s, int64_t b, int64_t k,
                                                float *dst) {
#define CODES_WIDEN(n, kind)                            \
    if (p->bits == n && p->offset == kind) {            \
        widen_block(n, kind, p, block, s, b, k, dst);   \
    }
    CODES_KINDS(CODES_WIDEN)
#undef CODES_WIDEN
}

static void widen(const rft__packing *p, const char *w, int64_t k, float *dst) {
    scales s;
    for (; k > 0; k -= RFT__CHUNK) {
        const int64_t chunk = rft__min(k, RFT__CHUNK);
        expand(p, w, chunk, &s);
        const char *codes = w + rft__packing_head_bytes(p, chunk);
        for (int64_t b = 0; b * RFT__BLOCK < chunk; b++, codes += rft__packing_block_bytes(p)) {
            widen_any(p, codes, &s, b, rft__min(RFT__BLOCK, chunk - b * RFT__BLOCK), dst);
            dst += RFT__BLOCK * RFT__COLUMNS;
        }
        w = codes;
    }
}

/* ---- tiles ---- */

/* Eight k of all panels, each weight made once for all rows. */
RFT_INLINE void codes_slice(int bits, rft__offset_kind offset, int rows, int panels, int v, const float *x, const char *block,
                            size_t w_stride, const meaning *m, const scales *s, int64_t at,
                            vec c[RFT__MAX_ROWS][RFT__MAX_PANELS]) {
    vec scale[RFT__MAX_PANELS], shift[RFT__MAX_PANELS];
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        scale[p] = vec_load(s[p].scale + at);
        shift[p] = offset != RFT__OFFSET_NONE ? vec_load(s[p].offset + at) : m->bias;
    }
    RFT_UNROLL
    for (int i = 0; i < RFT__SLICE; i++) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            const vec wk = weight(offset, value(bits, offset, block + (size_t)p * w_stride, m, v, i), scale[p], shift[p]);
            RFT_UNROLL
            for (int r = 0; r < rows; r++) {
                c[r][p] = vec_fma(vec_set(x[i * rows + r]), wk, c[r][p]);
            }
        }
    }
}

/* Up to 32 k, through memory: fewer at the end, or floats that want care. */
RFT_INLINE void codes_rest(int rows, int panels, const rft__packing *packing, int64_t k, const float *x, const char *codes,
                           size_t w_stride, const scales *s, int64_t b, vec c[RFT__MAX_ROWS][RFT__MAX_PANELS]) {
    float wide[RFT__BLOCK * RFT__COLUMNS];
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        widen_any(packing, codes + (size_t)p * w_stride, &s[p], b, k, wide);
        for (int64_t i = 0; i < k; i++) {
            const vec wk = vec_load(wide + i * RFT__COLUMNS);
            RFT_UNROLL
            for (int r = 0; r < rows; r++) {
                c[r][p] = vec_fma(vec_set(x[i * rows + r]), wk, c[r][p]);
            }
        }
    }
}

/* Floats that are no field times a scale: those of a chunk whose scales do not fit, and 32 k with a NaN or an Inf. */
RFT_INLINE bool wants_care(int panels, const rft__packing *packing, const char *block, size_t w_stride, const scales *s) {
    ivec most = words_set(0);
    bool any = false;
    RFT_UNROLL
    for (int p = 0; p < panels; p++, block += w_stride) {
        any |= s[p].unfit;
        RFT_UNROLL
        for (int t = 0; t < RFT__BLOCK / 4; t++) {
            most = bytes_max(most, words_and(words_load(block + 64 * t), words_set(0x7f7f7f7f)));
        }
    }
    return any || bytes_any_above(most, packing->f8.finite);
}

RFT_INLINE void codes_tile(int bits, rft__offset_kind offset, int rows, int panels, const rft__packing *packing, int64_t k,
                           const float *x, const char *w, size_t w_stride, float *acc, int acc_stride, bool accumulate) {
    scales s[RFT__MAX_PANELS];
    vec c[RFT__MAX_ROWS][RFT__MAX_PANELS];
    const meaning m = meaning_of(offset, packing);
    const int shift = packing->step_shift;
    load_sums(rows, panels, acc, acc_stride, accumulate, c);
    for (; k > 0; k -= RFT__CHUNK) {
        const int64_t chunk = rft__min(k, RFT__CHUNK);
        w = open_chunk(panels, packing, w, w_stride, chunk, s);
        for (int64_t b = 0; b * RFT__BLOCK < chunk; b++, w += 64 * bits) {
            const int64_t n = rft__min(RFT__BLOCK, chunk - b * RFT__BLOCK);
            fetch_block(bits, panels, w, w_stride);
            if (n < RFT__BLOCK || (offset == RFT__OFFSET_FLOAT && wants_care(panels, packing, w, w_stride, s))) {
                codes_rest(rows, panels, packing, n, x, w, w_stride, s, b, c);
                x += n * rows;
                continue;
            }
            RFT_UNROLL
            for (int v = 0; v < RFT__BLOCK / RFT__SLICE; v++, x += RFT__SLICE * rows) {
                const int64_t at = ((b * (RFT__BLOCK / RFT__SLICE) + v) >> shift) * RFT__COLUMNS;
                codes_slice(bits, offset, rows, panels, v, x, w, w_stride, &m, s, at, c);
                RFT_NO_HOIST();
            }
        }
    }
    store_sums(rows, panels, c, acc, acc_stride);
}
#define CODES_TILE codes_tile

#endif
