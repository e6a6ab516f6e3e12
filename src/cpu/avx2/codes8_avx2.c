/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx2.c - panels of codes times x in 8 bits on AVX2; see cpu/codes8_body.h.
 *
 * vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits with saturation. Bytes up to 127 cannot reach it
 * (2 * 127 * 128 < 2^15); others are split into nibbles, whose two sums meet in 32 bits: so no sum is ever cut.
 *
 *     4 rows x 1 panel: 8 sums; quads come from the stack
 */
#include "cpu/avx2/codes_avx2_body.h"

RFT_INLINE __m256i add_pairs(__m256i sum, __m256i q, __m256i x, int weight) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(q, x), _mm256_set1_epi16((short)weight)));
}

RFT_INLINE __m256i dot_half(bool wide, __m256i sum, __m256i q, __m256i x) {
    if (!wide) {
        return add_pairs(sum, q, x, 1);
    }
    const __m256i low = _mm256_set1_epi8(15);
    sum = add_pairs(sum, _mm256_and_si256(q, low), x, 1);
    return add_pairs(sum, _mm256_and_si256(_mm256_srli_epi16(q, 4), low), x, 16);
}

RFT_INLINE ivec dot_quads(bool wide, ivec sum, const ivec *q, const int32_t *x, int stride) {
    RFT_UNROLL
    for (int t = 0; t < 4; t++) {
        const __m256i four = _mm256_set1_epi32(x[t * stride]);
        sum.a = dot_half(wide, sum.a, q[t].a, four);
        sum.b = dot_half(wide, sum.b, q[t].b, four);
    }
    return sum;
}

#include "cpu/codes8_body.h"

#include "cpu/avx2/pack_avx2.h"

CODES_FAMILY(rft__codes_i8_q2m_avx2, q2m, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q3_avx2, q3, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q4_avx2, q4, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q4m_avx2, q4m, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q4z_avx2, q4z, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q5_avx2, q5, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q5m_avx2, q5m, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q6_avx2, q6, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q8_avx2, q8, 2, 1, 4)
CODES_FAMILY(rft__codes_i8_q8z_avx2, q8z, 2, 1, 4)

void rft__quantise_avx2(const rft__packing *packing, const float *x, int64_t stride, int rows, int64_t k, void *dst) {
    quantise(packing, x, stride, rows, k, dst);
}

void rft__record_avx2(const rft__packing *packing, const signed char *x, int64_t stride, const float *scale,
                      int64_t scale_stride, int rows, int64_t k, void *dst) {
    record(packing, x, stride, scale, scale_stride, rows, k, dst);
}
