/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx2vnni.c - the rate of vpdpbusd on ymm in registers. See cpu/peak_body.h; called through cpu/peak.c.
 * Registers: 12 accumulators and an operand of 16. Two issues a cycle of latency 4 or 5 need 10 chains.
 */
#include "cpu/avx2vnni/vpdpbusd_avx2vnni.h"

#include <stdint.h>

typedef uint32_t sums __attribute__((vector_size(32)));

#define PEAK_NAME       rft__peak_dot_i8_avx2vnni
#define PEAK_CHAINS     12
#define PEAK_FLOPS      (8 * 4 * 2)
#define PEAK_SUM        sums
#define PEAK_ELEM       uint32_t
#define PEAK_X          __m256i
#define PEAK_HALF       _mm256_set1_epi8(64)
#define PEAK_STEP(s, x) ((sums)rft__vpdpbusd((__m256i)(s), x, x))
#include "cpu/peak_body.h"
