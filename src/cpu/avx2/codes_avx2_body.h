/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_avx2_body.h - the vectors of cpu/codes_panel_body.h on AVX2: two ymm, columns 0 to 7 and 8 to 15.
 */
#ifndef RFT_CPU_AVX2_CODES_AVX2_BODY_H
#define RFT_CPU_AVX2_CODES_AVX2_BODY_H

#include "cpu/tile_family.h"

#include <immintrin.h>

typedef struct vec {
    __m256 a, b;
} vec;

typedef struct ivec {
    __m256i a, b;
} ivec;

typedef vec table; /* entries 0 to 7 and 8 to 15 */

RFT_INLINE vec vec_zero(void) { return (vec){_mm256_setzero_ps(), _mm256_setzero_ps()}; }
RFT_INLINE vec vec_load(const float *p) { return (vec){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
RFT_INLINE void vec_store(float *p, vec v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
}
RFT_INLINE vec vec_set(float f) { return (vec){_mm256_set1_ps(f), _mm256_set1_ps(f)}; }
RFT_INLINE vec vec_mul(vec x, vec y) { return (vec){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
RFT_INLINE vec vec_sub(vec x, vec y) { return (vec){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
RFT_INLINE vec vec_div(vec x, vec y) { return (vec){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
RFT_INLINE vec vec_fma(vec x, vec y, vec z) { return (vec){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }

RFT_INLINE __m128i codes_load16(const void *p) { return _mm_loadu_si128(p); }
RFT_INLINE __m128i codes_load8(const void *p) { return _mm_loadl_epi64(p); }

RFT_INLINE vec vec_from_words(ivec v) { return (vec){_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)}; }
RFT_INLINE vec vec_cast(ivec v) { return (vec){_mm256_castsi256_ps(v.a), _mm256_castsi256_ps(v.b)}; }
RFT_INLINE ivec vec_bits(vec v) { return (ivec){_mm256_castps_si256(v.a), _mm256_castps_si256(v.b)}; }
RFT_INLINE vec vec_from_f16(const char *p) {
    return (vec){_mm256_cvtph_ps(codes_load16(p)), _mm256_cvtph_ps(codes_load16(p + 16))};
}
RFT_INLINE vec vec_from_i8(const char *p) {
    return vec_from_words((ivec){_mm256_cvtepi8_epi32(codes_load8(p)), _mm256_cvtepi8_epi32(codes_load8(p + 8))});
}
RFT_INLINE vec vec_from_i16(const char *p) {
    return vec_from_words((ivec){_mm256_cvtepi16_epi32(codes_load16(p)), _mm256_cvtepi16_epi32(codes_load16(p + 16))});
}

RFT_INLINE ivec words_load(const void *p) {
    return (ivec){_mm256_loadu_si256(p), _mm256_loadu_si256((const __m256i *)p + 1)};
}
RFT_INLINE void words_store(int32_t *p, ivec v) {
    _mm256_storeu_si256((__m256i *)(void *)p, v.a);
    _mm256_storeu_si256((__m256i *)(void *)p + 1, v.b);
}
RFT_INLINE ivec words_set(int32_t n) { return (ivec){_mm256_set1_epi32(n), _mm256_set1_epi32(n)}; }
RFT_INLINE ivec words_from_u8(const void *p) {
    return (ivec){_mm256_cvtepu8_epi32(codes_load8(p)), _mm256_cvtepu8_epi32(codes_load8((const char *)p + 8))};
}
RFT_INLINE ivec words_from_u16(const void *p) {
    return (ivec){_mm256_cvtepu16_epi32(codes_load16(p)), _mm256_cvtepu16_epi32(codes_load16((const char *)p + 16))};
}
RFT_INLINE ivec words_and(ivec x, ivec y) { return (ivec){_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
RFT_INLINE ivec words_or(ivec x, ivec y) { return (ivec){_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
RFT_INLINE ivec words_add(ivec x, ivec y) { return (ivec){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
RFT_INLINE ivec words_max(ivec x, ivec y) { return (ivec){_mm256_max_epu32(x.a, y.a), _mm256_max_epu32(x.b, y.b)}; }
RFT_INLINE ivec words_shl(ivec v, int n) { return (ivec){_mm256_slli_epi32(v.a, n), _mm256_slli_epi32(v.b, n)}; }
RFT_INLINE ivec words_shr(ivec v, int n) { return (ivec){_mm256_srli_epi32(v.a, n), _mm256_srli_epi32(v.b, n)}; }
RFT_INLINE ivec words_sar(ivec v, ivec n) { return (ivec){_mm256_srav_epi32(v.a, n.a), _mm256_srav_epi32(v.b, n.b)}; }
RFT_INLINE ivec words_round(vec v) { return (ivec){_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b)}; }

RFT_INLINE __m256i or_half(__m256i v, __m256i mask, __m256i a) {
    return _mm256_or_si256(v, _mm256_and_si256(_mm256_cmpeq_epi32(_mm256_and_si256(v, mask), mask), a));
}

RFT_INLINE ivec words_or_where_all(ivec v, ivec mask, ivec x) {
    return (ivec){or_half(v.a, mask.a, x.a), or_half(v.b, mask.b, x.b)};
}

RFT_INLINE ivec bytes_max(ivec x, ivec y) { return (ivec){_mm256_max_epu8(x.a, y.a), _mm256_max_epu8(x.b, y.b)}; }

RFT_INLINE bool bytes_any_above(ivec v, int n) {
    const __m256i most = _mm256_max_epu8(v.a, v.b), limit = _mm256_set1_epi8((char)n);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(most, limit), limit)) != -1;
}

RFT_INLINE vec small_bias(float bias) { return vec_set(bias); }
RFT_INLINE vec small_value(ivec v, vec bias) { return vec_sub(vec_from_words(v), bias); }

RFT_INLINE table table_load(const float *p) { return vec_load(p); }

/* Each half looks up by three bits; bit 3, brought to the sign, chooses. */
RFT_INLINE __m256 table_half(table t, __m256i v) {
    const __m256 low = _mm256_permutevar8x32_ps(t.a, v), high = _mm256_permutevar8x32_ps(t.b, v);
    return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(v, 28)));
}

RFT_INLINE vec table_value(table t, ivec v) { return (vec){table_half(t, v.a), table_half(t, v.b)}; }

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

RFT_INLINE ivec bytes_look_up(const unsigned char *p, ivec v) {
    const __m256i t = _mm256_broadcastsi128_si256(codes_load16(p));
    return (ivec){_mm256_shuffle_epi8(t, v.a), _mm256_shuffle_epi8(t, v.b)};
}

#endif
