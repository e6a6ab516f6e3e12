/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx512.c - the rate of vfmadd231ps on zmm in registers. Called through cpu/peak.c.
 * Registers: 16 accumulators and two operands of 32. Two issues a cycle of latency 4 or 5 need 10 chains.
 */
#include "cpu/peak.h"
#include "cpu/tile_family.h"

#include <immintrin.h>

enum { CHAINS = 16, LANES = 16 };

void rft__peak_fma_f32_avx512(int64_t iterations, double *flops) {
    volatile float half = 0.5f; /* a value that the compiler must not know */
    const __m512 factor = _mm512_set1_ps(half);
    __m512 sum[CHAINS];
    RFT_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm512_set1_ps((float)i);
    }
    for (int64_t n = 0; n < iterations; n++) {
        RFT_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm512_fmadd_ps(sum[i], factor, factor);
        }
    }
    RFT_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    }
    half = _mm512_cvtss_f32(sum[0]);
    *flops += (double)iterations * CHAINS * LANES * 2;
}
