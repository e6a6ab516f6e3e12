/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_avx512.c - panels of codes times x in f32 on AVX-512; see cpu/codes_body.h.
 *
 *     4 rows x 4 panels: 16 sums, 4 scales, table, w, x and a code of 32 registers; 16 x 1: 16 sums
 *
 * The kinds that most models are of have tiles of 16 rows, the others of 8: more would take the compiler a minute.
 *
 * 16 weights of four bits are a shift, a look-up among the 16 floats of a register (vpermps reads four bits of an index), a
 * product with the scale, and an FMA a row.
 */
#include "cpu/avx512/codes_avx512_body.h"

#include "cpu/codes_body.h"

#include "cpu/avx512/pack_avx512.h"

CODES_FAMILY(rft__codes_f32_q2m_avx512, q2m, 4, 4, 8)
CODES_FAMILY(rft__codes_f32_q3_avx512, q3, 4, 4, 8)
CODES_FAMILY(rft__codes_f32_q4_avx512, q4, 4, 4, 16)
CODES_FAMILY(rft__codes_f32_q4m_avx512, q4m, 4, 4, 16)
CODES_FAMILY(rft__codes_f32_q4z_avx512, q4z, 4, 4, 8)
CODES_FAMILY(rft__codes_f32_q5_avx512, q5, 4, 4, 8)
CODES_FAMILY(rft__codes_f32_q5m_avx512, q5m, 4, 4, 8)
CODES_FAMILY(rft__codes_f32_q6_avx512, q6, 4, 4, 8)
CODES_FAMILY(rft__codes_f32_q8_avx512, q8, 4, 4, 16)
CODES_FAMILY(rft__codes_f32_q8z_avx512, q8z, 4, 4, 8)
CODES_FAMILY(rft__codes_f32_f8_avx512, f8, 4, 4, 16)

void rft__widen_avx512(const rft__packing *packing, const char *w, int64_t k, float *dst) { widen(packing, w, k, dst); }
