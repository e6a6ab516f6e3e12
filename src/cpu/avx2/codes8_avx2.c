/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx2.c - panels of codes times x in 8 bits on AVX2; see cpu/codes8_body.h.
 *
 * vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits with saturation. Bytes up to 127 cannot reach it
 * (2 * 127 * 128 < 2^15); others are split into nibbles, whose two sums meet in 32 bits: so no sum is ever cut.
 *
 *     2 rows x 2 panels, 4 x 1: 8 sums; of a strip 8 totals, quads come from memory
 */
#include "cpu/avx2/bytes_sum_body.h"
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

RFT_INLINE ivec dot_quad(bool wide, ivec sum, ivec q, ivec x) {
    return (ivec){dot_half(wide, sum.a, q.a, x.a), dot_half(wide, sum.b, q.b, x.b)};
}

#include "cpu/codes8_body.h"

#include "cpu/avx2/pack_avx2.h"

CODES8_LEVEL(avx2, 4, 2, 0, 4)
