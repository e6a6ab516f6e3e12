/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx2.c - the rate of vfmadd231ps in registers. Called through cpu/peak.c.
 * Registers: 12 accumulators and two operands of 16. Two issues a cycle of latency 4 or 5 need 10 chains.
 */
#include "cpu/peak.h"
#include "cpu/tile_family.h"

#include <immintrin.h>

enum { CHAINS = 12, LANES = 8 };

void rft__peak_fma_f32_avx2(int64_t iterations, double *flops) {
    volatile float half = 0.5f; /* a value that the compiler must not know */
    const __m256 factor = _mm256_set1_ps(half);
    __m256 sum[CHAINS];
    RFT_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm256_set1_ps((float)i);
    }
    for (int64_t n = 0; n < iterations; n++) {
        RFT_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm256_fmadd_ps(sum[i], factor, factor);
        }
    }
    RFT_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm256_add_ps(sum[0], sum[i]);
    }
    half = _mm256_cvtss_f32(sum[0]);
    *flops += (double)iterations * CHAINS * LANES * 2;
}
