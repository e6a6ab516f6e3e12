/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_avx512.c - register tiles with f32 FMA on AVX-512, for W panels of f32, bf16 and f16 (widened in registers).
 *
 *               16 columns a zmm
 *           w0 |w1 |w2 |w3          28x16: 28 accumulators + 1 w of 32 registers
 *     x[0]  c  | c | c | c          14x32: 28 + 2 + 1 x
 *     x[1]  c  | c | c | c           9x48: 27 + 3 + 1
 *     ...                            6x64: 24 + 4 + 1 (bf16: both halves of a pair, 28 + ...)
 *
 * A step of k loads `panels` w vectors and broadcasts `rows` scalars for rows * panels FMAs: at 14x32 that is 6 loads as
 * instructions and 20 inside of FMAs, 128 bytes of f32 W and 896 FLOPs a k. Measured of 14x32, by rows loaded inside of FMAs:
 *     none, 1/2, 3/4, all: GFLOP/s in L1 of one Zen 4 core at 113.4  f32 109.3 113.2 112.9 112.9, f16 104.6 113.1 113.1 112.8
 *     none, 1/2, 3/4: Emerald Rapids, siblings busy, m = 64, speed-up  f32 1 1.05 1.05, bf16 1 1.05 1.10 (idle: all the same)
 * k unrolled by 2 gains nothing more. 6x64 loses by it on Zen 4, 9x48 has no instruction to spare.
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

/* An FMA can broadcast its row of X from memory itself. That spares the instruction which would load it for several FMAs, but
 * each then takes a load, and there are no more load ports than FMA ports. One panel has nothing to share; beside two, three rows
 * of four are loaded twice. The compiler would merge equal loads: so X is walked by two pointers, of which it does not know that
 * they are equal. */
typedef struct x_pair {
    const float *x, *again;
} x_pair;

RFT_INLINE x_pair x_begin(int panels, const float *x) {
    x_pair pair = {x, x};
    if (panels == 2) {
        __asm__("" : "+r"(pair.again));
    }
    return pair;
}

RFT_INLINE x_pair x_after(x_pair x, int n) { return (x_pair){x.x + n, x.again + n}; }

/* One k of the tile. */
RFT_INLINE void step(rft__acc c, int rows, int panels, x_pair x, const __m512 *w) {
    RFT_UNROLL
    for (int i = 0; i < rows; i++) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            const float *xi = (i % 4 != 0 && p == 1 ? x.again : x.x) + i;
            c[i][p] = _mm512_fmadd_ps(_mm512_set1_ps(*xi), w[p], c[i][p]);
        }
    }
}

/* `left` lines of each panel are still to be read: fetch what is due of those ahead. */
RFT_INLINE void fetch(int panels, int64_t left, rft__ahead *ahead) {
    if ((left & ahead->mask) == 0) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            _mm_prefetch(ahead->w + (size_t)p * ahead->stride, _MM_HINT_T1);
        }
        ahead->w += 64;
    }
}

RFT_INLINE void tile_f32(int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                         bool accumulate, const rft__ahead *ahead) {
    rft__ahead next = *ahead;
    x_pair at = x_begin(panels, x);
    rft__acc c;
    load_acc(c, rows, panels, acc, accumulate);
    for (int64_t left = k; left > 0; left--) {
        __m512 wk[RFT__MAX_PANELS];
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            wk[p] = _mm512_loadu_ps(w + (size_t)p * w_stride);
        }
        fetch(panels, left, &next);
        step(c, rows, panels, at, wk);
        at = x_after(at, rows);
        w += 64;
    }
    store_acc(c, rows, panels, acc);
}

RFT_INLINE void step_f16(rft__acc c, int rows, int panels, x_pair x, const char *w, size_t w_stride) {
    __m512 wk[RFT__MAX_PANELS];
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        wk[p] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(w + (size_t)p * w_stride)));
    }
    step(c, rows, panels, x, wk);
}

RFT_INLINE void tile_f16(int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                         bool accumulate, const rft__ahead *ahead) {
    rft__ahead next = *ahead;
    x_pair at = x_begin(panels, x);
    rft__acc c;
    load_acc(c, rows, panels, acc, accumulate);
    for (int64_t left = k / 2; left > 0; left--) {
        fetch(panels, left, &next);
        step_f16(c, rows, panels, at, w, w_stride);
        RFT_NO_HOIST();
        step_f16(c, rows, panels, x_after(at, rows), w + 32, w_stride);
        at = x_after(at, 2 * rows);
        w += 64;
    }
    if (k % 2 != 0) {
        step_f16(c, rows, panels, at, w, w_stride);
    }
    store_acc(c, rows, panels, acc);
}

/* A lane of a bf16 panel holds k in its low half and k + 1 in its high half: f32 by a shift and by a masked
 * load (which the compiler cannot merge with the first load, and so spill; no register holds a mask constant). */
RFT_INLINE void tile_bf16(int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                          bool accumulate, const rft__ahead *ahead) {
    rft__ahead next = *ahead;
    x_pair at = x_begin(panels, x);
    rft__acc c;
    load_acc(c, rows, panels, acc, accumulate);
    for (int64_t left = (k + 1) / 2; left > 0; left--) {
        __m512 wk[RFT__MAX_PANELS];
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            wk[p] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(w + (size_t)p * w_stride), 16));
        }
        fetch(panels, left, &next);
        step(c, rows, panels, at, wk);
        RFT_NO_HOIST();
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            wk[p] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(0xaaaaaaaau, w + (size_t)p * w_stride));
        }
        step(c, rows, panels, x_after(at, rows), wk);
        at = x_after(at, 2 * rows);
        w += 64;
    }
    store_acc(c, rows, panels, acc);
}

RFT_FAMILY(rft__family_f32_f32_avx512, f32, 28, 14, 9, 6)
RFT_FAMILY(rft__family_f32_f16_avx512, f16, 28, 14, 8, 6)
RFT_FAMILY(rft__family_f32_bf16_avx512, bf16, 28, 14, 8, 6)
