/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx2.c - the rate of vfmadd231ps in registers. See cpu/peak_body.h; called through cpu/peak.c.
 * Registers: 12 accumulators and an operand of 16. Two issues a cycle of latency 4 or 5 need 10 chains.
 */
#include <immintrin.h>

#define PEAK_NAME       rft__peak_fma_f32_avx2
#define PEAK_CHAINS     12
#define PEAK_FLOPS      (8 * 2)
#define PEAK_SUM        __m256
#define PEAK_X          __m256
#define PEAK_HALF       _mm256_set1_ps(0.5f)
#define PEAK_STEP(s, x) _mm256_fmadd_ps(s, x, x)
#include "cpu/peak_body.h"
