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

RFT_INLINE uint32_t words_largest(ivec v) {
    const __m256i most = _mm256_max_epu32(v.a, v.b);
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(four, _mm_shuffle_epi32(four, 0xb1)));
}

RFT_INLINE void bytes_store(signed char *p, ivec v) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.a, v.b), 0xd8);
    const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
    _mm_storeu_si128((__m128i *)(void *)p, _mm_packs_epi16(low, high));
}

#include "cpu/codes8_body.h"

#include "cpu/avx2/pack_avx2.h"

CODES8_LEVEL(avx2, 4, 2, 0, 4)
