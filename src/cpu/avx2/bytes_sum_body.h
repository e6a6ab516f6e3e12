/* SPDX-License-Identifier: Apache-2.0
 *
 * bytes_sum_body.h - bytes_sum of cpu/codes8_body.h in 128 bits; avx512 has no better way.
 */
#ifndef RFT_CPU_AVX2_BYTES_SUM_BODY_H
#define RFT_CPU_AVX2_BYTES_SUM_BODY_H

#include "cpu/tile_family.h"

#include <immintrin.h>

RFT_INLINE int32_t bytes_sum(const signed char *p) {
    const __m128i shifted = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8(-128));
    const __m128i sums = _mm_sad_epu8(shifted, _mm_setzero_si128());
    return _mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 16 * 128;
}

#endif
