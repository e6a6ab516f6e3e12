/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_avx512.c - register tiles with f32 FMA on AVX-512, for W panels of f32, bf16 and f16 (widened in registers).
 *
 *               16 columns a zmm
 *           w0 |w1 |w2 |w3          14x32: 28 accumulators + 2 w + 1 x of 32 registers
 *     x[0]  c  | c | c | c           9x48: 27 + 3 + 1
 *     x[1]  c  | c | c | c           6x64: 24 + 4 + 1 (bf16: both halves of a pair, 28 + ...)
 *
 * A step of k loads `panels` w vectors and broadcasts `rows` scalars for rows * panels FMAs: at 14x32 that is 16 loads,
 * 128 bytes of f32 W and 896 FLOPs a k.
 */
#include "cpu/tile_family.h"

#include <immintrin.h>

typedef __m512 rft__acc[RFT__MAX_ROWS][RFT__MAX_PANELS];

RFT_INLINE void load_acc(rft__acc c, int rows, int panels, const float *acc, bool accumulate) {
    RFT_UNROLL
    for (int i = 0; i < rows; i++) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            c[i][p] = accumulate ? _mm512_loadu_ps(acc + (i * panels + p) * 16) : _mm512_setzero_ps();
        }
    }
}

RFT_INLINE void store_acc(rft__acc c, int rows, int panels, float *acc) {
    RFT_UNROLL
    for (int i = 0; i < rows; i++) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            _mm512_storeu_ps(acc + (i * panels + p) * 16, c[i][p]);
        }
    }
}

/* One k of the tile. */
RFT_INLINE void step(rft__acc c, int rows, int panels, const float *x, const __m512 *w) {
    RFT_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m512 xi = _mm512_set1_ps(x[i]);
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            c[i][p] = _mm512_fmadd_ps(xi, w[p], c[i][p]);
        }
    }
}

/* Line number `line` of the panels is being read: fetch what is due of those ahead. */
RFT_INLINE void fetch(int panels, int64_t line, int64_t mask, const char **ahead, size_t stride) {
    if ((line & mask) == 0) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            _mm_prefetch(*ahead + (size_t)p * stride, _MM_HINT_T1);
        }
        *ahead += 64;
    }
}

RFT_INLINE void tile_f32(int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                         bool accumulate, const rft__ahead *ahead) {
    const char *next = ahead->w;
    rft__acc c;
    load_acc(c, rows, panels, acc, accumulate);
    for (int64_t i = 0; i < k; i++) {
        __m512 wk[RFT__MAX_PANELS];
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            wk[p] = _mm512_loadu_ps(w + (size_t)p * w_stride);
        }
        fetch(panels, i, ahead->mask, &next, ahead->stride);
        step(c, rows, panels, x, wk);
        x += rows;
        w += 64;
    }
    store_acc(c, rows, panels, acc);
}

RFT_INLINE void step_f16(rft__acc c, int rows, int panels, const float *x, const char *w, size_t w_stride) {
    __m512 wk[RFT__MAX_PANELS];
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        wk[p] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(w + (size_t)p * w_stride)));
    }
    step(c, rows, panels, x, wk);
}

RFT_INLINE void tile_f16(int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                         bool accumulate, const rft__ahead *ahead) {
    const char *next = ahead->w;
    rft__acc c;
    load_acc(c, rows, panels, acc, accumulate);
    for (int64_t i = 0; i < k / 2; i++) {
        fetch(panels, i, ahead->mask, &next, ahead->stride);
        step_f16(c, rows, panels, x, w, w_stride);
        RFT_NO_HOIST();
        step_f16(c, rows, panels, x + rows, w + 32, w_stride);
        x += 2 * rows;
        w += 64;
    }
    if (k % 2 != 0) {
        step_f16(c, rows, panels, x, w, w_stride);
    }
    store_acc(c, rows, panels, acc);
}

/* A lane of a bf16 panel holds k in its low half and k + 1 in its high half: f32 by a shift and by a masked
 * load (which the compiler cannot merge with the first load, and so spill; no register holds a mask constant). */
RFT_INLINE void tile_bf16(int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                          bool accumulate, const rft__ahead *ahead) {
    const char *next = ahead->w;
    rft__acc c;
    load_acc(c, rows, panels, acc, accumulate);
    for (int64_t i = 0; 2 * i < k; i++) {
        __m512 wk[RFT__MAX_PANELS];
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            wk[p] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(w + (size_t)p * w_stride), 16));
        }
        fetch(panels, i, ahead->mask, &next, ahead->stride);
        step(c, rows, panels, x, wk);
        RFT_NO_HOIST();
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            wk[p] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(0xaaaaaaaau, w + (size_t)p * w_stride));
        }
        step(c, rows, panels, x + rows, wk);
        x += 2 * rows;
        w += 64;
    }
    store_acc(c, rows, panels, acc);
}

RFT_FAMILY(rft__family_f32_f32_avx512, f32, 14, 14, 9, 6)
RFT_FAMILY(rft__family_f32_f16_avx512, f16, 14, 14, 8, 6)
RFT_FAMILY(rft__family_f32_bf16_avx512, bf16, 14, 14, 8, 6)
