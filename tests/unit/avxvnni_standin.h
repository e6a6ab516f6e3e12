/* SPDX-License-Identifier: Apache-2.0
 *
 * avxvnni_standin.h - vpdpbusd in plain AVX2, with the name and the guard of src/cpu/avx2vnni/vpdpbusd_avx2vnni.h: a file that
 * includes it first and then src/cpu/avx2vnni/codes8_avx2vnni.c runs that very text on any machine with AVX2.
 * unit.test_avxvnni compares it with the instruction, in the VEX and in the EVEX encoding, where the machine has one.
 */
#ifndef RFT_CPU_AVX2VNNI_VPDPBUSD_AVX2VNNI_H
#define RFT_CPU_AVX2VNNI_VPDPBUSD_AVX2VNNI_H

#include "cpu/tile_family.h"

#include <immintrin.h>

/* Even and odd bytes apart: a product is a word of 16 bits, and vpmaddwd adds two of them in 32. */
RFT_INLINE __attribute__((target("avx2"))) __m256i rft__vpdpbusd(__m256i sum, __m256i q, __m256i x) {
    const __m256i q_even = _mm256_and_si256(q, _mm256_set1_epi16(255)), q_odd = _mm256_srli_epi16(q, 8);
    const __m256i x_even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), x_odd = _mm256_srai_epi16(x, 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(q_even, x_even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(q_odd, x_odd));
}

#endif
