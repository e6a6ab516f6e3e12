/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx512bf16.c - the rate of vdpbf16ps on zmm in registers. Called through cpu/peak.c.
 * Registers: 20 accumulators and two operands of 32. Two issues a cycle of latency 5 or 6 need 12 chains.
 */
#include "cpu/peak.h"
#include "cpu/tile_family.h"

#include <immintrin.h>

enum { CHAINS = 20, LANES = 16, PAIR = 2 };

void rft__peak_dot_bf16_avx512bf16(int64_t iterations, double *flops) {
    volatile int halves = 0x3f003f00; /* two bf16 of 0.5; a value that the compiler must not know */
    const __m512bh factor = (__m512bh)_mm512_set1_epi32(halves);
    __m512 sum[CHAINS];
    RFT_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = _mm512_set1_ps((float)i);
    }
    for (int64_t n = 0; n < iterations; n++) {
        RFT_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm512_dpbf16_ps(sum[i], factor, factor);
        }
    }
    RFT_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] = _mm512_add_ps(sum[0], sum[i]);
    }
    halves = (int)_mm512_cvtss_f32(sum[0]);
    *flops += (double)iterations * CHAINS * LANES * PAIR * 2;
}
