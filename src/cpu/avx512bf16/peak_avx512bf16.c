/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx512bf16.c - the rate of vdpbf16ps on zmm in registers. See cpu/peak_body.h; called through cpu/peak.c.
 * Registers: 20 accumulators and an operand of 32. Two issues a cycle of latency 5 or 6 need 12 chains.
 */
#include <immintrin.h>

#define PEAK_NAME       rft__peak_dot_bf16_avx512bf16
#define PEAK_CHAINS     20
#define PEAK_FLOPS      (16 * 2 * 2)
#define PEAK_SUM        __m512
#define PEAK_ELEM       float
#define PEAK_X          __m512bh
#define PEAK_HALF       ((__m512bh)_mm512_set1_epi32(0x3f003f00))
#define PEAK_STEP(s, x) _mm512_dpbf16_ps(s, x, x)
#include "cpu/peak_body.h"
