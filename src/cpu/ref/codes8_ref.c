/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_ref.c - panels of codes times x in 8 bits, in portable C; see cpu/codes8_body.h.
 */
#include "cpu/ref/codes_ref_body.h"

RFT_INLINE uint32_t dot_word(uint32_t q, uint32_t x) {
    int32_t sum = 0;
    for (int i = 0; i < 32; i += 8) {
        sum += (int32_t)(q >> i & 255u) * ((int32_t)((x >> i & 255u) ^ 128u) - 128);
    }
    return (uint32_t)sum;
}

RFT_INLINE ivec dot_quads(bool wide, ivec sum, const ivec *q, const int32_t *x, int stride) {
    (void)wide;
    for (int t = 0; t < 4; t++) {
        for (int i = 0; i < RFT__COLUMNS; i++) {
            sum.at[i] += dot_word(q[t].at[i], (uint32_t)x[t * stride]);
        }
    }
    return sum;
}

#include "cpu/codes8_body.h"

#include "cpu/ref/pack_ref.h"

CODES_FAMILY(rft__codes_i8_q2m_ref, q2m, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q3_ref, q3, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q4_ref, q4, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q4m_ref, q4m, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q4z_ref, q4z, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q5_ref, q5, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q5m_ref, q5m, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q6_ref, q6, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q8_ref, q8, 1, 0, 2)
CODES_FAMILY(rft__codes_i8_q8z_ref, q8z, 1, 0, 2)

void rft__quantise_ref(const rft__packing *packing, const float *x, int64_t stride, int rows, int64_t k, void *dst) {
    quantise(packing, x, stride, rows, k, dst);
}

void rft__record_ref(const rft__packing *packing, const signed char *x, int64_t stride, const float *scale,
                     int64_t scale_stride, int rows, int64_t k, void *dst) {
    record(packing, x, stride, scale, scale_stride, rows, k, dst);
}
