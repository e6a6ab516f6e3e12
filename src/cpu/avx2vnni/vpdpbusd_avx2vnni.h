/* SPDX-License-Identifier: Apache-2.0
 *
 * vpdpbusd_avx2vnni.h - the one instruction that this level has and avx2 has not, by its VEX encoding, so that an assembler needs
 * no option for it and none of AVX-512 is taken. Tests put a stand-in in its place.
 */
#ifndef RFT_CPU_AVX2VNNI_VPDPBUSD_AVX2VNNI_H
#define RFT_CPU_AVX2VNNI_VPDPBUSD_AVX2VNNI_H

#include "cpu/tile_family.h"

#include <immintrin.h>

/* Each word of sum + q's four unsigned bytes times x's four signed ones, wrapping. */
RFT_INLINE __m256i rft__vpdpbusd(__m256i sum, __m256i q, __m256i x) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(q), "x"(x));
    return sum;
}

#endif
