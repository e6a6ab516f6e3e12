/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx512.c - the rate of vfmadd231ps on zmm in registers. See cpu/peak_body.h; called through cpu/peak.c.
 * Registers: 16 accumulators and an operand of 32. Two issues a cycle of latency 4 or 5 need 10 chains.
 */
#include <immintrin.h>

#define PEAK_NAME       rft__peak_fma_f32_avx512
#define PEAK_CHAINS     16
#define PEAK_FLOPS      (16 * 2)
#define PEAK_SUM        __m512
#define PEAK_X          __m512
#define PEAK_HALF       _mm512_set1_ps(0.5f)
#define PEAK_STEP(s, x) _mm512_fmadd_ps(s, x, x)
#include "cpu/peak_body.h"
