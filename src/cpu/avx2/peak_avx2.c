/* SPDX-License-Identifier: Apache-2.0
 *
 * peak_avx2.c - the rates of vfmadd231ps and of what multiplies bytes without VNNI (vpmaddubsw, vpmaddwd, vpaddd) in registers.
 * See cpu/peak_body.h; called through cpu/peak.c.
 * Registers: 12 accumulators and an operand of 16. Two issues a cycle of latency 4 or 5 need 10 chains; three of 11 in all, 8.
 */
#include <immintrin.h>
#include <stdint.h>

typedef uint32_t sums __attribute__((vector_size(32)));

#define PEAK_NAME       rft__peak_fma_f32_avx2
#define PEAK_CHAINS     12
#define PEAK_FLOPS      (8 * 2)
#define PEAK_SUM        __m256
#define PEAK_ELEM       float
#define PEAK_X          __m256
#define PEAK_HALF       _mm256_set1_ps(0.5f)
#define PEAK_STEP(s, x) _mm256_fmadd_ps(s, x, x)
#include "cpu/peak_body.h"

/* The sum is a factor too, so that no product is the same in each step. */
static inline sums add_products(sums s, __m256i x) {
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)s, x);
    return s + (sums)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

#define PEAK_NAME       rft__peak_madd_i8_avx2
#define PEAK_CHAINS     12
#define PEAK_FLOPS      (8 * 4 * 2)
#define PEAK_SUM        sums
#define PEAK_ELEM       uint32_t
#define PEAK_X          __m256i
#define PEAK_HALF       _mm256_set1_epi8(64)
#define PEAK_STEP(s, x) add_products(s, x)
#include "cpu/peak_body.h"
