/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_avx2.c - panels of codes times x in f32 on AVX2; see cpu/codes_body.h.
 *
 *     a panel of 16 columns is two ymm; 1 row x 2 panels: 4 sums, 4 scales, 2 of the table; 4 x 1: 8 sums, 2 scales, the table
 */
#include "cpu/avx2/codes_avx2_body.h"

#include "cpu/codes_body.h"

#include "cpu/avx2/pack_avx2.h"

CODES_FAMILY(rft__codes_f32_q2m_avx2, q2m, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q3_avx2, q3, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q4_avx2, q4, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q4m_avx2, q4m, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q4z_avx2, q4z, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q5_avx2, q5, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q5m_avx2, q5m, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q6_avx2, q6, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q8_avx2, q8, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_q8z_avx2, q8z, 2, 1, 4)
CODES_FAMILY(rft__codes_f32_f8_avx2, f8, 2, 1, 4)

void rft__widen_avx2(const rft__packing *packing, const char *w, int64_t k, float *dst) { widen(packing, w, k, dst); }
