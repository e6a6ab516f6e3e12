/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx512.c - panels of codes times x in 8 bits on AVX-512 with VNNI; see cpu/codes8_body.h.
 *
 *     panels   6 rows x 4 panels, 8 x 2: 24 or 16 sums, 2 to 4 quads of bytes, x, constants to unpack, of 32 registers
 *     strips   16 rows x 1 panel: 16 totals, 8 quads of bytes, 2 scales, 3 to work with
 *
 * 32 k of a row and panel are 8 vpdpbusd, and with scales for 32 k a multiplication and an FMA on the same ports: 80 % of the
 * rate of vpdpbusd is the limit, 73 % with a minimum, 67 % with scales for 16 k, 94 % with scales for 128 k. Tiles in L1 reach
 * 77, 66, 64 and 87 %, whole products at m = 512 63, 55, 53 and 73 % (Zen 4, 2026-11-30: 470 GOP/s a core).
 */
#include "cpu/avx512/codes_avx512_body.h"

RFT_INLINE int32_t bytes_sum(const signed char *p) {
    const __m128i shifted = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8(-128));
    const __m128i sums = _mm_sad_epu8(shifted, _mm_setzero_si128());
    return _mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) - 16 * 128;
}

RFT_INLINE uint32_t words_largest(ivec v) { return _mm512_reduce_max_epu32(v); }

RFT_INLINE void bytes_store(signed char *p, ivec v) { _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(v)); }

/* Codes are the unsigned operand, x the signed one. gcc 12 copies the sums of its intrinsic from register to register, and some
 * to the stack, in every block of a loop. */
RFT_INLINE ivec dot_quad(bool wide, ivec sum, ivec q, ivec x) {
    (void)wide;
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(q), "v"(x));
    return sum;
}

#include "cpu/codes8_body.h"

#include "cpu/avx512/pack_avx512.h"

CODES8_FAMILY(rft__codes_i8_q2m_avx512, q2m, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q3_avx512, q3, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q4_avx512, q4, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q4m_avx512, q4m, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q4z_avx512, q4z, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q5_avx512, q5, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q5m_avx512, q5m, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q6_avx512, q6, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q8_avx512, q8, 8, 8, 6)
CODES8_FAMILY(rft__codes_i8_q8z_avx512, q8z, 8, 8, 6)
STRIP8_FAMILIES(rft__strip_i8_avx512, 16)

void rft__quantise_avx512(const rft__packing *packing, const float *x, int64_t k, rft__x8 *dst) { quantise(packing, x, k, dst); }

void rft__record_avx512(const rft__packing *packing, const signed char *x, const float *scale, int64_t k, rft__x8 *dst) {
    record(packing, x, scale, k, dst);
}

void rft__unpack_avx512(const rft__packing *packing, const char *w, int64_t k, char *dst) { unpack(packing, w, k, dst); }
