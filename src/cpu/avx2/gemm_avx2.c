/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_avx2.c - register tiles with f32 FMA on AVX2 (with F16C), for W panels of f32, bf16 and f16.
 *
 *     a panel of 16 columns is two ymm; 6x16: 12 accumulators + 2 w + 1 x of 16 registers, 3x32: 12 + 1 w + 3 x
 *
 * A step of k at 6x16 is 8 loads, 64 bytes of f32 W and 192 FLOPs. Zen 4, one thread, m = 64: 104 to 107 of 114 GFLOP/s for
 * each type of W.
 */
#include "cpu/tile_family.h"

#include <immintrin.h>

enum { AVX2_ROWS = 6, AVX2_VECTORS = 8 };
/* Keeps a sum in its register from one k to the next: gcc would hand it round, which spills one where all sixteen are in use. */
#define RFT_STAY(sum) __asm__("" : "+x"(sum))

typedef __m256 rft__acc[AVX2_ROWS][AVX2_VECTORS];

RFT_INLINE void load_acc(rft__acc c, int rows, int vectors, const float *acc, bool accumulate) {
    RFT_UNROLL
    for (int i = 0; i < rows * vectors; i++) {
        c[i / vectors][i % vectors] = accumulate ? _mm256_loadu_ps(acc + i * 8) : _mm256_setzero_ps();
    }
}

RFT_INLINE void store_acc(rft__acc c, int rows, int vectors, float *acc) {
    RFT_UNROLL
    for (int i = 0; i < rows * vectors; i++) {
        _mm256_storeu_ps(acc + i * 8, c[i / vectors][i % vectors]);
    }
}

/* Read anew at each use, for beside the accumulators no register is left to hold it. */
#define RFT_HIGH_HALVES ((int64_t)0xffff0000ffff0000u)
static const volatile __m256i high_halves = {RFT_HIGH_HALVES, RFT_HIGH_HALVES, RFT_HIGH_HALVES, RFT_HIGH_HALVES};

/* The eight columns of vector v at one k, widened; half: which k of a bf16 pair. */
RFT_INLINE __m256 load_w(rft_type type, const char *w, size_t w_stride, int v, int half) {
    const char *panel = w + (size_t)(v / 2) * w_stride;
    if (type == RFT_F32) {
        return _mm256_loadu_ps((const float *)panel + v % 2 * 8);
    }
    if (type == RFT_F16) {
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)panel + v % 2));
    }
    const __m256i pair = _mm256_loadu_si256((const __m256i *)panel + v % 2);
    return _mm256_castsi256_ps(half == 0 ? _mm256_slli_epi32(pair, 16) : _mm256_and_si256(pair, high_halves));
}

/* One k. Few rows: all x in registers, W streamed through one; many rows: the reverse. */
RFT_INLINE void step(rft__acc c, rft_type type, int rows, int vectors, const float *x, const char *w, size_t w_stride, int half) {
    if (rows <= 3) {
        __m256 xk[3];
        RFT_UNROLL
        for (int i = 0; i < rows; i++) {
            xk[i] = _mm256_broadcast_ss(x + i);
        }
        RFT_UNROLL
        for (int v = 0; v < vectors; v++) {
            const __m256 wk = load_w(type, w, w_stride, v, half);
            RFT_UNROLL
            for (int i = 0; i < rows; i++) {
                c[i][v] = _mm256_fmadd_ps(xk[i], wk, c[i][v]);
                RFT_STAY(c[i][v]);
            }
        }
        return;
    }
    const __m256 w0 = load_w(type, w, w_stride, 0, half), w1 = load_w(type, w, w_stride, 1, half);
    RFT_UNROLL
    for (int i = 0; i < rows; i++) {
        const __m256 xi = _mm256_broadcast_ss(x + i);
        c[i][0] = _mm256_fmadd_ps(xi, w0, c[i][0]);
        c[i][1] = _mm256_fmadd_ps(xi, w1, c[i][1]);
    }
}

RFT_INLINE void tile(rft_type type, int rows, int panels, int64_t k, const float *x, const char *w, size_t w_stride, float *acc,
                     bool accumulate, const rft__ahead *ahead) {
    const char *next = ahead->w;
    const int step_k = type == RFT_BF16 ? 2 : 1;
    rft__acc c;
    load_acc(c, rows, 2 * panels, acc, accumulate);
    for (int64_t i = 0; i < k; i += step_k) {
        if ((i / step_k & ahead->mask) == 0) {
            RFT_UNROLL
            for (int p = 0; p < panels; p++) {
                _mm_prefetch(next + (size_t)p * ahead->stride, _MM_HINT_T1);
            }
            next += type == RFT_F16 ? 32 : 64;
        }
        step(c, type, rows, 2 * panels, x, w, w_stride, 0);
        if (type == RFT_BF16) {
            RFT_NO_HOIST();
            step(c, type, rows, 2 * panels, x + rows, w, w_stride, 1);
        }
        x += step_k * rows;
        w += type == RFT_F16 ? 32 : 64;
    }
    store_acc(c, rows, 2 * panels, acc);
}

#define tile_f32(...) tile(RFT_F32, __VA_ARGS__)
#define tile_f16(...) tile(RFT_F16, __VA_ARGS__)
#define tile_bf16(...) tile(RFT_BF16, __VA_ARGS__)

RFT_FAMILY(rft__family_f32_f32_avx2, f32, 6, 3, 2, 1)
RFT_FAMILY(rft__family_f32_f16_avx2, f16, 6, 3, 2, 1)
RFT_FAMILY(rft__family_f32_bf16_avx2, bf16, 6, 3, 2, 1)
