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

RFT_INLINE ivec dot_quad(bool wide, ivec sum, ivec q, ivec x) {
    (void)wide;
    EACH(ivec, sum.at[i] + dot_word(q.at[i], x.at[i]));
}

RFT_INLINE uint32_t words_largest(ivec v) {
    uint32_t most = 0;
    for (int i = 0; i < RFT__COLUMNS; i++) {
        most = v.at[i] > most ? v.at[i] : most;
    }
    return most;
}

RFT_INLINE void bytes_store(signed char *p, ivec v) {
    for (int i = 0; i < RFT__COLUMNS; i++) {
        p[i] = (signed char)(int32_t)v.at[i];
    }
}

RFT_INLINE int32_t bytes_sum(const signed char *p) {
    int32_t sum = 0;
    for (int i = 0; i < RFT__COLUMNS; i++) {
        sum += p[i];
    }
    return sum;
}

#include "cpu/codes8_body.h"

#include "cpu/ref/pack_ref.h"

CODES8_FAMILY(rft__codes_i8_q2m_ref, q2m, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q3_ref, q3, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q4_ref, q4, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q4m_ref, q4m, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q4z_ref, q4z, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q5_ref, q5, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q5m_ref, q5m, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q6_ref, q6, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q8_ref, q8, 2, 0, 0)
CODES8_FAMILY(rft__codes_i8_q8z_ref, q8z, 2, 0, 0)
STRIP8_FAMILIES(rft__strip_i8_ref, 2)

void rft__quantise_ref(const rft__packing *packing, const float *x, int64_t k, rft__x8 *dst) { quantise(packing, x, k, dst); }

void rft__record_ref(const rft__packing *packing, const signed char *x, const float *scale, int64_t k, rft__x8 *dst) {
    record(packing, x, scale, k, dst);
}

void rft__unpack_ref(const rft__packing *packing, const char *w, int64_t k, char *dst) { unpack(packing, w, k, dst); }
