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

CODES8_LEVEL(ref, 2, 0, 0, 2)
