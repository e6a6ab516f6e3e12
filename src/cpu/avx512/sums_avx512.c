/* SPDX-License-Identifier: Apache-2.0
 *
 * sums_avx512.c - panels of codes times few rows of x in f32 on AVX-512, groups summed before they are scaled; see
 * cpu/codes_sums_body.h.
 *
 *     6 rows x 4 panels: 24 sums, the table, a value and a code of 32 registers; the 24 totals wait in memory for a block's end.
 *     With a minimum there is a sum of x for each row, too; beside codes that take several lines that leaves 5 rows.
 *
 * Eight k of a panel in four bits, one row: 7 shifts, 8 look-ups and 8 FMAs, of which two may begin a clock: 11.5. Zen 4 takes
 * 13.7 (one core beside busy neighbours, 2026-11-30), the chain of codes_avx512.c 19.
 */
#include "cpu/avx512/codes_avx512_body.h"

#define SUMS_CHAIN(name) rft__codes_f32_##name##_avx512

RFT_INLINE vec vec_add(vec a, vec b) { return _mm512_add_ps(a, b); }

/* x from memory, for all columns. */
RFT_INLINE vec vec_fma_at(const float *x, vec b, vec c) {
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*x));
    return c;
}

RFT_INLINE vec vec_add_at(const float *x, vec a) {
    __asm__("vaddps %1%{1to16%}, %0, %0" : "+v"(a) : "m"(*x));
    return a;
}

#include "cpu/codes_sums_body.h"

SUMS_FAMILY(rft__sums_f32_q2m_avx512, q2m, 4, 5, 5)
SUMS_FAMILY(rft__sums_f32_q3_avx512, q3, 4, 6, 6)
SUMS_FAMILY(rft__sums_f32_q4_avx512, q4, 4, 6, 6)
SUMS_FAMILY(rft__sums_f32_q4m_avx512, q4m, 4, 6, 6)
SUMS_FAMILY(rft__sums_f32_q4z_avx512, q4z, 4, 6, 6)
SUMS_FAMILY(rft__sums_f32_q5_avx512, q5, 4, 6, 6)
SUMS_FAMILY(rft__sums_f32_q5m_avx512, q5m, 4, 5, 5)
SUMS_FAMILY(rft__sums_f32_q6_avx512, q6, 4, 6, 6)
SUMS_FAMILY(rft__sums_f32_q8_avx512, q8, 4, 6, 6)
SUMS_FAMILY(rft__sums_f32_q8z_avx512, q8z, 4, 6, 6)
