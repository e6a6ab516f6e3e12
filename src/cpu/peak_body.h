/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_body.h - the text of the arithmetic loops, compiled by peak_<isa>.c at the width of that level, once for each kind of
 * arithmetic. Before it, define what it takes away again:
 *     PEAK_NAME          the function's name
 *     PEAK_CHAINS        independent sums, enough to hide the latency of a step
 *     PEAK_FLOPS         of a step of one chain
 *     PEAK_SUM, PEAK_X   types of a sum and of an operand, PEAK_HALF an operand of 0.5s, or 64s of bytes
 *     PEAK_ELEM          type of a sum's element: float, or unsigned where it wraps
 *     PEAK_STEP(s, x)    the next sum, which stays finite
 */
#include "cpu/peak.h"
#include "cpu/tile_family.h"

void PEAK_NAME(int64_t iterations, double *flops) {
    PEAK_X half = PEAK_HALF;
    __asm__ volatile("" : "+m"(half)); /* a value that the compiler must not know */
    const PEAK_X x = half;
    PEAK_SUM sum[PEAK_CHAINS];
    RFT_UNROLL
    for (int i = 0; i < PEAK_CHAINS; i++) {
        sum[i] = (PEAK_SUM){0} + (PEAK_ELEM)i;
    }
    for (int64_t n = 0; n < iterations; n++) {
        RFT_UNROLL
        for (int i = 0; i < PEAK_CHAINS; i++) {
            sum[i] = PEAK_STEP(sum[i], x);
        }
    }
    RFT_UNROLL
    for (int i = 1; i < PEAK_CHAINS; i++) {
        sum[0] += sum[i];
    }
    PEAK_SUM total = sum[0];
    __asm__ volatile("" : "+m"(total)); /* a result that it must make */
    *flops += (double)iterations * PEAK_CHAINS * PEAK_FLOPS;
}

#undef PEAK_NAME
#undef PEAK_CHAINS
#undef PEAK_FLOPS
#undef PEAK_SUM
#undef PEAK_ELEM
#undef PEAK_X
#undef PEAK_HALF
#undef PEAK_STEP
