/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_ref.c - the f32 rate of portable C: a multiplication and an addition, since the baseline of x86-64 has no FMA.
 * Called through cpu/peak.c. Twelve vectors of four, independent, so that latency does not count.
 */
#include "cpu/peak.h"
#include "cpu/tile_family.h"

enum { CHAINS = 12, LANES = 4 };

typedef float vector __attribute__((vector_size(sizeof(float) * LANES)));

void rft__peak_fma_f32_ref(int64_t iterations, double *flops) {
    vector sum[CHAINS], factor = {0.5f, 0.5f, 0.5f, 0.5f}, term = {1.0f, 1.0f, 1.0f, 1.0f};
    __asm__ volatile("" : "+m"(factor), "+m"(term)); /* values that the compiler must not know */
    const vector f = factor, t = term;
    RFT_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum[i] = t * (float)i;
    }
    for (int64_t n = 0; n < iterations; n++) {
        RFT_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = sum[i] * f + t;
        }
    }
    RFT_UNROLL
    for (int i = 1; i < CHAINS; i++) {
        sum[0] += sum[i];
    }
    *(volatile vector *)&factor = sum[0];
    *flops += (double)iterations * CHAINS * LANES * 2;
}
