/* SPDX-License-Identifier: Apache-2.0
 *
 * sums_avx2.c - panels of codes times one row of x in f32 on AVX2, groups summed before they are scaled; see
 * cpu/codes_sums_body.h.
 *
 *     1 row x 2 panels: 4 sums, 2 of the table, 2 of a value, 1 of x; the 4 totals wait in memory for the end of a block
 */
#include "cpu/avx2/codes_avx2_body.h"

#define SUMS_CHAIN(name) rft__codes_f32_##name##_avx2

RFT_INLINE vec vec_add(vec x, vec y) { return (vec){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
RFT_INLINE vec vec_add_at(const float *x, vec y) { return vec_add(vec_set(*x), y); }
RFT_INLINE vec vec_fma_at(const float *x, vec y, vec z) { return vec_fma(vec_set(*x), y, z); }

#include "cpu/codes_sums_body.h"

SUMS_FAMILY(rft__sums_f32_q2m_avx2, q2m, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q3_avx2, q3, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q4_avx2, q4, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q4m_avx2, q4m, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q4z_avx2, q4z, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q5_avx2, q5, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q5m_avx2, q5m, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q6_avx2, q6, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q8_avx2, q8, 2, 1, 1)
SUMS_FAMILY(rft__sums_f32_q8z_avx2, q8z, 2, 1, 1)
