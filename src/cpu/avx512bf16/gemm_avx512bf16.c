/* SPDX-License-Identifier: Apache-2.0
 *
 * gemm_avx512bf16.c - register tiles with vdpbf16ps: a lane multiplies two bf16 pairs and adds both products to its f32.
 *
 * Tiles and registers as in gemm_avx512.c, but a step is two k: at 14x32 it is 16 loads, 128 bytes of W and 1792 FLOPs.
 * The instruction flushes denormal inputs and results to zero and rounds each of its two additions, hence eta and gamma of
 * its rows. It runs at twice the FMA rate on some parts and at half of it on others: the choice is measured (cpu_rate.c).
 */
#include "cpu/tile_family.h"

#include <immintrin.h>
#include <string.h>

typedef __m512 rft__acc[RFT__MAX_ROWS][RFT__MAX_PANELS];

RFT_INLINE void tile_dot(int rows, int panels, int64_t k, const char *x, const char *w, size_t w_stride, float *acc,
                         bool accumulate, const rft__ahead *ahead) {
    const char *next = ahead->w;
    rft__acc c;
    RFT_UNROLL
    for (int i = 0; i < rows * panels; i++) {
        c[i / panels][i % panels] = accumulate ? _mm512_loadu_ps(acc + i * 16) : _mm512_setzero_ps();
    }
    for (int64_t i = 0; 2 * i < k; i++) {
        __m512bh wk[RFT__MAX_PANELS];
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            wk[p] = (__m512bh)_mm512_loadu_si512(w + (size_t)p * w_stride);
        }
        if ((i & ahead->mask) == 0) {
            RFT_UNROLL
            for (int p = 0; p < panels; p++) {
                _mm_prefetch(next + (size_t)p * ahead->stride, _MM_HINT_T1);
            }
            next += 64;
        }
        RFT_UNROLL
        for (int r = 0; r < rows; r++) {
            int32_t pair; /* x may be aligned to 2 bytes only */
            memcpy(&pair, x + 4 * r, sizeof pair);
            const __m512bh xr = (__m512bh)_mm512_set1_epi32(pair);
            RFT_UNROLL
            for (int p = 0; p < panels; p++) {
                c[r][p] = _mm512_dpbf16_ps(c[r][p], xr, wk[p]);
            }
        }
        x += 4 * rows;
        w += 64;
    }
    RFT_UNROLL
    for (int i = 0; i < rows * panels; i++) {
        _mm512_storeu_ps(acc + i * 16, c[i / panels][i % panels]);
    }
}

RFT_FAMILY(rft__family_bf16_bf16_avx512bf16, dot, 28, 14, 9, 6)
