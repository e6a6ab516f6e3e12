/* SPDX-License-Identifier: Apache-2.0
 *
 * codes_avx512_body.h - the vectors of cpu/codes_body.h on AVX-512 with VNNI: a zmm is a column's word or float for 16 columns.
 */
#ifndef RFT_CPU_AVX512_CODES_AVX512_BODY_H
#define RFT_CPU_AVX512_CODES_AVX512_BODY_H

#include "cpu/tile_family.h"

#include <immintrin.h>

typedef __m512 vec;
typedef __m512i ivec;
typedef __m512 table;

RFT_INLINE vec vec_zero(void) { return _mm512_setzero_ps(); }
RFT_INLINE vec vec_load(const float *p) { return _mm512_loadu_ps(p); }
RFT_INLINE void vec_store(float *p, vec v) { _mm512_storeu_ps(p, v); }
RFT_INLINE vec vec_set(float f) { return _mm512_set1_ps(f); }
RFT_INLINE vec vec_mul(vec a, vec b) { return _mm512_mul_ps(a, b); }
RFT_INLINE vec vec_sub(vec a, vec b) { return _mm512_sub_ps(a, b); }
RFT_INLINE vec vec_div(vec a, vec b) { return _mm512_div_ps(a, b); }
RFT_INLINE vec vec_fma(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }
RFT_INLINE vec vec_from_f16(const char *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
RFT_INLINE vec vec_from_i8(const char *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p)));
}
RFT_INLINE vec vec_from_i16(const char *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)));
}
RFT_INLINE vec vec_from_words(ivec v) { return _mm512_cvtepi32_ps(v); }
RFT_INLINE vec vec_cast(ivec v) { return _mm512_castsi512_ps(v); }
RFT_INLINE ivec vec_bits(vec v) { return _mm512_castps_si512(v); }

RFT_INLINE ivec words_load(const void *p) { return _mm512_loadu_si512(p); }
RFT_INLINE void words_store(int32_t *p, ivec v) { _mm512_storeu_si512(p, v); }
RFT_INLINE ivec words_set(int32_t n) { return _mm512_set1_epi32(n); }
RFT_INLINE ivec words_from_u8(const void *p) { return _mm512_cvtepu8_epi32(_mm_loadu_si128(p)); }
RFT_INLINE ivec words_from_u16(const void *p) { return _mm512_cvtepu16_epi32(_mm256_loadu_si256(p)); }
RFT_INLINE ivec words_and(ivec a, ivec b) { return _mm512_and_si512(a, b); }
RFT_INLINE ivec words_or(ivec a, ivec b) { return _mm512_or_si512(a, b); }
RFT_INLINE ivec words_add(ivec a, ivec b) { return _mm512_add_epi32(a, b); }
RFT_INLINE ivec words_max(ivec a, ivec b) { return _mm512_max_epu32(a, b); }
RFT_INLINE ivec words_shl(ivec v, int n) { return _mm512_slli_epi32(v, (unsigned)n); }
RFT_INLINE ivec words_shr(ivec v, int n) { return _mm512_srli_epi32(v, (unsigned)n); }
RFT_INLINE ivec words_sar(ivec v, ivec n) { return _mm512_srav_epi32(v, n); }
RFT_INLINE ivec words_round(vec v) { return _mm512_cvtps_epi32(v); }

RFT_INLINE ivec words_or_where_all(ivec v, ivec mask, ivec a) {
    return _mm512_mask_or_epi32(v, _mm512_cmpeq_epi32_mask(_mm512_and_si512(v, mask), mask), v, a);
}
RFT_INLINE ivec bytes_max(ivec a, ivec b) { return _mm512_max_epu8(a, b); }
RFT_INLINE bool bytes_any_above(ivec v, int n) { return _mm512_cmpgt_epu8_mask(v, _mm512_set1_epi8((char)n)) != 0; }

/* As the low bits of 2^23 + v: no conversion's latency, and its ports stay free. */
RFT_INLINE vec small_bias(float bias) { return _mm512_set1_ps(0x1p23f + bias); }
RFT_INLINE vec small_value(ivec v, vec bias) {
    return _mm512_sub_ps(_mm512_castsi512_ps(_mm512_or_si512(v, _mm512_set1_epi32(0x4b000000))), bias);
}

RFT_INLINE table table_load(const float *p) { return _mm512_loadu_ps(p); }
RFT_INLINE vec table_value(table t, ivec v) { return _mm512_permutexvar_ps(v, t); }

RFT_INLINE ivec bytes_look_up(const unsigned char *p, ivec v) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)p)), v);
}

#endif
