/* SPDX-License-Identifier: Apache-2.0
 *
 * dot_avx512_body.h - what the dot kernels of the 512-bit levels share; see cpu/dot_body.h.
 */
#ifndef RFT_CPU_AVX512_DOT_AVX512_BODY_H
#define RFT_CPU_AVX512_DOT_AVX512_BODY_H

#include "cpu/tile_family.h"

#include <immintrin.h>

typedef __m512 vec;

RFT_INLINE vec zero(void) { return _mm512_setzero_ps(); }

RFT_INLINE float sum_1(vec v) { return _mm512_reduce_add_ps(v); }

/* Pairs, quadruples within each quarter, then the quarters. */
RFT_INLINE __m128 sum_4(const vec v[4]) {
    const __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
    const __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
    const __m512 c = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xee));
    const __m256 d = _mm256_add_ps(_mm512_castps512_ps256(c), _mm512_extractf32x8_ps(c, 1));
    return _mm_add_ps(_mm256_castps256_ps128(d), _mm256_extractf128_ps(d, 1));
}

/* 24 sums of 32 registers at three and at six rows. */
RFT_INLINE int columns_at_once(int rows) { return rows <= 3 ? 8 : 4; }

#endif
