/* SPDX-License-Identifier: Apache-2.0
 *
 * codes8_avx2vnni.c - panels of codes times x in 8 bits by AVX-VNNI; see cpu/codes8_body.h. Where avx2 multiplies, adds pairs and
 * adds those, here is one instruction that never saturates: so bytes above 127 need no splitting.
 *
 *     2 rows x 2 panels, 4 x 1: 8 sums of 16 registers; of a strip 8 totals, quads come from memory
 */
#include "cpu/avx2/bytes_sum_body.h"
#include "cpu/avx2/codes_avx2_body.h"
#include "cpu/avx2vnni/vpdpbusd_avx2vnni.h"

RFT_INLINE ivec dot_quad(bool wide, ivec sum, ivec q, ivec x) {
    (void)wide;
    return (ivec){rft__vpdpbusd(sum.a, q.a, x.a), rft__vpdpbusd(sum.b, q.b, x.b)};
}

#include "cpu/codes8_body.h"

#include "cpu/avx2vnni/pack_avx2vnni.h"

CODES8_LEVEL(avx2vnni, 4, 2, 0, 4)
