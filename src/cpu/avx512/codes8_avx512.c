/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx512.c - panels of codes times x in 8 bits on AVX-512 with VNNI; see cpu/codes8_body.h.
 *
 *     16 rows x 1 panel: 16 sums, 8 quads of bytes, 2 scales and 3 to work with of 32 registers
 *
 * A block of 32 k of four-bit codes is 4 loads, 12 operations to unpack and 8 vpdpbusd a row.
 */
#include "cpu/avx512/codes_avx512_body.h"

/* Codes are the unsigned operand, x the signed one. */
RFT_INLINE ivec dot_quads(bool wide, ivec sum, const ivec *q, const int32_t *x, int stride) {
    (void)wide;
    RFT_UNROLL
    for (int t = 0; t < 4; t++) {
        sum = _mm512_dpbusd_epi32(sum, q[t], _mm512_set1_epi32(x[t * stride]));
    }
    return sum;
}

#include "cpu/codes8_body.h"

#include "cpu/avx512/pack_avx512.h"

CODES_FAMILY(rft__codes_i8_q2m_avx512, q2m, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q3_avx512, q3, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q4_avx512, q4, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q4m_avx512, q4m, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q4z_avx512, q4z, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q5_avx512, q5, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q5m_avx512, q5m, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q6_avx512, q6, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q8_avx512, q8, 4, 2, 16)
CODES_FAMILY(rft__codes_i8_q8z_avx512, q8z, 4, 2, 16)

void rft__quantise_avx512(const rft__packing *packing, const float *x, int64_t stride, int rows, int64_t k, void *dst) {
    quantise(packing, x, stride, rows, k, dst);
}

void rft__record_avx512(const rft__packing *packing, const signed char *x, int64_t stride, const float *scale,
                        int64_t scale_stride, int rows, int64_t k, void *dst) {
    record(packing, x, stride, scale, scale_stride, rows, k, dst);
}
