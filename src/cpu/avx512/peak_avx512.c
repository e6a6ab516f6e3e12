/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx512.c - the rates of vfmadd231ps and of vpdpbusd on zmm in registers. See cpu/peak_body.h; called through cpu/peak.c.
 * Registers: 16 accumulators and an operand of 32. Two issues a cycle of latency 4 or 5 need 10 chains.
 */
#include <immintrin.h>
#include <stdint.h>

typedef uint32_t sums __attribute__((vector_size(64)));

#define PEAK_NAME       rft__peak_fma_f32_avx512
#define PEAK_CHAINS     16
#define PEAK_FLOPS      (16 * 2)
#define PEAK_SUM        __m512
#define PEAK_ELEM       float
#define PEAK_X          __m512
#define PEAK_HALF       _mm512_set1_ps(0.5f)
#define PEAK_STEP(s, x) _mm512_fmadd_ps(s, x, x)
#include "cpu/peak_body.h"

#define PEAK_NAME       rft__peak_dot_i8_avx512
#define PEAK_CHAINS     16
#define PEAK_FLOPS      (16 * 4 * 2)
#define PEAK_SUM        sums
#define PEAK_ELEM       uint32_t
#define PEAK_X          __m512i
#define PEAK_HALF       _mm512_set1_epi8(64)
#define PEAK_STEP(s, x) ((sums)_mm512_dpbusd_epi32((__m512i)(s), x, x))
#include "cpu/peak_body.h"
