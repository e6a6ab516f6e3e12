/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx512.c - panels of codes times x in 8 bits on AVX-512 with VNNI; see cpu/codes8_body.h.
 *
 *     panels   6 rows x 4 panels: 24 sums, 4 quads of bytes, x, constants to unpack, of 32 registers
 *     a panel  8 rows: 8 totals, 8 quads or 8 sums, 2 scales, 3 to work with
 *     strips   16 rows: 16 totals, 8 quads, 2 scales, 3 to work with
 *
 * 32 k of a row and panel are 8 vpdpbusd, and with scales for 32 k a multiplication and an FMA on the same ports: 80 % of the
 * rate of vpdpbusd is the limit, 73 % with a minimum, 67 % with scales for 16 k, 94 % with scales for 128 k, 97 % for 256. Eight
 * tiles of 8 rows a panel, W from memory, reach 74 % (q4_0), 65 (q4_k), 91 (i4, groups of 128) and 94 (i8, a scale a row) of 470
 * GOP/s (one Zen 4 core, 2026-11-30).
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

/* x from memory, for all columns. */
RFT_INLINE ivec dot_quad_at(bool wide, ivec sum, ivec q, const signed char *x) {
    (void)wide;
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(q), "m"(*(const signed char(*)[4])x));
    return sum;
}

#define CODES8_PANEL
#include "cpu/codes8_body.h"

#include "cpu/avx512/codes8_avx512.h"
#include "cpu/avx512/pack_avx512.h"

CODES8_LEVEL(avx512, 8, 0, 6, 16)

/* ---- for tile registers, which sum and do not scale ---- */

RFT_INLINE void scale_rows(rft__offset_kind offset, int panels, const rft__sum8 *s, int first, int last, float *acc,
                           int acc_stride) {
    vec scale[RFT__SUM8_PANELS], shift[RFT__SUM8_PANELS];
    RFT_UNROLL
    for (int p = 0; p < panels; p++) {
        scale[p] = vec_load(s->scale[p]);
        shift[p] = offset != RFT__OFFSET_NONE ? vec_load(s->shift[p]) : scale[p];
    }
    const int64_t i = s->i, group = s->group;
    const int32_t *words = s->words + first * panels * RFT__COLUMNS;
    const rft__x8 *x = s->x + first;
    acc += (int64_t)first * acc_stride;
    for (int r = first; r < last; r++, x++, acc += acc_stride, words += panels * RFT__COLUMNS) {
        RFT_UNROLL
        for (int p = 0; p < panels; p++) {
            float *total = acc + p * RFT__COLUMNS;
            ivec sum = words_load(words + p * RFT__COLUMNS);
            sum = offset == RFT__OFFSET_NONE ? words_add(sum, words_set(x->sum[i].word)) : sum;
            vec_store(total, add_sum(offset, sum, scale[p], shift[p], x->scale[group], x->sum[i].real, vec_load(total)));
        }
    }
}

#define SCALE8_FUNCTION(kind, p)                                                                                 \
    static void scale8_##kind##_##p(const rft__sum8 *s, int first, int last, float *acc, int acc_stride) {       \
        scale_rows(RFT__OFFSET_##kind, p, s, first, last, acc, acc_stride);                                      \
    }
#define SCALE8_KIND(kind) SCALE8_FUNCTION(kind, 1) SCALE8_FUNCTION(kind, 2)
#define SCALE8_ENTRY(kind) [RFT__OFFSET_##kind] = {scale8_##kind##_1, scale8_##kind##_2}

SCALE8_KIND(NONE)
SCALE8_KIND(MINIMUM)
SCALE8_KIND(ZERO)

rft__scale8_fn *const rft__scale8_avx512[RFT__OFFSET_ZERO + 1][RFT__SUM8_PANELS] = {SCALE8_ENTRY(NONE), SCALE8_ENTRY(MINIMUM),
                                                                                 SCALE8_ENTRY(ZERO)};

void rft__head8_avx512(const rft__packing *packing, const char *w, int64_t k, float *head) {
    unpack_head(8, packing->offset, packing, w, k, head);
}
