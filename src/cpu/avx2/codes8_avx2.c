/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx2.c - panels of codes times x in 8 bits on AVX2; see cpu/codes8_body.h.
 *
 * vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits with saturation. Bytes up to 127 cannot reach it
 * (2 * 127 * 128 < 2^15); others are split into nibbles, whose two sums meet in 32 bits: so no sum is ever cut.
 *
 *     2 rows x 2 panels, 4 x 1: 8 sums; of a strip 8 totals, quads come from memory
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

RFT_INLINE ivec dot_quad(bool wide, ivec sum, ivec q, ivec x) {
    return (ivec){dot_half(wide, sum.a, q.a, x.a), dot_half(wide, sum.b, q.b, x.b)};
}

RFT_INLINE int32_t bytes_sum(const signed char *p) {
    const __m128i shifted = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8(-128));
    const __m128i sums = _mm_sad_epu8(shifted, _mm_setzero_si128());
    return _mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 16 * 128;
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

CODES8_FAMILY(rft__codes_i8_q2m_avx2, q2m, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q3_avx2, q3, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q4_avx2, q4, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q4m_avx2, q4m, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q4z_avx2, q4z, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q5_avx2, q5, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q5m_avx2, q5m, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q6_avx2, q6, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q8_avx2, q8, 4, 2, 0)
CODES8_FAMILY(rft__codes_i8_q8z_avx2, q8z, 4, 2, 0)
STRIP8_FAMILIES(rft__strip_i8_avx2, 4)

void rft__quantise_avx2(const rft__packing *packing, const float *x, int64_t k, rft__x8 *dst) { quantise(packing, x, k, dst); }

void rft__record_avx2(const rft__packing *packing, const signed char *x, const float *scale, int64_t k, rft__x8 *dst) {
    record(packing, x, scale, k, dst);
}

void rft__unpack_avx2(const rft__packing *packing, const char *w, int64_t k, char *dst) { unpack(packing, w, k, dst); }
