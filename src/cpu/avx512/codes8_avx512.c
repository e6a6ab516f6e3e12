/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx512.c - panels of codes times x in 8 bits on AVX-512 with VNNI; see cpu/codes8_body.h.
 *
 *     panels   6 rows x 4 panels, 8 x 2: 24 or 16 sums, 2 to 4 quads of bytes, x, constants to unpack, of 32 registers
 *     strips   16 rows x 1 panel: 16 totals, 8 quads of bytes, 2 scales, 3 to work with
 *
 * 32 k of a row and panel are 8 vpdpbusd, and with scales for 32 k a multiplication and an FMA on the same ports: 80 % of the
 * rate of vpdpbusd is the limit, 73 % with a minimum, 67 % with scales for 16 k, 94 % with scales for 128 k, 97 % for 256. Tiles
 * in L1 reach 77, 66, 64 and for 128 k 87 %, whole products at m = 512 63, 55, 53 and 73 % (Zen 4, 2026-11-30: 470 GOP/s a core).
 */
#include "cpu/avx2/bytes_sum_body.h"
#include "cpu/avx512/codes_avx512_body.h"

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

CODES8_LEVEL(avx512, 8, 8, 6, 16)
